// NodeInfo: what is known and shown of a node.
//
// A NodeId is one incarnation: one boot of one work-dir under one name. The durable part is a row;
// whether it is ready is memory, made anew at each start of the coordinator.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"
#include "core/spec/job_spec.hpp"

#include <string>
#include <vector>

namespace muster::core {

struct NodeInfo {
  // Durable.
  NodeId id = kNoNode;
  std::string name;
  std::string work_dir_id;
  std::string boot_id;
  uint32_t slots = 0;
  uint64_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
  StringMap labels;
  std::string address;  // for people
  Millis created_ms = 0;
  bool unschedulable = false;  // cordoned
  bool gone =
      false;  // replaced by a newer incarnation, or declared lost: nothing is bound to it any more
  // Not durable.
  enum class Health { unknown, ready, suspect, lost };
  Health health = Health::unknown;  // unknown: not heard of since the coordinator's start
  bool draining = false;            // its agent is leaving
  Millis heartbeat_ms = 0;          // wall clock of the last one
  Millis changed_ms = 0;            // when health last changed
  bool operator==(const NodeInfo&) const = default;
};

}  // namespace muster::core
