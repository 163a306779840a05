// AgentLink: what an actor may ask of an agent. The real one speaks RPC (coordinator/rpc_server),
// the test one lies.
//
// Calls return at once and promise nothing: an order to a node that is not connected is dropped,
// since its next registration has the order made again (Job::desired_effects).
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"
#include "core/spec/job_spec.hpp"

namespace muster::actors {

class AgentLink {
 public:
  virtual ~AgentLink() = default;
  // Under another registration of the node than `link` the order is dropped: so a pod is launched
  // at most once under each.
  virtual void launch(NodeId node, uint64_t link, PodId pod, core::JobObjectPtr object) = 0;
  // SIGTERM, SIGKILL after the grace; 0: SIGKILL at once.
  virtual void kill(NodeId node, PodId pod, Millis grace_ms) = 0;
  // Asks what of this job has ended there and was not acknowledged. The answer goes to the
  // registry, as JobHears.
  virtual void ask(NodeId node, JobId job, uint64_t question) = 0;
  // Ends the connection of this incarnation: its agent must register anew.
  virtual void drop(NodeId node) = 0;
};

}  // namespace muster::actors
