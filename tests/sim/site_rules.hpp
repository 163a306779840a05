// SiteRules: what operators allow, as a witness sees it, and whether jobs keep to it.
//
// The witness knows which queues, nodes and overrides are on disk, since when, and what clients
// sent. It looks at each binding of a pod to a node. A grant may be on its way while a rule
// changes, so a binding breaks only rules that have been in force for kSettleMs. No grant outlives
// the coordinator: after a restart, all rules are in force at once.
//
// What was bound before a rule changed may stay, so limits are checked only when something is bound
// under them.
#pragma once

#include "api/view/model/view.hpp"
#include "core/queue/queue.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::sim {

class SiteRules {
 public:
  // By when, at most, a change on disk is in force, and no grant from before it is on its way.
  static constexpr Millis kSettleMs = 1'000;
  // The same for a preemption, which waits for the nodes of its victims to answer.
  static constexpr Millis kPreemptedMs = 20'000;

  // `shown`: what a client sees of a job. `user_pods_max`: as in the coordinator's settings.
  SiteRules(std::function<const core::Job*(JobId)> shown, uint32_t user_pods_max)
      : shown_(std::move(shown)), user_pods_max_(user_pods_max) {}

  // A client creates this job. What it says of its owner is true.
  void sent(const core::JobObjectPtr& object);
  // The coordinator starts with what is on its disk.
  void restarted(const std::vector<core::NodeInfo>& nodes, const std::vector<core::Kept>& kept);
  // An agent registers: its node ends then, on the wall clock.
  void node_ends(const std::string& node, std::optional<Millis> wall_ms) { ends_[node] = wall_ms; }
  struct Now {
    Millis boot_ms = 0, wall_ms = 0;
  };
  void clock_jumped(Now now) { jumped_ms_ = now.boot_ms; }
  // The View has this batch.
  void committed(Now now, const core::Committed& batch, const api::View& view);
  std::vector<std::string> take_broken() { return std::exchange(broken_, {}); }

 private:
  struct QueueState {
    std::optional<core::Queue> stored;
    Millis since = 0, preempts_since = 0;  // boot time; 0: since before the coordinator started
    Millis joined = 0;                     // when a job with pods was last moved into it
  };
  struct NodeState {
    core::StringMap labels;
    core::NodeSpec spec;
    Millis since = 0;
  };
  // What a job asks for, its overrides included.
  struct Asks {
    std::optional<uint32_t> user;
    std::string user_name;
    bool of_user = false;  // who is no operator
    std::string queue;
    std::optional<int64_t> limit_s;
    int64_t grace_s = 0;
    int64_t cpu_millis = 0;
    std::vector<core::Toleration> tolerations;
    bool queue_given = false, limit_given = false;
    bool on_hold = false;
    bool operator==(const Asks&) const = default;
  };
  struct JobAsks {
    Asks asks;
    Millis since = 0;
  };

  bool is_settled(Millis since, Millis within = kSettleMs) const {
    return since == 0 || now_.boot_ms - since >= within;
  }
  std::optional<Asks> read_asks(JobId id) const;
  const JobAsks* asks_of(JobId id);
  void look(const core::NodeInfo& node);
  void look(const core::Kept& kept, bool removed);
  void look(JobId id);
  const core::Queue* queue_of(const Asks& asks) const;
  void check_binding(JobId id, const core::PodsBound::Binding& binding);
  void check_node(const Asks& asks, const NodeState& node, const std::string& what);
  void check_time(const Asks& asks, const std::string& name, const NodeState& node,
                  const std::string& what);
  using Bound = std::map<JobId, uint32_t>;  // pods
  void check_limits(const Bound& bound, const api::View& view);
  void check_preempted(JobId id, PodKey pod);
  void say(std::string what) { broken_.push_back(std::move(what)); }

  const std::function<const core::Job*(JobId)> shown_;
  const uint32_t user_pods_max_;
  Now now_;
  Millis jumped_ms_ = 0;  // boot time at which the wall clock was last set
  std::map<std::string, core::JobObjectPtr> sent_;  // by NAMESPACE/NAME
  std::map<std::string, QueueState> queues_;
  std::map<std::string, NodeState> nodes_;
  std::map<NodeId, std::string> node_of_;
  std::set<NodeId> gone_;
  std::map<std::string, std::optional<Millis>> ends_;
  std::map<JobId, JobAsks> asks_;
  std::vector<std::string> broken_;
};

}  // namespace muster::sim
