// Sentences about who holds a job or overrides what its object says, and why.
#pragma once

#include "core/job/facts/record.hpp"

#include <string>

namespace muster::core {

// The types of the conditions by which a Job's status shows them.
inline constexpr char kHeldCondition[] = "muster.dev/Held";
inline constexpr char kOverridesCondition[] = "muster.dev/Overrides";

// "olga holds the job: the license server is down; only operators can release it"
std::string hold_text(const JobHeld& hold);
// "set by olga: priority 100, queue gpu"
std::string overrides_text(const OverridesSet& set);

}  // namespace muster::core
