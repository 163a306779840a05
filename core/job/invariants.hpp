// Invariants: what always holds of a job's status (job-semantics 1.5).
#pragma once

#include "core/job/job.hpp"

#include <string>

namespace muster::core {

// The first of them that does not hold, as a sentence; empty: all hold. Cheap: nothing here grows
// with the job.
std::string broken_rule(const Job& job);

}  // namespace muster::core
