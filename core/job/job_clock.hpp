// JobClock: the time of one job within a run of the coordinator.
//
// It begins with the wall clock, but never behind the job's last record, and goes on with a clock
// that never jumps. So a wall clock that is set forward and right again neither holds up a job's
// backoff and deadlines nor brings them early; what is wrong when a run begins is put right by the
// next one.
#pragma once

#include "base/clock.hpp"

#include <algorithm>

namespace muster::core {

class JobClock {
 public:
  JobClock() = default;
  // `elapsed_ms`: of a clock that never jumps.
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
