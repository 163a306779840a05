// Windows: times in which a node is reserved, and how long a pod may stay on it.
//
// A window is of a node's name and lies in an annotation of the Node, so it is durable, outlives
// incarnations and agents, and is changed like everything else that operators set on a node
// (ADR 72). A window without users and groups is maintenance: nobody's pods run in it. Otherwise,
// only pods of these users do.
//
// A node may also end: its agent runs in an allocation, which is over at some time (--until).
//
// Invariant: no pod starts that may still run when the first of these begins, as far as its time
// limit says. A pod without one starts on a node that ends, where it is ended with the node, but
// not before a window.
#pragma once

#include "core/cluster/nodes/node_info.hpp"
#include "core/spec/values/window.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::core {

// What a pod asks of the time that is left on a node.
struct Stay {
  std::optional<Millis> limit_ms{};  // activeDeadlineSeconds of its template
  Millis grace_ms = 30'000;          // between SIGTERM and SIGKILL
  std::string user{};                // its owner; empty: none
  std::vector<uint32_t> groups{};    // of the owner
  bool operator==(const Stay&) const = default;
};
Stay stay_of(const JobObject& object);

// When a node ends or is reserved, on the wall clock.
struct NodeEnds {
  std::optional<Millis> agent_ms{};
  std::vector<Window> windows{};
  bool any() const { return agent_ms || !windows.empty(); }
  bool operator==(const NodeEnds&) const = default;
};
NodeEnds ends_of(const NodeInfo& node);

struct NodeEnd {
  Millis at_ms = 0;
  const Window* window = nullptr;  // null: the node itself ends
};
// The first end for which such a pod would be in the way if it started now; nullopt: it may start.
std::optional<NodeEnd> first_conflict(const NodeEnds& ends, const Stay& stay, Millis now_ms);
// Whether such a pod must leave the node: it is reserved for others now.
bool must_leave(const NodeEnds& ends, const Stay& stay, Millis now_ms);
// Whether a window of the node has begun and is not over.
bool is_reserved(const NodeEnds& ends, Millis now_ms);
// Whether the node ends, or has windows that are not over.
bool is_to_come(const NodeEnds& ends, Millis now_ms);
// Whether a window of the node begins or ends after `before_ms`, and not later than `now_ms`.
bool window_turns(const NodeEnds& ends, Millis before_ms, Millis now_ms);

}  // namespace muster::core
