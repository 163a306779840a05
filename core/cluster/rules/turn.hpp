// Turn: one run of decide(), as its rules see it. Internal to this folder.
#pragma once

#include "core/cluster/fold/cluster.hpp"
#include "core/cluster/fold/decision.hpp"
#include "core/cluster/fold/event.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace muster::core::cluster {

struct Turn {
  Cluster& cluster;
  const Now& now;
  Decision out{};

  const Settings& settings() const { return cluster.settings(); }

  void record(Record record) {
    cluster.apply(record);
    out.records.push_back(std::move(record));
  }
  void at_once(AtOnce effect) { out.at_once.push_back(std::move(effect)); }
  void then(Effect effect) { out.effects.push_back(std::move(effect)); }
  void log(Log::Level level, std::string text) { at_once(Log{level, std::move(text)}); }
  void place_soon() { at_once(PlaceSoon{}); }
  // "node a (n1)"
  std::string named(NodeId id) const {
    return "node " + cluster.node(id)->info.name + " (n" + std::to_string(id) + ")";
  }

  // While no job waits for slots, a job may give a slot that it frees to its next pod without
  // asking. This revokes that from all jobs until their next grants.
  void return_slots() {
    for (JobId job : std::exchange(cluster.keepers(), {})) at_once(TakeKept{job});
  }
  // Likewise, from jobs under a limit for which others wait.
  void return_limited() {
    std::erase_if(cluster.keepers(), [this](JobId job) {
      if (!cluster.slots().must_share(job)) return false;
      at_once(TakeKept{job});
      return true;
    });
  }
  // After every change in whether the node takes pods.
  void show(NodeId id) {
    return_slots();
    at_once(ShowHealth{health_of(cluster.node(id)->info)});
  }

  // starts.cpp
  void note_failed_starts(const Freed& event);
  void note_started(NodeId node, std::optional<uint64_t> before, std::optional<uint64_t> now);
  // Forgets the starts that failed; a node that is closed because of them is open again.
  void reopen(NodeId node, const std::string& why);
  void judge_starts();
  // Around a round of placement: lets one pod through to each closed node whose probe is due.
  std::map<NodeId, uint32_t> let_probes_through();
  void close_after(const std::map<NodeId, uint32_t>& probed);
  // Every node that fits the job failed its pods: that is the job's doing.
  void forgive(JobId job);

  // registration.cpp
  void take(const AgentRegisters& event);
  void take(const JobsAnswered& event);
  // life.cpp
  void take(const LinkUp& event);
  void take(const LinkDown& event);
  void take(const Heartbeat& event);
  void take(const AgentLeaves& event);
  void take(const Tick& event);
  void take(const SpecRequest& event);
  void take(const DeleteRequest& event);
  void take(const EndStrangersRequest& event);
  void look_at_windows();
  // placing.cpp
  void note_uses();
  void show_shares();
  void show_shares_soon();
  void take(const Want& event);
  void take(const Freed& event);
  void take(const JobLeft& event);
  void take(const PlaceNow& event);
  void take(const QueuesChanged& event);
};

}  // namespace muster::core::cluster
