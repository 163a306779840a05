// Records: what has happened to nodes. Only Cluster::apply() turns them into state.
//
// Records carry outcomes, so apply() evaluates no rule. Those for which is_durable() holds change a
// node's row; the others are about what is in memory only and starts over with the coordinator.
// `at_ms` is wall-clock time.
#pragma once

#include "core/cluster/nodes/node_info.hpp"
#include "core/cluster/slots/recent_use.hpp"

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace muster::core::cluster {

// ---- durable

// An agent has registered: this is what is known of its incarnation from now on. The id may be a
// new one.
struct NodeRegistered {
  NodeInfo node;
};

// The incarnation never gets pods again: another one has registered under its name, it was silent
// for too long, or it was deleted through the API.
struct NodeReplaced {
  NodeId node = kNoNode;
  Millis at_ms = 0;
};
struct NodeLost {
  NodeId node = kNoNode;
  Millis at_ms = 0;
};
struct NodeDeleted {
  NodeId node = kNoNode;
  Millis at_ms = 0;
};

struct NodeSpecChanged {
  NodeId node = kNoNode;
  NodeSpec spec;
};

// Its agent has announced its shutdown.
struct NodeLeft {
  NodeId node = kNoNode;
  Millis at_ms = 0;
};

// The node runs these pods, which a restored state does not contain. They are left alone.
struct StrangersFound {
  NodeId node = kNoNode;
  std::vector<PodId> pods;
};

// All of these are no longer left alone.
struct StrangersDropped {
  NodeId node = kNoNode;
};

// What users have had of the cluster lately. About no node.
struct UsesNoted {
  NotedUses noted;
};

// ---- in memory

// The agent's session can be used: the node is ready.
struct NodeConnected {
  NodeId node = kNoNode;
  uint64_t link = 0;
  Millis at_ms = 0;
};
struct NodeDisconnected {
  NodeId node = kNoNode;
  Millis at_ms = 0;
};
// A heartbeat, which renews the lease. A node that was suspect is ready again.
struct NodeResponded {
  NodeId node = kNoNode;
  Millis at_ms = 0;
  std::optional<uint64_t> started{};  // as in Heartbeat
};
struct NodeTroubled {
  NodeId node = kNoNode;
  NodeTrouble trouble;  // none: it has recovered
  Millis at_ms = 0;
};
struct NodeSuspected {
  NodeId node = kNoNode;
  Millis at_ms = 0;
};
// The node has been silent for long enough to be lost, but no node responds.
struct LossHeld {
  NodeId node = kNoNode;
};
struct HealthChecked {
  NodeId node = kNoNode;
  HealthCheck check;
  Millis at_ms = 0;
};

// Of start_watch.hpp; `up_ms` is of a monotonic clock.
//
// The node could not start these pods of the job.
struct StartsFailed {
  NodeId node = kNoNode;
  JobId job = 0;
  std::optional<uint32_t> user;
  uint32_t pods = 0;
  std::string why;
  Millis up_ms = 0;
};
// The failed starts of this job say nothing about the node (any more).
struct StartsForgiven {
  NodeId node = kNoNode;
  JobId job = 0;
};
// The node gets no more pods, except a probe from `probe_up_ms` on.
struct NodeClosed {
  NodeId node = kNoNode;
  std::string why;
  Millis probe_up_ms = 0;
  Millis at_ms = 0;
};
// A pod has been let through; the next one follows `wait_ms` later.
struct ProbeSent {
  NodeId node = kNoNode;
  Millis wait_ms = 0;
  Millis next_up_ms = 0;
};
// A pod has started, or an operator says that pods can start: what failed before is forgotten, and
// a closed node is open.
struct StartsCleared {
  NodeId node = kNoNode;
  Millis at_ms = 0;
};

// One tick for the lease of each node that is not gone.
struct TickPassed {};

using Record =
    std::variant<NodeRegistered, NodeReplaced, NodeLost, NodeDeleted, NodeSpecChanged, NodeLeft,
                 StrangersFound, StrangersDropped, UsesNoted, NodeConnected, NodeDisconnected,
                 NodeResponded, NodeTroubled, NodeSuspected, LossHeld, TickPassed, HealthChecked,
                 StartsFailed, StartsForgiven, NodeClosed, ProbeSent, StartsCleared>;

// The node that a record is about; kNoNode: all of them, or none.
NodeId node_of(const Record& record);
// Whether it must be on disk before anything rests on it.
bool is_durable(const Record& record);
// Whether the incarnation is gone with it.
bool is_end(const Record& record);

}  // namespace muster::core::cluster
