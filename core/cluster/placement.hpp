// Placement: free slots x waiting pods -> grants. Pure.
//
// Higher priorities go first. Equal ones share fairly: in each round every waiting job gets an
// equal share of what is free, so a job of 10^5 pods does not starve a job of one; what a job
// cannot use goes to the others. Nodes with the most free slots are filled first, so that work
// spreads; those with a PreferNoSchedule taint last; for a job with preferences, those of the
// highest weight first. A gang gets slots for all its waiting pods or
// none, and a gang that runs gets the missing ones before its equals get any, so gangs cannot
// deadlock: what it holds would not become free without them. A job that fits nowhere blocks no
// other. A job that chose to be packed or spread takes its nodes as arrangement.hpp says.
//
// Reservations are the exception: their places are kept free for a job, as they become free, from
// all jobs served after it (of lower or equal priority). They come from a preemption
// (preemption.hpp), so that the job gets the room made for it, or from reservation_for(), so that a
// job that needs much at once does not starve behind small ones that take every slot first.
//
// Always holds: nothing is granted twice, beyond what is free or beyond what a user may have; a
// slot stays idle only if no waiting pod could use it or it is reserved.
#pragma once

#include "core/cluster/free_node.hpp"

#include <vector>

namespace muster::core {

// Jobs of equal priority are served in the given order, gangs that run first, then those with a
// reservation. The caller rotates the order so that a remainder does not always go to the same job.
Grants place(std::vector<FreeNode> nodes, std::vector<WaitingJob> jobs);

// The places to reserve for a job that has waited long: all for a gang, else one. `nodes`: what
// could become free for it, in order of preference. Empty: it would not fit even then.
Reservation reservation_for(const std::vector<FreeNode>& nodes, const WaitingJob& waiting);

}  // namespace muster::core
