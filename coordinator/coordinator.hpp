// Coordinator: wires the actors, the journal, the agents' port and the API together.
//
// Threads: RPC (KJ, agents), API (KJ, HTTP), CAF workers (decide), journal (detached actor, the
// only writer of RocksDB).
#pragma once

#include "api/access/caller.hpp"
#include "api/access/quotas.hpp"
#include "api/access/rules.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "coordinator/lead.hpp"
#include "core/cluster/slots/recent_use.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/fields/image_runtime.hpp"
#include "core/spec/values/gates.hpp"
#include "core/trust.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace muster::coordinator {

// Whether audited requests also go to the system's journal.
enum class AuditJournal { off, when_there, required };

struct Options {
  std::string data_dir;
  std::string api = "127.0.0.1:7117";  // HTTP; port 0 picks a free one
  std::string api_socket;              // also serves the API on this Unix socket; empty: none
  std::string listen_socket;           // likewise for agents
  // False: start without the socket if it cannot be made.
  bool api_socket_required = true, listen_socket_required = true;
  std::vector<uid_t> agent_users;         // whose agents may connect on this machine, besides ours
                                          // and root's
  std::vector<std::string> api_hosts;     // additional host names that clients may use
  std::string listen = "127.0.0.1:7118";  // agents: HOST:PORT or unix:PATH
  std::string api_tls;                    // HTTPS for clients with tokens: HOST:PORT; empty: none
  std::string listen_tls;  // agents of other machines, over mutual TLS: HOST:PORT; empty: none
  std::string metrics;     // /metrics and /healthz for anyone: HOST:PORT; empty: none
  // The site's authority, as PEM files; empty: the coordinator makes one at its first start.
  std::string ca_certificate, ca_key;
  Millis node_certificate_ms = Millis{30} * 86'400'000;  // life of a node's certificate
  // Whether users of other machines can log in by munge, the socket of its daemon (empty: the
  // default one), and how long the tokens that they get are valid.
  bool munge = false;
  std::string munge_socket;
  Millis munge_token_ms = core::kMungeTokenLife;
  Millis backoff_base_ms = 10'000;
  Millis backoff_max_ms = 600'000;
  Millis start_patience_ms = 60'000;  // as in core::Knobs
  Millis node_grace_ms = 40'000;
  Millis share_half_life_ms = core::RecentUse::kHalfLifeMs;  // 0: recent use does not count
  std::string mail_program;  // takes mail as sendmail(8) does; empty: there is no mail
  core::PlacementChoice placement = core::PlacementChoice::pack;  // of jobs that do not choose
  core::Gates gates{};
  core::ImageRuntime image_runtime{};
  uint64_t finished_jobs_max = UINT64_MAX;            // to keep; the oldest are deleted first
  Millis attempts_keep_ms = Millis{30} * 86'400'000;  // how long the history of attempts is kept
  uint64_t attempts_max = 1'000'000;                  // how many attempts it keeps
  // The history of jobs: how long those that are gone are kept after their end, and how many.
  // Either 0: there is no history.
  Millis history_age_ms = Millis{400} * 86'400'000;
  uint64_t history_max = 1'000'000;
  bool require_limits = false;  // keep pods with limits off nodes that do not enforce them
  bool insecure = false;        // serve non-loopback addresses, and other users
  api::RoleGroups roles{};      // if any are set, several users are served
  api::AccessRules access{};
  api::QuotaLimits quotas{};
  AuditJournal audit_journal = AuditJournal::when_there;
  // At startup, wait for the nodes on record before anything is written or shown: what they have
  // seen may prove that the data-dir lacks acknowledged state.
  bool wait_for_nodes = true;
  // Of a coordinator that is one of several; null: it is alone. Its journal is served, and its term
  // is the epoch. Then nodes are not waited for: the journal cannot be outdated.
  std::shared_ptr<Lead> lead = nullptr;
  // Called on the API thread once the end of a job is shown; may be null.
  std::function<void()> job_finished = nullptr;

  bool keeps_history() const { return history_age_ms > 0 && history_max > 0; }
};

class Coordinator {
 public:
  // Opens the data-dir (created with mode 0700 if missing), folds all jobs, waits for the nodes on
  // record (or until live ones would have registered), serves, and writes endpoints.json. Until it
  // serves, the journal is unchanged. Fails if the data-dir is in use, has an unknown format or
  // lost acknowledged data, or if an address is taken or not loopback. An agent that proves that
  // the data-dir is outdated ends the process, whenever it registers.
  static Result<std::unique_ptr<Coordinator>> start(Options options);
  virtual ~Coordinator() = default;
  virtual std::string api_address() const = 0;  // "127.0.0.1:41233"
  virtual std::string listen_address() const = 0;
  virtual std::string api_tls_address() const = 0;  // empty: none
  virtual std::string listen_tls_address() const = 0;
  virtual std::string api_socket() const = 0;     // its path; empty: none
  virtual std::string listen_socket() const = 0;  // likewise
  // From now on, these groups have the roles, and users these limits, except pods_max. Ignored
  // where users have no roles.
  virtual void reload(const api::RoleGroups& roles, const api::QuotaLimits& quotas) = 0;
  // Whether the API's thread does what it is asked within this time.
  virtual bool responds(Millis within_ms) const = 0;
  // Stops serving and finishes pending writes: once it returns, nothing is answered or committed
  // any more. Pods keep running. The journal is closed by the destructor, which stops, too.
  virtual void stop() = 0;
};

}  // namespace muster::coordinator
