// The limits of prefetch. Prefetched pods are bound to a node beyond its slots and wait there, so
// that a slot that becomes free is filled at once (docs/scheduling.md).
#pragma once

#include "base/clock.hpp"
#include "core/quick_ends.hpp"

#include <algorithm>
#include <cstdint>

namespace muster::core {

// A node may get as many extra pods as short ones end there in this time, which spans several of a
// busy node's report lists (ADR 47). So free slots are filled at once where pods are short, and
// nothing waits where pods run for seconds.
inline constexpr Millis kPrefetchSpanMs = 500;
// The most extra pods, at first, for each short pod that has ended there.
inline constexpr uint64_t kPrefetchPerEnd = 16;
// The most pods of one round, so that it ends within 2 ms however many nodes there are. What is
// left is for the next one.
inline constexpr uint32_t kPrefetchPerRound = 500;

// The most pods that wait on a node with this many slots.
inline uint32_t prefetch_limit(uint32_t slots) {
  return static_cast<uint32_t>(std::min<uint64_t>(4 * uint64_t{slots} + 1600, UINT32_MAX));
}

// The number of pods that may wait there. `recent`: the short pods that ended there within the last
// kPrefetchSpanMs. Their run time predicts how many will end in the next.
inline uint32_t prefetch_of(const QuickEnds& recent, uint32_t slots) {
  if (recent.count == 0) return 0;
  const auto each_ms = std::max<uint64_t>(1, static_cast<uint64_t>(recent.ran_ms) / recent.count);
  const uint64_t expected = slots * static_cast<uint64_t>(kPrefetchSpanMs) / each_ms;
  const uint64_t pods =
      std::max<uint64_t>(recent.count, std::min(expected, kPrefetchPerEnd * recent.count));
  return static_cast<uint32_t>(std::min<uint64_t>(pods, prefetch_limit(slots)));
}

}  // namespace muster::core
