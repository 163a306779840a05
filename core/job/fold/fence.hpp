// How long pods of a job with muster.dev/fence-after may outlive their node's contact with the
// coordinator (ADR 35). Until then, none of them is replaced.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"
#include "core/job/fold/job.hpp"

namespace muster::core {

// Counts from the last answer to the node. Measure it with a clock that cannot be set. 0: the node
// has no pod of this job, or the job does not have the annotation.
Millis fence_wait_ms(const Job& job, NodeId node);

}  // namespace muster::core
