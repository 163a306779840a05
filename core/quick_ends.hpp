// QuickEnds: ends of short pods on a node, on which prefetch is based.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"

#include <cstdint>
#include <map>

namespace muster::core {

// A pod that exited within this time of its start is short.
inline constexpr Millis kQuickMs = 500;

struct QuickEnds {
  uint32_t count = 0;
  Millis ran_ms = 0;  // all of them together
  bool operator==(const QuickEnds&) const = default;
};

using QuickEndsOfNodes = std::map<NodeId, QuickEnds>;

}  // namespace muster::core
