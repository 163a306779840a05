// Backend: what the API needs from the coordinator.
//
// Reads use the View; this is for changes and for what needs an agent. All calls are made on the
// API thread and return at once; each `done` is called once, on the API thread, after the change is
// durable and shown by the View.
#pragma once

#include "base/result.hpp"
#include "core/cluster/nodes/node_info.hpp"
#include "core/history/entry.hpp"
#include "core/ids.hpp"
#include "core/job/facts/event.hpp"
#include "core/job/shown/attempt_page.hpp"
#include "core/journal_facts.hpp"
#include "core/kept.hpp"
#include "core/queue/rights.hpp"
#include "core/spec/fields/job_spec.hpp"
#include "core/standby/figures.hpp"
#include "core/trust.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::api {

struct LogSource {
  NodeId node = kNoNode;
  std::string node_name;  // whose agent is asked if that registration has ended
  PodId pod;
  std::string job_uid, pod_name, container;
  int32_t run = -1;  // of the container's first (0), second (1), … process; -1: of all
};

struct LogRequest : LogSource {
  bool stderr_stream = false;   // false: stdout
  int64_t offset = 0;           // negative: that many lines from the end
  uint32_t limit = 256 * 1024;  // bytes, at most 1 MiB
  bool times = false;           // wants LogChunk::marks
};

// By `at`, the output had reached `offset`.
struct LogMark {
  int64_t offset = 0;
  Millis at = 0;
};

struct LogChunk {
  bool found = false;  // false: no such file (never written, or removed)
  std::string data;
  int64_t offset = 0;            // where data begins in the file
  int64_t size = 0;              // current size of the file
  bool running = false;          // more may follow
  std::vector<LogMark> marks{};  // in order, the last one at the end of data; empty: unknown
};

// Asks where to begin to read.
struct LogSearch : LogSource {
  bool out = true, err = true;
  std::optional<int64_t> last_lines{};  // of both outputs together
  Millis since = 0;                     // of these, only lines that are not older
};
struct LogBegins {
  int64_t out = 0, err = 0;
  bool known = true;  // false: the agent is of an earlier version, which cannot tell
};

// A command that joins a running pod (coordinator/desks/exec_relay.hpp), and who started it.
struct ExecSession {
  std::string id;  // random, 32 hexadecimal digits of the client's choice
  std::string ns, pod;
  uint32_t caller = 0;  // uid
  bool operator==(const ExecSession&) const = default;
};
struct ExecRequest {
  ExecSession session;  // repeating the request finds it
  NodeId node = kNoNode;
  PodId pod;
  core::JobObjectPtr object;
  std::vector<std::string> command;  // empty: only look it up
  bool input = false;                // it reads what write_exec() sends
  bool terminal = false;             // likewise, framed (base/terminal_input.hpp)
  uint16_t container = 0;            // that it joins: its position, init containers first
};
struct ExecStarted {};
struct ExecRead {
  ExecSession session;
  uint64_t out = 0, err = 0;    // bytes read so far
  uint32_t limit = 256 * 1024;  // bytes of each, at most
};
struct ExecOutput {
  std::string out, err;  // both empty: no output for some seconds
  bool ended = false;
  int exit_code = 0;
  std::string message;  // why it did not start or was lost
};

struct ExecWrite {
  ExecSession session;
  uint64_t offset = 0;  // of `data` in the whole input
  std::string data;     // at most kExecWriteMax bytes
  bool eof = false;     // nothing follows
};
constexpr size_t kExecWriteMax = 64 << 10;
struct ExecTaken {
  uint64_t bytes = 0;   // of its input taken so far; the rest must be sent again
  bool closed = false;  // no more will be taken
};

// What happens to the pods of a deleted job (job-semantics 10.4).
enum class Propagation { background, foreground, orphan };

struct AttemptRequest {
  JobId job = 0;
  core::AttemptCursor from{};  // an earlier page's `next`
  size_t limit = 500;
  std::function<bool(const core::Pod&)> wanted;
};

struct TokenWanted {
  core::TokenKind kind = core::TokenKind::user;
  std::string subject;  // the name of the user, the node, the coordinator or the pool
  uint32_t uid = 0;     // of the user
  std::string by;       // who asks for it
  Millis life_ms = 0;
  core::NodeClaims claims{};  // of the node or the pool's nodes
  uint32_t uses_max = 1;      // by the pool's nodes
};

struct TokenMade {
  core::Token token;
  std::string text;  // what its holder needs, for a file
};

// How other machines connect; empty where they cannot.
struct Links {
  std::string authority;    // PEM
  std::string api, agents;  // HOST:PORT
  std::string http{};       // likewise, of the API without TLS
};

// The audience that munge credentials must name to log in here.
struct MungeAudience {
  std::string cluster, start;  // the cluster's id; a random number of this run of the coordinator
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Stores a validated job with its defaults. `exists` if the name is taken; `unavailable`, with a
  // reason, while nothing can be stored.
  virtual void create_job(core::JobObjectPtr job, std::function<void(Status)> done) = 0;
  // Deletes this job if its uid is `uid` (empty: any). not_found; conflict if the uid differs.
  virtual void delete_job(std::string ns, std::string name, std::string uid,
                          Propagation propagation, std::function<void(Status)> done) = 0;
  // Replaces `seen`, the object that the View shows, with `job`, whose metadata and spec have
  // passed all checks. conflict if the job is no longer `seen`: read it and decide again.
  // not_found.
  virtual void update_job(core::JobObjectPtr seen, core::JobObjectPtr job,
                          std::function<void(Status)> done) = 0;
  // Writes the parts of a job's status that clients may write. conflict if they have changed since
  // `write.seen`. not_found.
  virtual void write_status(core::StatusWrite write, std::function<void(Status)> done) = 0;
  // Holds or releases a job, or overrides what its object says. not_found; conflict if the job has
  // finished, for its owner is held by an operator, or has other overrides than those seen.
  virtual void hold_job(JobId job, core::HoldChange change, std::function<void(Status)> done) = 0;
  virtual void override_job(JobId job, core::OverridesChange change,
                            std::function<void(Status)> done) = 0;
  // Ends a job or some of its indexes for good. not_found; conflict (core::Cancellation).
  virtual void cancel(JobId job, core::Cancellation cancellation,
                      std::function<void(Status)> done) = 0;
  // Deletes pods of one job; `evict` first sets their condition DisruptionTarget. No `grace_ms`:
  // the template's. Ended pods disappear, the others are ended. not_found if none of them exists.
  virtual void delete_pods(JobId job, std::vector<PodKey> pods, bool evict,
                           std::optional<Millis> grace_ms, std::function<void(Status)> done) = 0;
  // Sets conditions, labels and annotations of a pod; keeps all others. not_found.
  virtual void write_pod(JobId job, core::PodConditionsWrite write,
                         std::function<void(Status)> done) = 0;
  // Replaces the node's spec `seen` with `spec`. conflict, not_found.
  virtual void change_node(std::string name, core::NodeSpec seen, core::NodeSpec spec,
                           std::function<void(Status)> done) = 0;
  // Removes the node; its pods fail as disrupted. not_found.
  virtual void delete_node(std::string name, std::function<void(Status)> done) = 0;
  // Ends the pods of the node that a restored state does not contain. not_found.
  virtual void end_unknown_pods(std::string name, std::function<void(Status)> done) = 0;
  // Replaces `seen`, as the View shows it (nullptr: it does not exist), with `next` (nullptr:
  // delete it). exists, conflict, not_found; overloaded if there are too many of its kind, or if
  // its owner would exceed `quota`.
  virtual void write_kept(core::KeptPtr seen, core::KeptPtr next, core::KeptQuota quota,
                          std::function<void(Status)> done) = 0;
  // Tells the scheduler which queues and priority classes there are.
  virtual void set_queues(const core::QueueSet&) {}
  // Reads part of a pod's log from its node. unavailable if the node is not connected.
  virtual void read_log(LogRequest request, std::function<void(Result<LogChunk>)> done) = 0;
  virtual void find_log(LogSearch search, std::function<void(Result<LogBegins>)> done) = 0;
  // Starts, reads, writes to and ends a command in a pod. unavailable (the command may be running),
  // conflict (the pod is not running), overloaded, not_found (the caller has no such session).
  virtual void exec(ExecRequest request, std::function<void(Result<ExecStarted>)> done);
  virtual void read_exec(ExecRead request, std::function<void(Result<ExecOutput>)> done);
  virtual void write_exec(ExecWrite request, std::function<void(Result<ExecTaken>)> done);
  virtual void end_exec(ExecSession session, std::function<void(Status)> done);
  // One page of a job's ended attempts, in the order in which they were closed. Reads from disk
  // before it returns.
  virtual Result<core::AttemptPage> read_attempts(const AttemptRequest& request) = 0;
  // Visits the entries in the history of the jobs after this one, by id, until `visit` returns
  // false. Reads from disk before it returns. not_found: there is no history.
  virtual Status scan_history(JobId, const std::function<bool(const core::HistoryEntry&)>&) {
    return no_history();
  }
  static Error no_history() {
    return {Errc::not_found,
            "the coordinator keeps no history: it runs with --history-age 0 or --history-max 0",
            {}};
  }
  // Writes a backup of the state to `dir`, an absolute path that does not exist yet. conflict,
  // invalid; unavailable, also while a backup or a recount is running.
  virtual void back_up(std::string dir, std::function<void(Result<core::BackupInfo>)> done);
  // Runs `work` on another thread, then `done`. `work` must not touch shared data.
  virtual void compute(std::function<void()> work, std::function<void()> done) {
    work();
    done();
  }
  // Tokens (core/trust.hpp). unavailable unless links are encrypted; overloaded, not_found.
  virtual void make_token(TokenWanted wanted, std::function<void(Result<TokenMade>)> done);
  virtual std::vector<core::Token> tokens() { return {}; }
  virtual std::optional<core::Token> token(const std::string&) { return std::nullopt; }
  virtual void revoke_token(const std::string& id, std::function<void(Status)> done);
  // Refuses the certificates and tokens of this node.
  virtual void revoke_node(const std::string& node, std::function<void(Status)> done);
  // What this node may claim; nothing: what it had at its last registration.
  virtual std::optional<core::NodeClaims> claims_of(const std::string&) { return std::nullopt; }
  virtual void allow_claims(const std::string& node, core::NodeClaims claims,
                            std::function<void(Status)> done);
  virtual Links links() { return {}; }
  virtual std::string cluster() { return ""; }  // its id; empty: not known yet
  // The valid user token that has this text, if any.
  virtual std::optional<core::Token> token_of(std::string_view) { return std::nullopt; }
  // Nothing: munge credentials are not accepted.
  virtual std::optional<MungeAudience> munge_audience() { return std::nullopt; }
  // Returns who made this munge credential, which `from` sent, and uses it up. invalid: it is
  // refused; the reason is for the log. unavailable, overloaded.
  virtual void judge_munge(std::string credential, const std::string& from,
                           std::function<void(Result<uint32_t>)> done);
  // Whether this coordinator can send mail.
  virtual bool sends_mail() { return false; }
  // Sends a message with its headers to these addresses. unavailable, with a reason.
  virtual void send_mail(std::vector<std::string> to, std::string message,
                         std::function<void(Status)> done);
  // What is known of the coordinators of this cluster; nothing: this one is alone.
  virtual void lead_figures(std::function<void(std::optional<core::standby::LeadFigures>)> done) {
    done(std::nullopt);
  }
  // Changes who leads, or forgets a coordinator that is not connected. `done` is called once it is
  // decided; a hand-over follows at once. not_found; conflict, with the reason.
  virtual void change_lead(core::standby::LeadChange, std::string,
                           std::function<void(Status)> done) {
    done(is_alone());
  }
  static Error is_alone() {
    return {Errc::conflict,
            "this coordinator is alone, so no other one can lead: it runs without --store and "
            "--peers",
            {}};
  }
  // Rereads the whole state and recounts it.
  virtual void verify(std::function<void(Result<core::Verified>)> done);
};

inline void Backend::exec(ExecRequest, std::function<void(Result<ExecStarted>)> done) {
  done(Error{Errc::unavailable, "commands in pods are not supported here", {}});
}
inline void Backend::read_exec(ExecRead, std::function<void(Result<ExecOutput>)> done) {
  done(Error{Errc::unavailable, "commands in pods are not supported here", {}});
}
inline void Backend::write_exec(ExecWrite, std::function<void(Result<ExecTaken>)> done) {
  done(Error{Errc::unavailable, "commands in pods are not supported here", {}});
}
inline void Backend::end_exec(ExecSession, std::function<void(Status)> done) {
  done(Error{Errc::unavailable, "commands in pods are not supported here", {}});
}
inline void Backend::back_up(std::string, std::function<void(Result<core::BackupInfo>)> done) {
  done(Error{Errc::unavailable, "there is no state on disk", {}});
}
inline Error no_links() {
  return invalid(
      "the coordinator serves this machine only, so there are no tokens: start it with "
      "--api-tls or --listen-tls");
}
inline void Backend::make_token(TokenWanted, std::function<void(Result<TokenMade>)> done) {
  done(no_links());
}
inline void Backend::revoke_token(const std::string&, std::function<void(Status)> done) {
  done(no_links());
}
inline void Backend::revoke_node(const std::string&, std::function<void(Status)> done) {
  done(no_links());
}
inline void Backend::allow_claims(const std::string&, core::NodeClaims,
                                  std::function<void(Status)> done) {
  done(no_links());
}
inline void Backend::judge_munge(std::string, const std::string&,
                                 std::function<void(Result<uint32_t>)> done) {
  done(Error{Errc::unavailable, "the coordinator runs without --munge", {}});
}
inline void Backend::send_mail(std::vector<std::string>, std::string,
                               std::function<void(Status)> done) {
  done(Error{Errc::unavailable, "the coordinator runs without --mail-program", {}});
}
inline void Backend::verify(std::function<void(Result<core::Verified>)> done) {
  done(Error{Errc::unavailable, "there is no state on disk", {}});
}

}  // namespace muster::api
