// How long pods ran: the ends of short pods on a node, as the basis of prefetch, and of all pods of
// a job, as the basis of what is expected of its next ones.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"

#include <cstdint>
#include <map>

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

using QuickEndsOfNodes = std::map<NodeId, QuickEnds>;

}  // namespace muster::core
