// The annotation muster.dev/signal: a signal that a pod gets some time before its time limit
// (activeDeadlineSeconds), so that it can save its work.
//
//   muster.dev/signal: USR1@2m      to all processes of the pod's process groups
//   muster.dev/signal: B:USR1@2m    to the first process of each container only, such as a script
//
// The time is a duration, or a number of seconds as in `sbatch --signal`; without it, a minute.
#pragma once

#include "base/result.hpp"
#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/violations.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::core {

constexpr std::string_view kSignalKey = "muster.dev/signal";

struct LimitSignal {
  uint8_t number = 0;
  Millis before_ms = 60'000;  // the limit
  bool first_only = false;    // not to descendants
  bool operator==(const LimitSignal&) const = default;
};

// invalid: what would be right.
Result<LimitSignal> parse_limit_signal(std::string_view text);

// Absent or malformed: none.
std::optional<LimitSignal> limit_signal_of(const StringMap& annotations);

// It requires a time limit.
void validate_limit_signal(const StringMap& annotations, const JobSpec& spec, Violations& found);

}  // namespace muster::core
