// AgentLink: what actors may ask of an agent. The real one speaks RPC
// (coordinator/rpc/rpc_server.hpp); the simulation's injects faults.
//
// Calls return at once and guarantee nothing: an order to a disconnected node is dropped, since its
// next registration derives the order again (Job::desired_effects).
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"
#include "core/job/fold/hosts.hpp"
#include "core/spec/fields/job_spec.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace muster::actors {

class AgentLink {
 public:
  virtual ~AgentLink() = default;
  // Pods of one job. Dropped if the node has registered again since `link`, so a pod is launched at
  // most once under each registration.
  virtual void launch(NodeId node, uint64_t link, std::vector<PodId> pods,
                      core::JobObjectPtr object) = 0;
  // SIGTERM, then SIGKILL after the grace period; 0: SIGKILL at once.
  virtual void kill(NodeId node, PodId pod, Millis grace_ms) = 0;
  // How long the pod may run, in place of what its template says; absent: without a limit.
  virtual void limit(NodeId node, PodId pod, std::optional<Millis> limit_ms) {
    static_cast<void>(node), static_cast<void>(pod), static_cast<void>(limit_ms);
  }
  // Asks which pods of this job have ended there and were not acknowledged. The answer goes to the
  // registry as JobHears.
  virtual void ask(NodeId node, JobId job, uint64_t question) = 0;
  // Where the pods of an MPI job run now; no hosts: it has none left.
  virtual void hosts(JobId job, core::HostListPtr hosts) {
    static_cast<void>(job), static_cast<void>(hosts);
  }
  // Calls `orders`. What it sends through this link, and the answers it gives to agents' calls,
  // leave together.
  virtual void together(const std::function<void()>& orders) { orders(); }
  // Closes the connection of this incarnation: its agent must register again.
  virtual void drop(NodeId node) = 0;
};

}  // namespace muster::actors
