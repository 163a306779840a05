// How far prefetch may go: pods bound to a node beyond its slots, which wait there so that a slot
// that becomes free is filled at once (docs/scheduling.md).
#pragma once

#include <algorithm>
#include <cstdint>

namespace muster::core {

// The most pods that wait on a node with this many slots.
inline uint32_t prefetch_limit(uint32_t slots) {
  return static_cast<uint32_t>(std::min<uint64_t>(4 * uint64_t{slots} + 120, UINT32_MAX));
}

}  // namespace muster::core
