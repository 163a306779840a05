// QuickEnds: counts the ends of short pods on a node, as the basis of prefetch.
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

using QuickEndsOfNodes = std::map<NodeId, QuickEnds>;

}  // namespace muster::core
