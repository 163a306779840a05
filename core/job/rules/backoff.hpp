// When the delay after a failure is over (job-semantics 5.2, 5.3).
#pragma once

#include "core/job/fold/job.hpp"
#include "core/job/rules/decide.hpp"

namespace muster::core {

// The coordinator's knobs, overridden by the job's annotations.
Knobs knobs_of(const Knobs& coordinator, const JobObject& object);

// When the next pod of this index may be created, given the delay after the failed pod that it
// replaces. 0: there is no delay.
Millis index_due(const Job& job, const Knobs& knobs, uint32_t index);

// Likewise for all pods of a job without backoffLimitPerIndex.
Millis job_due(const Job& job, const Knobs& knobs);

}  // namespace muster::core
