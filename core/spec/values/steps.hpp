// Steps: how much more than its template says a pod gets, because earlier pods of its index ran out
// of memory or time (muster.dev/retry-memory and muster.dev/retry-time).
//
// Pods of a job with the same steps require the same of a node. Placement, which knows one demand
// for each job, sees those with other steps than none as a job of their own (in_steps).
#pragma once

#include "core/ids.hpp"

#include <compare>
#include <cstdint>

namespace muster::core {

// Of each kind; four bits hold their number.
inline constexpr uint8_t kRetryStepsMax = 8;

struct Steps {
  uint8_t memory = 0;  // 0: as the template says; N: the Nth step of its list
  uint8_t time = 0;    // likewise
  auto operator<=>(const Steps&) const = default;
  constexpr bool any() const { return memory != 0 || time != 0; }
  constexpr int32_t taken() const { return memory + time; }
};

// Ids of jobs stay below this.
inline constexpr JobId kJobIds = JobId{1} << 56;

// The id under which pods of the job with these steps are placed; without steps, the job's own.
constexpr JobId in_steps(JobId job, Steps steps) {
  return job | JobId{steps.memory} << 60 | JobId{steps.time} << 56;
}
constexpr JobId job_of(JobId placed) {
  return placed & (kJobIds - 1);
}
constexpr Steps steps_of(JobId placed) {
  return {static_cast<uint8_t>(placed >> 60), static_cast<uint8_t>(placed >> 56 & 15)};
}

// Calls f(Steps) for all that there can be but none.
template <class F>
constexpr void each_steps(F f) {
  for (uint8_t memory = 0; memory <= kRetryStepsMax; ++memory)
    for (uint8_t time = 0; time <= kRetryStepsMax; ++time)
      if (memory != 0 || time != 0) f(Steps{memory, time});
}

}  // namespace muster::core
