// IndexMap: the state of each index of an Indexed job, for displays and queries.
//
// Computed on request from the fold and the clock, never stored. All indexes are below the job's
// completions, and none is in two sets. An index in no set has no pod yet, or its last pod was
// removed uncounted. The map is empty for a job that is not Indexed.
#pragma once

#include "core/index_set.hpp"
#include "core/job/rules/decide.hpp"

namespace muster::core {

struct IndexMap {
  IndexSet succeeded;
  // Failed for good. Without a limit per index, no index fails for good before the job does; then
  // these are the indexes that were tried and did not succeed.
  IndexSet failed;
  IndexSet cancelled;  // for good (held.hpp)
  IndexSet running;    // a pod has started and is not known to have ended
  IndexSet pending;    // a pod waits for a slot, or for its first process
  IndexSet backoff;    // failed, and waiting for the delay before its next pod
};

// `knobs`: the job's (knobs_of). The cost grows with the number of open and deferred pods, of
// indexes tried but not completed, and of intervals in the two terminal sets.
IndexMap index_map(const Job& job, Millis now, const Knobs& knobs);

}  // namespace muster::core
