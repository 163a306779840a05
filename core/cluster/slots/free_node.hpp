// FreeNode: a node as placement sees it: what is free and which pods it admits.
#pragma once

#include "base/clock.hpp"
#include "core/cluster/nodes/demand.hpp"
#include "core/ids.hpp"

#include <cstdint>
#include <map>
#include <optional>

namespace muster::core {

struct FreeNode {
  NodeId node = kNoNode;
  uint32_t free = 0;               // slots
  Amounts room;                    // free resources; negative: overcommitted
  const NodeInfo* info = nullptr;  // null: admits every pod
  const StringMap* labels = nullptr;
  uint32_t over = 0;  // pods beyond its slots; this many must end before a slot becomes free
  const NodeEnds* ends = nullptr;  // null: it neither ends nor is reserved
  Millis wall_ms = 0;              // when pods would start, on the clock of `ends`
};

// Number of places reserved for waiting pods, by node.
using Reservation = std::map<NodeId, uint32_t>;

bool admits(const FreeNode& node, const Demand& demand);
// How many pods fit there now, up to `most`.
uint32_t room_for(const FreeNode& node, const Demand& demand, uint64_t most);
// Takes the slots and resources of `count` pods. If more than fit, nothing is left for others.
void occupy(FreeNode& node, const Demand& demand, uint32_t count);

}  // namespace muster::core
