// What the next attempt of an index gets after one that ran out of memory or time (ADR 76).
//
// muster.dev/retry-memory: "8Gi,16Gi" and muster.dev/retry-time: "2h,8h" list what follows the
// memory limit of the pod's container and the pod's time limit, in ascending order. Admission
// checks both; reading ignores a malformed list, so a stored job can always be read. They cannot be
// changed: what an attempt had follows from its steps.
#pragma once

#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/steps.hpp"
#include "core/spec/values/violations.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::core {

struct RetrySteps {
  std::vector<std::string> memory;  // quantities, as written
  std::vector<int64_t> time_s;
};

RetrySteps retry_steps(const StringMap& annotations);

void validate_retry_steps(const StringMap& annotations, const JobSpec& spec, Violations& found);

// What a pod of the job with these steps has; absent: no limit.
std::optional<std::string> memory_of(const JobObject& object, Steps steps);  // a quantity
std::optional<int64_t> time_limit_of(const JobObject& object, Steps steps);  // seconds

// Gives the object's template the limits of these steps, and the request for memory, too.
void raise(JobObject& object, Steps steps);

}  // namespace muster::core
