// What a job tells the cluster of its pods' ends: how long they ran (of short pods on each node, as
// the basis of prefetch, and of all, as the basis of what is expected of the next ones), and which
// could not be started.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace muster::core {

// A pod is short if it exited within this time of its start.
inline constexpr Millis kQuickMs = 500;

struct QuickEnds {
  uint32_t count = 0;
  Millis ran_ms = 0;  // total run time
  bool operator==(const QuickEnds&) const = default;
};

// Pods that exited by themselves.
struct RunTimes {
  uint32_t count = 0;
  Millis total_ms = 0;
  void add(const RunTimes& other) {
    count += other.count;
    total_ms += other.total_ms;
  }
  bool operator==(const RunTimes&) const = default;
};

// Starts of a job's pods that a node could not make for a reason of its own.
struct FailedStarts {
  uint32_t pods = 0;
  std::string why;  // what the first of them said
  bool operator==(const FailedStarts&) const = default;
};

using QuickEndsOfNodes = std::map<NodeId, QuickEnds>;

}  // namespace muster::core
