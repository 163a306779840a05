// JobClock: the time of one job within one run of the coordinator.
//
// It starts at the wall clock, but never before the job's last record, and advances with a clock
// that never jumps. So changes of the wall clock neither delay a job's backoff and deadlines nor
// bring them forward; if the wall clock is wrong when a run starts, the next run corrects it.
#pragma once

#include "base/clock.hpp"

#include <algorithm>

namespace muster::core {

class JobClock {
 public:
  JobClock() = default;
  // `elapsed_ms`: from a clock that never jumps.
  JobClock(Millis wall_ms, Millis elapsed_ms, Millis last_record_ms)
      : began_ms_(std::max(wall_ms, last_record_ms)), from_ms_(elapsed_ms) {}

  Millis now(Millis elapsed_ms) const {
    return began_ms_ + std::max<Millis>(0, elapsed_ms - from_ms_);
  }

 private:
  Millis began_ms_ = 0;  // job time at from_ms_
  Millis from_ms_ = 0;
};

}  // namespace muster::core
