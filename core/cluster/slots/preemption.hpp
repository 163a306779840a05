// Preemption: which pods of lower priority must end so that one of a higher priority fits. Pure.
//
// Each waiting pod takes the cheapest place: where the highest priority among the victims is
// lowest, then where the fewest pods must end. On a node, the lowest priorities end first, and pods
// that turn out not to be in the way stay. What is free, or will be once earlier victims have
// ended, is used before anything is preempted. The result lists the job's places, so that they can
// be reserved; otherwise the victims' replacements would take them.
//
// Invariants: no pod is preempted for a job of the same or a lower priority, for one whose queue
// may not preempt those of its queue, if it would not help, or for a gang that would not fit as a
// whole.
#pragma once

#include "core/cluster/slots/waiting.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace muster::core {

// Slots that a job holds on a node and has not been asked to give up.
struct Holder {
  JobId job = 0;
  NodeId node = kNoNode;
  uint32_t slots = 0;
  const Demand* demand = nullptr;  // null: slots only, priority 0
};

struct MadeRoom {
  Grants victims;      // slots to take back, by job and node
  Reservation places;  // for the waiting pods: free slots, or slots of victims
};

// Whether the queue of such a pod may preempt those of the holder's queue.
bool may_preempt(const Demand& demand, const Demand& holder);

// Call make_room() for one job after another, highest priority first. Each job gets what the
// previous ones left.
class Preemption {
 public:
  // `nodes`: what is free, or will be without further preemption.
  Preemption(std::vector<FreeNode> nodes, std::vector<Holder> holders);
  MadeRoom make_room(const WaitingJob& waiting);
  size_t looks() const { return looks_; }  // at nodes, and holders there, so far

 private:
  struct Site {
    FreeNode node;
    std::vector<Holder> holders;  // lowest priority first
  };
  using Victims = std::vector<std::pair<size_t, uint32_t>>;  // index of the holder, slots
  static void vacate(Site& site, const Holder& holder, uint32_t count);
  static std::optional<Victims> cheapest(const Site& site, const Demand& demand);

  std::vector<Site> sites_;
  size_t looks_ = 0;
  std::vector<const Demand*> hopeless_;  // no room for such pods at this priority or below
};

}  // namespace muster::core
