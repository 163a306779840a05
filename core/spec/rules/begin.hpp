// When the first pods of a new job may be created: not before muster.dev/begin, and with
// muster.dev/hold not before someone releases it (ADR 77).
#pragma once

#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/violations.hpp"

#include <optional>

namespace muster::core {

// Absent, too, if it is malformed.
std::optional<Millis> begin_of(const StringMap& annotations);
bool created_on_hold(const StringMap& annotations);

void validate_begin(const StringMap& annotations, Violations& found);
// `started`: the job has its startTime.
void validate_begin_change(const StringMap& before, const StringMap& now, bool started,
                           Violations& found);

}  // namespace muster::core
