// Agent: the daemon on a node; `muster run` runs it as a thread.
//
// One KJ loop keeps a connection to the coordinator, asks core::node::Node for decisions and has
// its Executor carry them out. Pods' processes are children of the keeper, so they survive the
// agent, and the next agent on the same work-dir takes them over.
#pragma once

#include "agent/options.hpp"
#include "base/result.hpp"

#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace muster::agent {

// Takes from the environment what the options do not say: the name of a node that joins with a
// pool's token, and the GPUs. Call before forget_environment(), which removes it. Returns what
// could not be understood, for people.
std::vector<std::string> learn_environment(AgentOptions& options);

// Runs an agent until it exits. Returns the exit code, or why it can't serve (another agent on the
// work-dir, another cluster, a node name that the coordinator refuses, no keeper). Without
// `control` it obeys signals.
Result<int> run_agent(const AgentOptions& options, AgentControl* control = nullptr);

// An agent on its own thread, for `muster run`.
class AgentThread {
 public:
  explicit AgentThread(AgentOptions options);
  ~AgentThread();  // unless joined, makes the agent leave at once and joins
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
