// How far prefetch may go: pods bound to a node beyond its slots, which wait there so that a slot
// that becomes free is filled at once (docs/scheduling.md).
#pragma once

#include "base/clock.hpp"

#include <algorithm>
#include <cstdint>

namespace muster::core {

// As many pods may wait on a node as short ones ended there in this time, several round trips with
// their syncs: a free slot is filled at once where pods are short, and nothing waits where they run
// for seconds...
inline constexpr Millis kPrefetchSpanMs = 200;

// ...and no more than this, on a node with so many slots.
inline uint32_t prefetch_limit(uint32_t slots) {
  return static_cast<uint32_t>(std::min<uint64_t>(4 * uint64_t{slots} + 400, UINT32_MAX));
}

}  // namespace muster::core
