// IndexMap: where each index of an Indexed job stands, for pictures and for those who ask which.
//
// Made from the fold and the clock when somebody asks; nothing of it is kept. Every set lies below
// the job's completions and no index is in two of them; an index in none has no pod yet, or its
// last one was removed uncounted. A job that is not Indexed has an empty map.
#pragma once

#include "core/index_set.hpp"
#include "core/job/decide.hpp"

namespace muster::core {

struct IndexMap {
  IndexSet succeeded;
  // Failed for good. In a job without a limit per index nothing fails for good before the job does:
  // then it is what was tried and did not succeed.
  IndexSet failed;
  IndexSet running;  // processes of a pod were started and are not known to be over
  IndexSet pending;  // a pod waits for a slot, or for its first process
  IndexSet backoff;  // failed, and the delay before the next pod is not over
};

// `knobs`: those of the job (knobs_of). Costs as much as there is open, deferred, and tried but
// not completed, and as many intervals as the two terminal sets have.
IndexMap index_map(const Job& job, Millis now, const Knobs& knobs);

}  // namespace muster::core
