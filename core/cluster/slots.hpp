// Slots: who holds and who waits for slots and resources, and who gets what becomes free.
//
// Nothing here is durable: what is held is told at a start and returned by the jobs, what waits
// is asked again. A job is known while it waits for slots or holds some, and forgotten then.
//
// Slots go by place(); beyond that, in this order:
//  - a job that needs much at once (a gang, pods with requests) and has waited for kPatienceMs has
//    places reserved for it, one such job at a time, so no two keep parts from each other;
//  - a job of a higher priority has pods of lower ones told to go, and what they leave is reserved
//    for it until it has it; what was told to go and has not gone yet counts as free to come, so
//    nobody is told twice for one need;
//  - from a node with a taint NoExecute those must go that do not tolerate it, or no longer;
//  - prefetch: a node is given as many pods beyond its slots as short ones ended there of late,
//    so that a slot that frees is filled at once. Never of gangs nor where resources are counted,
//    and only of the highest priority that waits. What has waited there for long the node gives
//    back.
//
// Always holds: on no node more is held than it has, save for prefetch and for what was held
// before it shrank.
#pragma once

#include "base/clock.hpp"
#include "core/cluster/placement.hpp"
#include "core/cluster/preemption.hpp"

#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace muster::core {

class Slots {
 public:
  // So long a job that needs much at once takes its chances with all others.
  static constexpr Millis kPatienceMs = 30'000;
  // Room is made by preemption no more often than this.
  static constexpr Millis kPreemptEveryMs = 50;

  // A node that is new or has changed; nothing is placed there until it is usable.
  void set_node(const NodeInfo& info);
  void set_usable(NodeId node, bool usable);
  // Lost, replaced or deleted: what was held there is held no more.
  void remove_node(NodeId node);

  // At a start: what the open pods of a job hold.
  void hold(JobId job, const JobObjectPtr& object, const std::map<NodeId, uint32_t>& slots);
  // `pending` pods wait; of all that was ever granted, `received` slots are not on their way.
  void want(JobId job, uint32_t pending, uint64_t received, const JobObjectPtr& object);
  // `quick` of them by pods that ran for a moment only: prefetch goes by these.
  void freed(JobId job, const std::map<NodeId, uint32_t>& slots,
             const std::map<NodeId, uint32_t>& quick, Millis now);
  void left(JobId job);  // it has no pods any more
  bool knows(JobId job) const { return clients_.contains(job); }
  // Slots that are granted or hold a pod.
  uint32_t used(NodeId node) const;

  struct Round {
    Grants grants;
    Grants victims;                                // slots to take back
    std::map<JobId, std::vector<NodeId>> tainted;  // nodes that a job's pods must leave
    Millis again_ms = 0;  // another round is due after so long, whatever happens; 0: none
  };
  // `now` only ever rises (no wall clock).
  Round place(Millis now);

 private:
  struct Site {
    NodeInfo info;
    StringMap labels;
    bool usable = false;
    uint32_t used = 0;
    Amounts taken;                                  // resources of these
    std::deque<std::pair<Millis, uint32_t>> quick;  // ends of short pods, of late
    std::vector<Taint> taints;                      // NoExecute ones, and since when it has them
    Millis tainted_ms = 0;
  };
  struct Client {
    JobObjectPtr object;
    Demand demand;
    uint32_t pending = 0;
    uint64_t received = 0;
    uint64_t granted = 0;
    bool asked = false;  // since the start: so it can be told to give slots back
    std::map<NodeId, uint32_t> held;
    std::map<NodeId, std::pair<uint32_t, Millis>> leaving;  // told to go, waited for until then
    Reservation reservation;
    Millis tainted_told_ms = 0;         // when it was last told to leave tainted nodes
    std::optional<Millis> short_since;  // it waits, and got nothing since

    // What was granted and has not arrived yet counts against what is wanted.
    uint32_t wanted() const {
      uint64_t coming = granted - received;
      return pending > coming ? static_cast<uint32_t>(pending - coming) : 0;
    }
    bool idle() const { return pending == 0 && held.empty() && granted == received; }
  };

  Site* site(NodeId node);
  void learn(Client& client, const JobObjectPtr& object);
  void take(Client& client, NodeId node, uint32_t count);
  void release(Client& client, NodeId node, uint32_t count);
  void forget_idle(JobId job);
  FreeNode free_node(NodeId node, const Site& site) const;
  uint32_t prefetch_max(Site& site, Millis now) const;
  std::vector<WaitingJob> waiting() const;
  void grant(const Grants& grants, Round& round);
  bool still_good(const Client& client) const;
  void be_patient(const std::vector<WaitingJob>& waiting, Millis now);
  void preempt(std::vector<WaitingJob> waiting, Millis now, Round& round);
  void place_ahead(std::vector<FreeNode> nodes, Round& round);
  void leave_tainted(Millis now, Round& round);

  std::map<NodeId, Site> sites_;
  std::map<JobId, Client> clients_;
  JobId last_served_ = 0;
  JobId patient_ = 0;  // the job that has places reserved because it has waited long; 0: none
  std::optional<Millis> preempted_ms_;  // when room was last made
  size_t tainted_ = 0;                  // nodes with NoExecute taints
};

}  // namespace muster::core
