// Placement: free slots x waiting pods -> grants. Pure.
//
// Higher priorities go first. At equal priority, queues, their users and the jobs of each share
// fairly (fair_share.hpp); what a job cannot use goes to the others. A gang gets slots for all its
// waiting pods or for none. A running gang gets its missing slots before others of equal priority
// get any, so gangs cannot deadlock: without them, the slots that it holds would never become free.
// A job that fits nowhere does not block others.
//
// Which nodes are filled first is the site's choice. Packed, those that are in use, the fullest
// first, then idle ones, the smallest first: whole nodes stay free or become free, for pods that
// need them. Spread, those with the most free slots; but while a gang waits, or a pod that takes
// several slots' worth, others fill the fullest nodes first. For a job that chose for itself, and
// for a gang where the site packs, arrangement.hpp picks the nodes. For a job with preferences,
// nodes with the highest weight come first. Nodes with a PreferNoSchedule taint come last.
//
// Reservations are the exception: as their places become free, they are kept for one job from all
// jobs served after it (of lower or equal priority). They come from a preemption (preemption.hpp),
// so that the job gets the room made for it, or from a plan (reservation.hpp), so that a job that
// needs much at once does not starve behind small ones that take every slot first. Until the plan
// is due, its free places are lent to pods that are likely to end before.
//
// Invariants: nothing is granted twice, or beyond what is free or what a user may have; a slot
// stays idle only if it is reserved or no waiting pod could use it.
#pragma once

#include "core/cluster/slots/waiting.hpp"

#include <vector>

namespace muster::core {

// Slots that a job got on a node.
struct Placed {
  WaitingJob* job = nullptr;
  NodeId node = kNoNode;
  uint32_t pods = 0;
};

// Jobs of equal priority are served by their turns, from `first_turn` on: running gangs first, then
// jobs with a reservation, which are those in `reserved`. The caller moves the first turn so that a
// remainder does not always go to the same job. What jobs got is counted in `waiting`; jobs that
// want nothing any more stay in. `site`: for jobs that did not choose.
std::vector<Placed> place(std::vector<FreeNode> nodes, WaitingJobs& waiting,
                          const std::vector<WaitingJob*>& reserved, uint64_t first_turn,
                          PlacementChoice site);
// Likewise, but only plain jobs of one line, which are no gangs and request no resources; nodes
// with the most room come first. For places in which pods wait for their turn: they are taken where
// most pods end, and none of them keeps a node from becoming free.
std::vector<Placed> place_plain(std::vector<FreeNode> nodes, WaitingJobs& waiting, Line& line,
                                const std::vector<WaitingJob*>& reserved, uint64_t first_turn);
// For jobs that wait only now, in the given order.
Grants place(std::vector<FreeNode> nodes, std::vector<WaitingJob> jobs,
             PlacementChoice site = PlacementChoice::pack);

}  // namespace muster::core
