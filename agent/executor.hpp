// Executor: carries out the orders of core::node::Node. KeeperExecutor starts real processes,
// HollowExecutor pretends to.
//
// The listener is called from a later turn of the loop, never from within a call to the executor,
// so the agent is not re-entered while it carries out orders. Belongs to the agent's KJ thread.
#pragma once

#include "agent/logs.hpp"
#include "core/node/node.hpp"
#include "core/node/pod_template.hpp"
#include "core/node/pulse.hpp"

#include <kj/async.h>
#include <kj/debug.h>
#include <kj/io.h>

#include <map>
#include <string>
#include <vector>

namespace muster::agent {

class Executor {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_started(const std::vector<core::node::ProcessStart>& started) = 0;
    virtual void on_ended(const std::vector<core::node::ProcessEnd>& ended) = 0;
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
  // Whether it starts queued orders by itself (core::node::StartOrder::queued); valid while
  // connected.
  virtual bool queues() const { return false; }
  // Call it once a second while connected. Returns what keeps the executor from working, if
  // anything.
  virtual core::node::Trouble check() { return {}; }
  virtual void start(const std::vector<Start>& starts) = 0;
  // These two only if queues(): how many processes of queued orders may live at once, and queued
  // orders to be dropped unless their turn has come.
  virtual void set_room(uint32_t) {}
  virtual void withdraw(const std::vector<PodId>&) {}
  virtual void kill(const std::vector<core::node::KillOrder>& kills) = 0;
  virtual void forget(const std::vector<uint64_t>& entries) = 0;
  // Opens a log that we may not read; null: there is no such file. May be rejected.
  virtual kj::Promise<kj::AutoCloseFd> open_log(const LogName&) {
    return KJ_EXCEPTION(FAILED, "the log belongs to another user, and only the keeper can open it");
  }
  // Kills all processes at once; on_executor_gone follows.
  virtual void end_all() = 0;
};

}  // namespace muster::agent
