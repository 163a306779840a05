// Sentences about who holds a job or changed its priority, and why.
#pragma once

#include "core/job/facts/record.hpp"

#include <string>

namespace muster::core {

// The types of the conditions by which a Job's status shows them.
inline constexpr char kHeldCondition[] = "muster.dev/Held";
inline constexpr char kPriorityCondition[] = "muster.dev/Priority";

// "olga holds the job: the license server is down; only operators can release it"
std::string hold_text(const JobHeld& hold);
// "olga set the priority of its pods to 100"
std::string priority_text(const PrioritySet& set);

}  // namespace muster::core
