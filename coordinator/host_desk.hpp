// HostDesk: where the pods of MPI jobs are, as the RPC thread knows it.
//
// Jobs say so once it is durable (actors::AgentLink::hosts). It goes on to the nodes that have such
// pods, and is what muster-rsh's requests are checked against: a pod reaches others of its own job
// only, and only from the node on which it runs.
//
// Belongs to the RPC thread.
#pragma once

#include "core/job/hosts.hpp"

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
  // Replaces what is known of a job. `states`: which pods there are has not changed.
  enum class Change { none, states, members };
  Change set(JobId job, core::HostListPtr hosts);

  core::HostListPtr of(JobId job) const;
  std::set<NodeId> nodes_of(JobId job) const;
  std::set<JobId> jobs_on(NodeId node) const;

  // Whether a pod of an MPI job runs on this node.
  bool is_on(PodId pod, NodeId node) const;
  // The index that a launcher means: the host name of its pod, a name below that, its number, or
  // the name of a node that only one of its pods is on (`name_of`). Nothing: none.
  std::optional<uint32_t> resolve(JobId job, const std::string& host,
                                  const std::function<std::string(NodeId)>& name_of) const;
  // For an error message: the first names that resolve() knows.
  std::string names(JobId job) const;

  // Resolves at the next change of the job, or of a connection.
  kj::Promise<void> changes(JobId job);
  void connected();  // a node

 private:
  void wake(JobId job);

  std::map<JobId, core::HostListPtr> jobs_;
  std::map<JobId, std::vector<kj::Own<kj::PromiseFulfiller<void>>>> waiting_;
};

}  // namespace muster::coordinator
