// The invariants of a job's status (job-semantics 1.5).
#pragma once

#include "core/job/fold/job.hpp"

#include <string>

namespace muster::core {

// The first violated invariant, as a sentence; empty: all hold. Cheap: the cost does not grow with
// the number of pods.
std::string broken_rule(const Job& job);

}  // namespace muster::core
