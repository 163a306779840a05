// Updates: what may change in a Job that exists (job-semantics 1.5).
#pragma once

#include "core/spec/job_spec.hpp"
#include "core/spec/violations.hpp"

#include <cstdint>

namespace muster::core {

// What the old job's status says about whether pods may be running.
struct ObservedStatus {
  bool suspended_condition = false;  // Suspended is True
  int64_t active = 0;
  bool start_time_present = false;
};

// All creation rules on the new job, then the update's own.
Violations validate_update(const JobMeta& old_meta, const JobSpec& old_spec,
                           const JobMeta& new_meta, const JobSpec& new_spec,
                           const ObservedStatus& observed);

}  // namespace muster::core
