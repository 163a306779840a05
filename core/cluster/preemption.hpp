// Preemption: which pods of lower priority have to go so that one of a higher priority fits. Pure.
//
// For one waiting pod after the other the cheapest place is taken: where the highest priority that
// goes is lowest, then where the fewest go. On a node the lowest go first, and who turns out not to
// be in the way stays. What is free, or will be when those who were told to go have gone, is used
// before anybody is told. The answer names the places that the job is to have, so that they can be
// reserved for it; without that the victims' own replacements would take them.
//
// Always holds: nobody goes for a job of the same or a lower priority; nobody goes where it would
// not help; of a gang that would not fit as a whole, nobody.
#pragma once

#include "core/cluster/free_node.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace muster::core {

// Slots that a job holds on a node, and was not told to give up.
struct Holder {
  JobId job = 0;
  NodeId node = kNoNode;
  uint32_t slots = 0;
  const Demand* demand = nullptr;  // none: nothing but slots, priority 0
};

struct MadeRoom {
  Grants victims;      // slots to take back, by job and node
  Reservation places;  // for the pods that wait; on them are free slots, or victims
};

// Asked for one job after the other, highest priorities first: each finds what the ones before it
// left.
class Preemption {
 public:
  // `nodes` have what is free, or will be without this.
  Preemption(std::vector<FreeNode> nodes, std::vector<Holder> holders);
  MadeRoom make_room(const WaitingJob& waiting);

 private:
  struct Site {
    FreeNode node;
    std::vector<Holder> holders;  // lowest priority first
  };
  using Victims = std::vector<std::pair<size_t, uint32_t>>;  // of holders, how many slots
  static void vacate(Site& site, const Holder& holder, uint32_t count);
  static std::optional<Victims> cheapest(const Site& site, const Demand& demand);

  std::vector<Site> sites_;
  std::vector<const Demand*> hopeless_;  // with these priorities no room can be made for such a pod
};

}  // namespace muster::core
