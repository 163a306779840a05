// FreeNode: a node as placement sees it: what is free there, and who may come.
#pragma once

#include "core/cluster/demand.hpp"
#include "core/ids.hpp"

#include <cstdint>
#include <map>

namespace muster::core {

struct FreeNode {
  NodeId node = kNoNode;
  uint32_t free = 0;               // slots
  Amounts room;                    // free resources; below zero: more is taken than there is
  const NodeInfo* info = nullptr;  // its taints; none: admits everybody
  const StringMap* labels = nullptr;
  uint32_t over = 0;  // pods beyond its slots; as many must end before a slot is free
};

// Places on nodes that are reserved for pods that wait.
using Reservation = std::map<NodeId, uint32_t>;

struct WaitingJob {
  JobId job = 0;
  uint32_t wanted = 0;
  const Demand* demand = nullptr;            // none: nothing but slots
  const Reservation* reservation = nullptr;  // places that are reserved for it; none: none
};

// What a job that waits asks for; of one that was given none: slots, and nothing else.
const Demand& demand_of(const WaitingJob& job);

bool admits(const FreeNode& node, const Demand& demand);
// How many pods fit there now, at most `most`.
uint32_t room_for(const FreeNode& node, const Demand& demand, uint64_t most);
// Slots and resources of `count` pods are taken. More than fit: nothing is left for others.
void occupy(FreeNode& node, const Demand& demand, uint32_t count);

// For each job: how many slots on which node.
using Grants = std::map<JobId, std::map<NodeId, uint32_t>>;

}  // namespace muster::core
