// IndexMap: the state of each index of an Indexed job, for displays and queries.
//
// Computed on request from the fold and the clock; nothing of it is stored. All indexes are below
// the job's completions, and none is in two sets; an index in no set has no pod yet, or its last
// one was removed uncounted. The map of a job that is not Indexed is empty.
#pragma once

#include "core/index_set.hpp"
#include "core/job/decide.hpp"

namespace muster::core {

struct IndexMap {
  IndexSet succeeded;
  // Failed for good. Without a limit per index, nothing fails for good before the job does; then
  // these are the indexes that were tried and did not succeed.
  IndexSet failed;
  IndexSet running;  // a pod has started and is not known to have ended
  IndexSet pending;  // a pod waits for a slot, or for its first process
  IndexSet backoff;  // failed, and waiting for the delay before its next pod
};

// `knobs`: those of the job (knobs_of). The cost grows with the pods that are open or deferred, the
// indexes tried but not completed, and the intervals of the two terminal sets.
IndexMap index_map(const Job& job, Millis now, const Knobs& knobs);

}  // namespace muster::core
