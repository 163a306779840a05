// Agent: the node's daemon, and the same as a thread of `muster run`.
//
// One KJ loop: it keeps a connection to the coordinator, lets core::node::Node decide and its
// Executor do. Processes are children of the keeper: whatever becomes of the agent, they run on,
// and an agent on the same work-dir takes them back.
#pragma once

#include "agent/options.hpp"
#include "base/result.hpp"

#include <optional>
#include <thread>

namespace muster::agent {

// Runs an agent until it has left: the exit code, or why it can't serve (another agent on the
// work-dir, another cluster, a node name that the coordinator refuses, no keeper). Without
// `control` it listens to signals.
Result<int> run_agent(const AgentOptions& options, AgentControl* control = nullptr);

// An agent on a thread of its own, for `muster run`.
class AgentThread {
 public:
  explicit AgentThread(AgentOptions options);
  ~AgentThread();  // leaves at once if nobody said more
  void drain() { control_.order(AgentControl::Command::drain); }
  void stop_now(bool kill = true) {
    control_.order(kill ? AgentControl::Command::kill : AgentControl::Command::leave);
  }
  Result<int> join();

 private:
  AgentControl control_;
  std::optional<Result<int>> result_;  // written by the thread, read after join
  std::thread thread_;
};

}  // namespace muster::agent
