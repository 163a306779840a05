// Misfits: why a pod gets no node, node by node, for `muster why` and for a pod's PodScheduled.
#pragma once

#include "api/view/model/view.hpp"
#include "core/cluster/nodes/demand.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace muster::api {

// What the pods that are bound take now.
struct Taken {
  std::map<NodeId, uint32_t> slots;
  std::map<NodeId, core::Amounts> amounts;
  std::map<uint32_t, uint64_t> pods_of;  // by the uid of their owner
};
// Looks at every pod that has not ended.
Taken taken_now(const View& view);

// The first resource of which there is less than one pod requests, with both amounts in its unit.
struct Shortage {
  std::string resource;  // cpu, memory or nvidia.com/gpu
  int64_t requested = 0;
  int64_t there = 0;
};

// Nodes that one more such pod does not fit on, by the reason.
struct Misfits {
  struct Nodes {
    std::vector<std::string> names;
    std::optional<Shortage> most;  // of the node that has most
  };
  uint64_t all = 0, fit = 0;               // nodes
  std::map<std::string, uint64_t> briefs;  // "full"; how many
  // By brief and text ("all 2 slots are in use"); of nodes that fit, the brief is empty.
  std::map<std::pair<std::string, std::string>, Nodes> reasons;
};
// What a pod of the job with these steps requires of a node.
core::Demand demand_with(const core::Job& job, core::Steps steps);
// With the nodes that the job keeps away from.
core::Demand demand_now(const core::Job& job, core::Steps steps, Millis now);
Misfits misfits(const View& view, const core::Demand& demand, const Taken& taken, Millis now);

// How many such pods, and how many slots, the nodes that it may use would have room for, were they
// empty.
struct Places {
  uint64_t pods = 0, slots = 0;
};
Places places_of(const View& view, const core::Demand& demand);

// Nodes that may run such a pod and do not enforce its memory limit: "c01, c02 and 3 others: no
// cgroup controllers". Empty: it has none, or all of them enforce it.
std::string unlimited_nodes(const View& view, const core::Demand& demand);

// "1 slot", "2 slots".
std::string count(uint64_t n, const std::string& what);
// "the pod requests 4 cpu; at most 2 free": a key of Misfits::reasons with its nodes.
std::string reason_text(const std::string& brief, const std::string& text,
                        const Misfits::Nodes& nodes);
// As Kubernetes' scheduler says it: "0/4 nodes are available: 3 Insufficient cpu, 1 node(s) …".
// Empty if it fits somewhere.
std::string scheduling_text(const Misfits& misfits);

// The scheduling texts of jobs, made at most once a second.
class SchedulingTexts {
 public:
  explicit SchedulingTexts(const View& view) : view_(view) {}
  const std::string& of(const core::Job& job, core::Steps steps, Millis now);

 private:
  static constexpr Millis kFreshMs = 1000;
  const View& view_;
  Millis made_ms_ = 0;
  Taken taken_;
  std::unordered_map<JobId, std::string> texts_;  // by in_steps()
};

}  // namespace muster::api
