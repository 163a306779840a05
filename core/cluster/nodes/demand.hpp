// Demand: what one pod of a job requires of a node, derived once per version of the job's object.
#pragma once

#include "core/cluster/nodes/node_info.hpp"
#include "core/cluster/nodes/windows.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/fields/job_spec.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::core {

// Amounts of resources that a node has or that pods take. Named resources (nvidia.com/gpu) are
// whole numbers.
struct Amounts {
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  std::map<std::string, int64_t> named;
  bool operator==(const Amounts&) const = default;
  bool none() const { return cpu_millis == 0 && memory_bytes == 0 && named.empty(); }
  void add(const Amounts& other, int64_t times);  // negative: subtracts
  void lower_to(const Amounts& other);            // where that is less
};

// How many times `each` fits into `room`, up to `most`.
uint32_t times_in(const Amounts& room, const Amounts& each, uint32_t most);

struct Demand {
  Amounts amounts;  // requests, or limits where there is no request
  StringMap node_selector;
  std::string node_name;  // the only acceptable node; empty: any
  NodeAffinity affinity;
  std::vector<Toleration> tolerations;
  int32_t priority = 0;  // higher ones are placed first and may preempt lower ones
  bool preempts = true;  // false (preemptionPolicy Never): placed first, but preempts nothing
  bool gang = false;     // its waiting pods start together or not at all
  PlacementChoice placement = PlacementChoice::usual;
  bool memory_limit = false;  // a container has a memory limit
  bool cpu_limit = false;
  // Of a user without an operator's rights: tolerates neither a cordon nor a NoExecute taint, by
  // which operators clear a node.
  bool of_user = false;
  std::optional<int64_t> time_limit_s;  // of a pod
  std::string queue;                    // its name; never empty in what demand_of() returns
  std::string priority_class;           // that the template names, if it is not the system's
  bool own_priority = false;            // `priority` is the template's
  bool given_priority = false;          // an operator's, for this job
  bool given_queue = false, given_time = false;  // its queue and time limit are an operator's
  // From Slots, as its queue says: labels of the nodes for its jobs, and the queues whose pods
  // theirs may preempt; absent: all.
  StringMap queue_selector;
  std::optional<std::vector<std::string>> preempted_queues;
  // Nodes that could not start such a pod a short while ago. From Slots, not from the object.
  std::set<NodeId> avoids;
  // For nodes that end or are reserved. Slots clears it while there are none.
  Stay stay{};
};

inline const Demand kPlainDemand;  // for a pod that requests nothing

// Whether every node that fits a pod of one also fits a pod of the other.
bool alike(const Demand& a, const Demand& b);

// A pod requests the sum of its containers, or its largest init container if that is more.
// Of priorityClassName, the priority of Kubernetes' two built-in classes is known here; Slots knows
// the others.
Demand demand_of(const JobObject& object);

// A node's capacity for pods. 0 CPUs or bytes: the agent did not report any, and no request for
// them fits.
Amounts capacity_of(const NodeInfo& node);

// Whether the node's name, labels, taints, cordon and limits admit such a pod. PreferNoSchedule
// does not exclude a node.
bool admits(const NodeInfo& node, const StringMap& labels, const Demand& demand);
// Whether the node enforces the limits of such a pod, or need not (LimitSupport::required).
bool enforces(const NodeInfo& node, const Demand& demand);
// How long such a pod may stay on the node under its NoExecute taints, in milliseconds: 0 if one is
// not tolerated, else the smallest tolerationSeconds; nullopt: forever.
std::optional<Millis> may_stay(const NodeInfo& node, const Demand& demand);
bool has_labels(const StringMap& labels, const StringMap& wanted);
// Whether the node's name and labels match what such a pod and its queue ask for.
bool selects(const NodeInfo& node, const StringMap& labels, const Demand& demand);
// How many PreferNoSchedule taints such a pod does not tolerate; nodes with any are filled last.
uint32_t reluctance(const NodeInfo& node, const Demand& demand);

}  // namespace muster::core
