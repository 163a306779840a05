// How long the pods of a job with muster.dev/fence-after may outlive their node's contact with the
// coordinator (ADR 35). Until then none of them is replaced.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"
#include "core/job/job.hpp"

namespace muster::core {

// Counted from the last answer to the node, and to be waited for on a clock that nobody sets. 0:
// the node has no pod of this job, or the job does not ask for it.
Millis fence_wait_ms(const Job& job, NodeId node);

}  // namespace muster::core
