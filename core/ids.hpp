// Ids of jobs, nodes and pods.
//
// A pod is one attempt at one index of one job. The triple is never reused, since the late end of
// an old pod would then count for a new one: job ids come from blocks reserved on disk, and the
// attempts of an index only rise. A NonIndexed job numbers its pods: `index` is the pod's number
// and `attempt` is 0.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace muster {

using JobId = uint64_t;
// One incarnation of a node: one boot of one work-dir under one name. Assigned by the coordinator,
// never reused.
using NodeId = uint32_t;
constexpr NodeId kNoNode = 0;

// A pod within its job.
struct PodKey {
  uint32_t index = 0;
  uint32_t attempt = 0;
  auto operator<=>(const PodKey&) const = default;
};

struct PodId {
  JobId job = 0;
  uint32_t index = 0;
  uint32_t attempt = 0;
  auto operator<=>(const PodId&) const = default;
  PodKey key() const { return {index, attempt}; }
};

inline std::string to_string(PodKey key) {
  return std::to_string(key.index) + "#" + std::to_string(key.attempt);
}
inline std::string to_string(PodId pod) {
  return "j" + std::to_string(pod.job) + "/" + to_string(pod.key());
}

}  // namespace muster

template <>
struct std::hash<muster::PodKey> {
  size_t operator()(muster::PodKey k) const noexcept {
    return std::hash<uint64_t>{}((uint64_t{k.index} << 32 | k.attempt) * 0x9e3779b97f4a7c15u);
  }
};
