// Demand: what one pod of a job asks of a node, made once for each object of the job.
#pragma once

#include "core/cluster/node_info.hpp"
#include "core/spec/job_spec.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::core {

// Amounts of resources; what a node has, what pods take. Named ones (nvidia.com/gpu) count whole.
struct Amounts {
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  std::map<std::string, int64_t> named;
  bool operator==(const Amounts&) const = default;
  bool none() const { return cpu_millis == 0 && memory_bytes == 0 && named.empty(); }
  void add(const Amounts& other, int64_t times);  // negative: takes away
};

// How many times `each` fits into `room`, at most `most`.
uint32_t times_in(const Amounts& room, const Amounts& each, uint32_t most);

struct Demand {
  Amounts amounts;  // requests; a limit counts where there is no request
  StringMap node_selector;
  std::vector<Toleration> tolerations;
  int32_t priority = 0;  // higher goes first, and may take the place of lower ones
  bool preempts = true;  // not with preemptionPolicy Never: it goes first, and takes nobody's place
  bool gang = false;     // the pods that wait start together or not at all
  bool memory_limit = false;  // a container of it has such a limit
  bool cpu_limit = false;
};

inline const Demand kPlainDemand;  // of a pod that asks for nothing

// Whether what has room for a pod of the one has room for a pod of the other.
bool alike(const Demand& a, const Demand& b);

// A pod's request is that of all its containers together, or of its largest init container if that
// is more. priorityClassName knows Kubernetes' two own classes; else `priority` itself counts.
Demand demand_of(const JobObject& object);

// What a node has for pods. 0 CPUs or bytes: it did not say, and no request for them fits.
Amounts capacity_of(const NodeInfo& node);

// Whether its labels, taints, cordon and limits let such a pod onto the node. PreferNoSchedule does
// not keep it off.
bool admits(const NodeInfo& node, const StringMap& labels, const Demand& demand);
// Whether the node enforces the limits of such a pod, or need not (LimitSupport::required).
bool enforces(const NodeInfo& node, const Demand& demand);
// How long such a pod may stay on the node once its NoExecute taints are there, in milliseconds: 0
// where one is not tolerated, the least tolerationSeconds of those that are; nothing: for ever.
std::optional<Millis> may_stay(const NodeInfo& node, const Demand& demand);
// How many PreferNoSchedule taints it does not tolerate: nodes with more are filled later.
uint32_t reluctance(const NodeInfo& node, const Demand& demand);

}  // namespace muster::core
