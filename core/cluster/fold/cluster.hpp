// Cluster: a fold over records of nodes, and the slots on them.
//
// apply(record) is the only thing that changes a node; it evaluates no rule. decide() (decide.hpp)
// looks at the cluster and returns records and effects. Slots (slots.hpp) are a value beside the
// nodes: nothing about them is durable, so no record mentions them. apply() tells them which nodes
// there are and take pods, decide() passes on what jobs want and free.
//
// Invariants: an id is one incarnation and is never reused; a name has at most one incarnation that
// is not gone; an incarnation that is gone stays gone, and no slot on it is granted or held.
#pragma once

#include "core/cluster/fold/record.hpp"
#include "core/cluster/nodes/epoch_line.hpp"
#include "core/cluster/nodes/lease.hpp"
#include "core/cluster/nodes/start_watch.hpp"
#include "core/cluster/slots/slots.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::core::cluster {

struct Settings {
  std::string cluster_id;
  std::string cluster_key;  // given to agents that register; proves that they served this cluster
  EpochLine line;           // ends with this start
  Millis node_grace_ms = 40'000;
  bool require_limits = false;  // keep pods with limits off nodes that do not enforce them
  SlotsSettings slots{};
  NotedUses noted{};          // the last UsesNoted before this start
  Millis started_ms = 0;      // wall-clock time of this start
  bool await_queues = false;  // place nothing before the first QueuesChanged
};

class Cluster {
 public:
  struct Node {
    NodeInfo info;
    Lease lease{};
    std::optional<uint64_t> link{};  // the number of its session, while connected
    StartWatch starts{};
  };

  // `nodes`: the rows of all incarnations, those that are gone included.
  Cluster(Settings settings, const std::vector<NodeInfo>& nodes);

  void apply(const Record& record);

  const Settings& settings() const { return settings_; }
  const std::map<NodeId, Node>& nodes() const { return nodes_; }
  const Node* node(NodeId id) const;  // nullptr: none has this id
  // The incarnation of this name that is not gone; kNoNode: none.
  NodeId living(const std::string& name) const;
  // The newest incarnation of this name; kNoNode: there is none, or it was deleted.
  NodeId newest(const std::string& name) const;
  NodeId next_id() const { return last_id_ + 1; }
  // Those that get no pods but probes (start_watch.hpp).
  const std::set<NodeId>& closed() const { return closed_; }
  // Names on record that have not registered since the start.
  const std::set<std::string>& awaited() const { return awaited_; }

  const NotedUses& noted() const { return noted_; }

  Slots& slots() { return slots_; }
  const Slots& slots() const { return slots_; }
  // The jobs whose last grant had `keep`.
  std::set<JobId>& keepers() { return keepers_; }
  // Whether it is known which queues there are.
  bool& queues_known() { return queues_known_; }
  // Whether the last ShowShares said anything, when it was made, and whether the next round makes
  // one.
  bool& shares_shown() { return shares_shown_; }
  Millis& shares_up_ms() { return shares_up_ms_; }
  bool& shares_due() { return shares_due_; }
  // When it was last looked whether windows begin or end, on the wall clock.
  Millis& looked_at_windows_ms() { return looked_at_windows_ms_; }

 private:
  friend struct NodeApplier;
  void end(NodeId id, Millis at_ms);
  void tell_slots(NodeId id);

  const Settings settings_;
  std::map<NodeId, Node> nodes_;
  std::map<std::string, NodeId> living_;
  std::set<std::string> awaited_;
  std::set<NodeId> closed_;
  NodeId last_id_ = 0;
  NotedUses noted_;
  Slots slots_;
  std::set<JobId> keepers_;
  bool shares_shown_ = false;
  bool shares_due_ = false;
  Millis shares_up_ms_ = 0;
  bool queues_known_ = false;
  Millis looked_at_windows_ms_ = 0;
};

}  // namespace muster::core::cluster
