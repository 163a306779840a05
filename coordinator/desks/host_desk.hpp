// HostDesk: what the RPC thread knows about where the pods of MPI jobs are.
//
// Jobs report this once it is durable (actors::AgentLink::hosts). It is forwarded to the nodes that
// have such pods, and muster-rsh's requests are checked against it: a pod reaches only other pods
// of its own job, and only from the node on which it runs.
//
// Belongs to the RPC thread.
#pragma once

#include "core/job/fold/hosts.hpp"

#include <kj/async.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::coordinator {

class HostDesk {
 public:
  // Replaces what is known about a job. `states`: the set of pods has not changed.
  enum class Change { none, states, members };
  Change set(JobId job, core::HostListPtr hosts);

  core::HostListPtr of(JobId job) const;
  std::set<NodeId> nodes_of(JobId job) const;
  std::set<JobId> jobs_on(NodeId node) const;

  // Whether a pod of an MPI job runs on this node.
  bool is_on(PodId pod, NodeId node) const;
  // The index that a launcher refers to by the host name of its pod, a name below that, its number,
  // or the name (by `name_of`) of a node with only one pod of the job. Nothing: no match.
  std::optional<uint32_t> resolve(JobId job, const std::string& host,
                                  const std::function<std::string(NodeId)>& name_of) const;
  // For an error message: the first names that resolve() knows.
  std::string names(JobId job) const;

  // Resolves when the job changes or a node connects.
  kj::Promise<void> changes(JobId job);
  void connected();  // a node has connected

 private:
  void wake(JobId job);

  std::map<JobId, core::HostListPtr> jobs_;
  std::map<JobId, std::vector<kj::Own<kj::PromiseFulfiller<void>>>> waiting_;
};

}  // namespace muster::coordinator
