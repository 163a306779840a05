// Executor: who carries out what core::node::Node orders. The keeper's start processes, hollow ones
// pretend to.
//
// What they have to say they say later, never from within a call, so that the agent is not entered
// again while it carries out orders. Belongs to the agent's KJ thread.
#pragma once

#include "agent/logs.hpp"
#include "agent/pod_template.hpp"
#include "core/node/node.hpp"
#include "core/node/pulse.hpp"

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
    // They can do nothing until connect() succeeds again.
    virtual void on_executor_gone(const std::string& why) = 0;
  };
  struct Inventory {
    std::vector<core::node::Living> living;
    std::vector<core::node::ProcessEnd> ended;
    std::map<PodId, PodTemplatePtr> templates;  // of pods that may need another process
  };
  struct Start {
    core::node::StartOrder order;
    PodTemplatePtr job;
  };

  // Which limits of containers are enforced here, and why not all; valid while connected.
  struct Limits {
    bool memory = false, cpu = false;
    std::string why;
  };

  virtual ~Executor() noexcept(false) = default;
  // To be called first, and after on_executor_gone. May block for a few seconds. `unavailable`: try
  // again; any other error ends the agent.
  virtual Result<Inventory> connect(Listener& listener) = 0;
  virtual Limits limits() const = 0;
  // To be called once a second while they are connected: what keeps them from their work, if
  // anything does.
  virtual core::node::Trouble check() { return {}; }
  virtual void start(const std::vector<Start>& starts) = 0;
  virtual void kill(const std::vector<core::node::KillOrder>& kills) = 0;
  virtual void forget(const std::vector<uint64_t>& entries) = 0;
  // All processes are ended at once, and on_executor_gone follows.
  virtual void end_all() = 0;
};

}  // namespace muster::agent
