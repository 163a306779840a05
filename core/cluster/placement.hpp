// Placement: free slots x waiting pods -> grants. Pure.
//
// Higher priorities go first. Among equals it is fair: in each round every waiting job gets an
// equal share of what is free, so a job of 10^5 pods does not starve a job of one; who could not
// use its share leaves it to the others. Nodes are filled in order of their free slots, the
// emptiest first, so that work spreads; those with a PreferNoSchedule taint last. A gang gets all
// that it waits for or nothing, so two gangs never hold parts and wait for each other. A job that
// fits nowhere keeps nobody else waiting.
//
// preempt() says which pods of lower priority have to go so that one of a higher priority fits.
#pragma once

#include "core/cluster/demand.hpp"
#include "core/ids.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace muster::core {

struct FreeNode {
  NodeId node = kNoNode;
  uint32_t free = 0;               // slots
  Amounts room;                    // free resources
  const NodeInfo* info = nullptr;  // its taints; none: admits everybody
  const StringMap* labels = nullptr;
};

struct WaitingJob {
  JobId job = 0;
  uint32_t wanted = 0;
  const Demand* demand = nullptr;  // none: nothing but slots
};

using Grants = std::map<JobId, std::map<NodeId, uint32_t>>;

// For each job that gets any: how many slots on which node. Jobs of one priority are served in the
// order given, which the caller rotates so that a remainder does not always fall to the same one.
Grants place(std::vector<FreeNode> nodes, std::vector<WaitingJob> jobs);

// Slots that a job holds on a node.
struct Holder {
  JobId job = 0;
  NodeId node = kNoNode;
  uint32_t slots = 0;
  const Demand* demand = nullptr;
};

// Slots of lower priority to take back, by job and node, so that `waiting` fits; lowest priorities
// first, nothing when it would not help. `nodes` has what is free, or will be without this.
Grants preempt(std::vector<FreeNode> nodes, const WaitingJob& waiting, std::vector<Holder> holders);

}  // namespace muster::core
