// NodeInfo: what is known and shown about a node.
//
// A NodeId is one incarnation: one boot of one work-dir under one name. The durable part is a row;
// the rest is in memory and starts over when the coordinator restarts.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"
#include "core/spec/fields/job_spec.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::core {

struct Taint {
  std::string key, value, effect;  // effect: NoSchedule, PreferNoSchedule, NoExecute
  bool operator==(const Taint&) const = default;
};

// Who cordoned or tainted a node, when and why.
struct NodeReason {
  std::string what;  // "cordon", or a taint as KEY:EFFECT
  std::string by;    // the user
  Millis at_ms = 0;
  std::string text{};  // may be empty
  bool operator==(const NodeReason&) const = default;
};

// What operators set on a Node through the API. It belongs to the node's name, so the next
// incarnation inherits it.
struct NodeSpec {
  bool unschedulable = false;  // cordoned
  std::vector<Taint> taints;
  StringMap labels;  // added to the agent's, which they override
  StringMap annotations;
  std::string managers;               // metadata.managedFields as JSON; empty: none
  std::vector<NodeReason> reasons{};  // of the cordon and the taints, in that order
  bool operator==(const NodeSpec&) const = default;
};

// Which container limits (resources.limits) the node enforces, as its agent reported at
// registration. Other limits are ignored, unless they are required.
struct LimitSupport {
  bool memory = false;
  bool cpu = false;
  std::string why;        // why one of them is not enforced
  bool required = false;  // --require-limits: excludes pods with a limit that is not enforced
  bool operator==(const LimitSupport&) const = default;
};

// Why the node cannot take new pods, as its agent reports; pods that it has stay. Empty reason: no
// trouble.
struct NodeTrouble {
  std::string reason;  // one word, as in a condition
  std::string message;
  explicit operator bool() const { return !reason.empty(); }
  bool operator==(const NodeTrouble&) const = default;
};

// What the command of --health-check came to, as the agent reports it.
struct HealthCheck {
  bool runs = false;    // the node has one
  std::string failure;  // empty: it passes
  bool fails() const { return !failure.empty(); }
  bool operator==(const HealthCheck&) const = default;
};

struct NodeInfo {
  // Durable.
  NodeId id = kNoNode;
  std::string name;
  std::string work_dir_id;
  std::string boot_id;
  std::string secret;  // of the work-dir; never shown
  uint32_t slots = 0;
  uint64_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
  std::map<std::string, int64_t> resources;  // named resources (nvidia.com/gpu) and their counts
  StringMap labels;                          // reported by the agent
  std::string address;                       // for display: its host name
  std::string ip;                            // where other nodes reach it; empty: unknown
  // Pods running there at the last registration that a restored state does not know. They are left
  // alone.
  std::vector<PodId> strangers;
  Millis created_ms = 0;
  Millis left_ms = 0;  // when its agent announced its shutdown; 0: not since it registered
  NodeSpec spec;
  bool gone = false;     // replaced or declared lost: nothing is bound to it any more
  bool deleted = false;  // through the API, and therefore gone; not shown
  // Not durable.
  enum class Health { unknown, ready, suspect, lost };
  Health health = Health::unknown;  // unknown: no contact since the coordinator started
  bool draining = false;            // its agent is shutting down
  NodeTrouble trouble;
  Millis heartbeat_ms = 0;  // last heartbeat, wall clock
  Millis changed_ms = 0;    // when health last changed
  bool loss_held = false;   // silent for --node-grace, but not lost: no node is ready
  LimitSupport limits{};    // known once its agent has registered
  // Likewise; empty if not known.
  std::string agent_version{}, keeper_version{};
  HealthCheck check{};
  // Why it gets no pods but one at a time, to see whether they start (start_watch.hpp); empty: it
  // gets all.
  std::string starts_failing{};
  // When the node ends with the allocation that its agent runs in (--until), as its agent said at
  // registration; absent: it is not known to end.
  std::optional<Millis> until_ms{};
  bool operator==(const NodeInfo&) const = default;
};

// The part of a node that changes without writing a row.
struct NodeHealth {
  NodeId id = kNoNode;
  NodeInfo::Health health = NodeInfo::Health::unknown;
  bool draining = false;
  NodeTrouble trouble{};
  Millis heartbeat_ms = 0, changed_ms = 0;
  bool loss_held = false;
  HealthCheck check{};
  std::string starts_failing{};
};
NodeHealth health_of(const NodeInfo& node);
void set_health(NodeInfo& node, const NodeHealth& health);

// Whether only failing starts may keep it from being ready.
bool is_healthy(const NodeInfo& node);
// Whether its Ready condition is True, so that it may get pods unless an operator prevents it.
bool is_ready(const NodeInfo& node);

// The agent's labels, those set by operators, kubernetes.io/hostname and kubernetes.io/os.
StringMap labels_of(const NodeInfo& node);

}  // namespace muster::core
