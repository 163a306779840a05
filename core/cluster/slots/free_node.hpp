// FreeNode: a node as placement sees it: what is free and which pods it admits.
#pragma once

#include "base/clock.hpp"
#include "core/cluster/slots/demand.hpp"
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

// What a user's pods hold, in slots of the cluster (fair_share.hpp).
struct UserShare {
  double held = 0;
  double weight = 1;
};

struct WaitingJob {
  JobId job = 0;
  uint32_t wanted = 0;
  const Demand* demand = nullptr;            // null: slots only
  const Reservation* reservation = nullptr;  // null: none
  // How many more pods the job's user may have, shared by all of the user's jobs. Null: no limit.
  uint32_t* user_left = nullptr;
  // Its pods by node, for a job that chose to be packed or spread. Null: none.
  const std::map<NodeId, uint32_t>* held = nullptr;
  // A gang some of whose members have slots, which they keep until the others have theirs.
  bool begun = false;
  double cost = 1;            // of one pod, in slots of the cluster (fair_share.hpp)
  double share = 0;           // of all its pods, likewise
  UserShare* user = nullptr;  // shared by all of the user's jobs. Null: one user for all of these
  // When its reservation is likely to be complete, from now. Absent: it is not known.
  std::optional<Millis> starts_in_ms{};
  // How long its next pods are likely to run. Absent: it is not known.
  std::optional<Millis> runs_ms{};
};

// The job's demand, or one that needs only slots.
const Demand& demand_of(const WaitingJob& job);

bool admits(const FreeNode& node, const Demand& demand);
// How many pods fit there now, up to `most`.
uint32_t room_for(const FreeNode& node, const Demand& demand, uint64_t most);
// Takes the slots and resources of `count` pods. If more than fit, nothing is left for others.
void occupy(FreeNode& node, const Demand& demand, uint32_t count);

// The number of slots for each job on each node.
using Grants = std::map<JobId, std::map<NodeId, uint32_t>>;

}  // namespace muster::core
