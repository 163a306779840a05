// NodeInfo: what is known and shown of a node.
//
// A NodeId is one incarnation: one boot of one work-dir under one name. The durable part is a row;
// whether it is ready is memory, made anew at each start of the coordinator.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"
#include "core/spec/job_spec.hpp"

#include <map>
#include <string>
#include <vector>

namespace muster::core {

struct Taint {
  std::string key, value, effect;  // effect: NoSchedule, PreferNoSchedule, NoExecute
  bool operator==(const Taint&) const = default;
};

// What people set on a Node through the API. It belongs to the name: the next incarnation has it
// too.
struct NodeSpec {
  bool unschedulable = false;  // cordoned
  std::vector<Taint> taints;
  StringMap labels;  // beside those that the agent tells; of one key these count
  StringMap annotations;
  std::string managers;  // JSON: metadata.managedFields; empty: none
  bool operator==(const NodeSpec&) const = default;
};

// Which limits of containers (resources.limits) the node enforces, as its agent said when it
// registered. One that it does not enforce is passed over, unless limits are required.
struct LimitSupport {
  bool memory = false;
  bool cpu = false;
  std::string why;        // one of them is missing
  bool required = false;  // --require-limits: pods with a limit that is missing are kept off
  bool operator==(const LimitSupport&) const = default;
};

// What the agent says keeps the node from its work: it is heard of, and its pods stay, but it gets
// no new ones. No reason: nothing does.
struct NodeTrouble {
  std::string reason;  // one word, as in a condition
  std::string message;
  explicit operator bool() const { return !reason.empty(); }
  bool operator==(const NodeTrouble&) const = default;
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
  std::map<std::string, int64_t> resources;  // named ones (nvidia.com/gpu) and how many
  StringMap labels;                          // that the agent tells
  std::string address;                       // for people
  // Pods that run there and that a restored state does not know: they are left alone. As of its
  // last registration.
  std::vector<PodId> strangers;
  Millis created_ms = 0;
  NodeSpec spec;
  bool gone =
      false;  // replaced by a newer incarnation, or declared lost: nothing is bound to it any more
  bool deleted = false;  // by hand, and gone with that: not shown
  // Not durable.
  enum class Health { unknown, ready, suspect, lost };
  Health health = Health::unknown;  // unknown: not heard of since the coordinator's start
  bool draining = false;            // its agent is leaving
  NodeTrouble trouble;
  Millis heartbeat_ms = 0;  // wall clock of the last one
  Millis changed_ms = 0;    // when health last changed
  LimitSupport limits{};    // known once its agent has registered
  bool operator==(const NodeInfo&) const = default;
};

// It may be given pods, if nobody has set anything against that: its condition Ready is True.
bool is_ready(const NodeInfo& node);

// The agent's labels, those set by people, and kubernetes.io/hostname.
StringMap labels_of(const NodeInfo& node);

}  // namespace muster::core
