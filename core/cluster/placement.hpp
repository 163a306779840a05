// Placement: free slots x waiting pods -> grants. Pure.
//
// Higher priorities go first. Among equals it is fair: in each round every waiting job gets an
// equal share of what is free, so a job of 10^5 pods does not starve a job of one; who could not
// use its share leaves it to the others. Nodes are filled in order of their free slots, the
// emptiest first, so that work spreads; those with a PreferNoSchedule taint last. A gang gets all
// that it waits for or nothing, so two gangs never hold parts and wait for each other. A job that
// fits nowhere keeps nobody else waiting.
//
// A reservation is the exception: places on named nodes are kept free for a job, as they become
// free, from all that are served after it: lower priorities, and equal ones. It comes from a
// preemption (preemption.hpp), so that the room goes to him for whom it was made, or from
// reservation_for(), so that a job which needs much at once does not starve behind small ones that
// take every slot first.
//
// Always holds: nothing is granted twice or beyond what is free; a slot stays idle only if nobody
// who waits could take it, or for a reservation.
#pragma once

#include "core/cluster/free_node.hpp"

#include <vector>

namespace muster::core {

// For each job that gets any: how many slots on which node. Jobs of one priority are served in the
// order given (those with a reservation first), which the caller rotates so that a remainder does
// not always fall to the same one.
Grants place(std::vector<FreeNode> nodes, std::vector<WaitingJob> jobs);

// The places to reserve for a job that has waited long: of a gang all, else one. `nodes` have
// what could become free for it; earlier ones are taken first. Empty: it would not fit even so.
Reservation reservation_for(const std::vector<FreeNode>& nodes, const WaitingJob& waiting);

}  // namespace muster::core
