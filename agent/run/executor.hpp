// Executor: carries out the orders of core::node::Node. KeeperExecutor starts real processes,
// HollowExecutor pretends to.
//
// The listener is called from a later turn of the loop, never from within a call to the executor,
// so the agent is not re-entered while it carries out orders. Belongs to the agent's KJ thread.
#pragma once

#include "agent/files/logs.hpp"
#include "core/node/node.hpp"
#include "core/node/pod_template.hpp"
#include "core/node/pulse.hpp"

#include <kj/async.h>
#include <kj/debug.h>
#include <kj/io.h>

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

class Executor {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_started(const std::vector<core::node::ProcessStart>& started) = 0;
    virtual void on_ended(const std::vector<core::node::ProcessEnd>& ended) = 0;
    // The pod exceeds a volume's limit.
    virtual void on_volume_full(PodId, const std::string&) {}
    // The executor can do nothing until connect() succeeds again.
    virtual void on_executor_gone(const std::string& why) = 0;
  };
  struct Inventory {
    std::vector<core::node::Living> living;
    std::vector<core::node::ProcessEnd> ended;
    std::map<PodId, core::node::PodTemplatePtr> templates;  // of pods that may need another process
  };
  struct Start {
    core::node::StartOrder order;
    core::node::PodTemplatePtr job;
  };

  // A session: a command that joins a running container. Its number is unique within its pod.
  struct SessionKey {
    PodId pod;
    uint16_t container = 0;
    uint16_t number = 0;
    auto operator<=>(const SessionKey&) const = default;
  };
  struct SessionStart {
    SessionKey key;
    std::string id;
    core::node::PodTemplatePtr job;
    std::string pod_name, log;  // its output is the log of this container
    std::vector<std::string> command;
    core::node::DeviceMapPtr devices{};    // of the pod; null: none
    bool reads = false, terminal = false;  // input, by write_session(); a terminal
  };
  struct SessionEnd {
    SessionKey key;
    std::optional<uint64_t> entry;  // to be forgotten
    int exit_code = 0;
    int signal = 0;
    bool lost = false;       // with its keeper
    std::string error;       // why it did not start
    bool unstarted = false;  // its container does not run
  };
  struct SessionFound {
    SessionKey key;
    std::string id, job_uid, pod_name, log;
    std::optional<SessionEnd> end{};
  };
  class SessionListener {
   public:
    virtual ~SessionListener() noexcept(false) = default;
    virtual void on_session_ended(const SessionEnd& end) = 0;
    // How many bytes of its input have been taken. `closed`: no more will be.
    virtual void on_session_input(const SessionKey& key, uint64_t taken, bool closed) = 0;
    // All existing ones, after connect().
    virtual void on_sessions(std::vector<SessionFound> found) = 0;
  };

  // Which container limits are enforced here, and why not all; valid while connected.
  struct Limits {
    bool memory = false, cpu = false;
    std::string why;
  };

  virtual ~Executor() noexcept(false) = default;
  // Call it first, and again after on_executor_gone. May block for a few seconds. `unavailable`:
  // try again; any other error ends the agent.
  virtual Result<Inventory> connect(Listener& listener) = 0;
  virtual Limits limits() const = 0;
  // The version of the keeper; empty: not known, or there is none. Valid while connected.
  virtual std::string keeper_version() const { return {}; }
  // Whether it starts queued orders on its own (core::node::StartOrder::queued); valid while
  // connected.
  virtual bool queues() const { return false; }
  // Call it once a second while connected. Returns what keeps the executor from working, if
  // anything.
  virtual core::node::Trouble check() { return {}; }
  // Resolves once the listener knows of all ends that the executor has seen by now. Rejected: it is
  // gone.
  virtual kj::Promise<void> settled() { return kj::READY_NOW; }
  virtual void start(const std::vector<Start>& starts) = 0;
  // When contact with the coordinator was last proven (PodPlan::fence_after_ms).
  virtual void contact(Millis) {}
  // These two only if queues(): how many processes of queued orders may live at once, and orders to
  // be dropped if they are still queued.
  virtual void set_room(uint32_t) {}
  virtual void withdraw(const std::vector<PodId>&) {}
  // Whether processes can have their own mounts; valid while connected.
  virtual bool mounts() const { return false; }
  // release() removes the directories of these pods, which are over; keep() those of all others.
  virtual void release(const std::vector<PodId>&) {}
  virtual void keep(const std::vector<PodId>&) {}
  virtual void kill(const std::vector<core::node::KillOrder>& kills) = 0;
  virtual void signal(const std::vector<core::node::SignalOrder>&) {}
  virtual void forget(const std::vector<uint64_t>& entries) = 0;
  // Whether pods run as users other than ours; valid while connected.
  virtual bool runs_users() const { return false; }
  // Whether templates may come as bytes (core/node/template_codec.hpp); valid while connected.
  virtual bool takes_templates() const { return true; }
  virtual void listen(SessionListener&) {}
  virtual Status start_session(SessionStart) {
    return Error{Errc::invalid, "this node starts no processes", {}};
  }
  virtual void kill_session(const SessionKey&, Millis) {}
  // Its input from `offset` on; on_session_input() follows once some of it was taken, or there is
  // room for it. `eof`: nothing follows.
  virtual void write_session(const SessionKey&, uint64_t, std::string_view, bool) {}
  // Opens a log that we may not read; null: there is no such file. May be rejected.
  virtual kj::Promise<kj::AutoCloseFd> open_log(const LogName&) {
    return KJ_EXCEPTION(FAILED, "the log belongs to another user, and only the keeper can open it");
  }
  // Kills all processes at once; on_executor_gone follows.
  virtual void end_all() = 0;
};

// Reads part of a log, opened by the executor if we may not. `logs` and `executor` must outlive the
// promise.
inline kj::Promise<LogChunk> read_log(const LogStore& logs, Executor& executor, const LogName& name,
                                      int64_t offset, size_t limit) {
  LogChunk chunk = logs.read(name, offset, limit);
  if (!chunk.denied) return kj::mv(chunk);
  return executor.open_log(name).then([&logs, name, offset, limit](kj::AutoCloseFd&& opened) {
    return logs.read(name, opened, offset, limit);
  });
}

// Opens an output likewise; null: there is none.
inline kj::Promise<kj::AutoCloseFd> open_output(const LogStore& logs, Executor& executor,
                                                const LogName& name) {
  bool denied = false;
  kj::AutoCloseFd fd = logs.open_to_read(name, denied);
  if (!denied) return kj::mv(fd);
  return executor.open_log(name);
}

}  // namespace muster::agent
