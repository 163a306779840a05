// Updates: what may change in an existing Job (job-semantics 1.5).
#pragma once

#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/violations.hpp"

#include <cstdint>

namespace muster::core {

// The old job's state as far as updates depend on it: whether pods may be running, and whether it
// is being deleted.
struct ObservedStatus {
  bool suspended_condition = false;  // Suspended is True
  int64_t active = 0;
  bool start_time_present = false;
  bool deleting = false;
};

// Applies all creation rules to the new job, then those for updates.
Violations validate_update(const JobMeta& old_meta, const JobSpec& old_spec,
                           const JobMeta& new_meta, const JobSpec& new_spec,
                           const ObservedStatus& observed);

}  // namespace muster::core
