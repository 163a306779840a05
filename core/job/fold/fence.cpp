#include "core/job/fold/fence.hpp"

#include "core/spec/fields/annotations.hpp"

#include <algorithm>

namespace muster::core {

namespace {

// Allows for delays in scheduling the keeper and for clocks that run at different rates.
constexpr Millis kSlackMs = 2'000;

}  // namespace

Millis fence_wait_ms(const Job& job, NodeId node) {
  const auto& open = job.state().open;
  if (std::none_of(open.begin(), open.end(),
                   [node](const auto& one) { return one.second.node == node; }))
    return 0;
  const auto after_ms = read_annotations(job.object().meta.annotations).fence_after_ms;
  if (!after_ms) return 0;
  const Millis grace_ms = job.spec().pod.termination_grace_s.value_or(30) * 1000;
  return *after_ms + *after_ms / 1000 + grace_ms + kSlackMs;
}

}  // namespace muster::core
