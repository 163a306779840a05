// Effects: what the world must do once the records that were decided with them are durable. Orders.
//
// Launches, kills, timers and slots can be had again from the state alone (Job::desired_effects),
// so none is lost in a crash.
#pragma once

#include "core/job/pod.hpp"

#include <map>
#include <variant>
#include <vector>

namespace muster::core {

struct LaunchPods {
  struct One {
    PodKey pod;
    NodeId node = kNoNode;
    uint64_t registration = 0;  // of the node: under another one the order is void
    bool operator==(const One&) const = default;
  };
  std::vector<One> pods;
};

struct KillPods {
  std::vector<LaunchPods::One> pods;
};

// The report with this token is on disk.
struct AckReport {
  uint64_t token = 0;
};

// The request with this token (a deletion, say) is on disk, or can't be granted.
struct Answer {
  enum class Outcome : uint8_t {
    done,
    conflict,   // the job is not what the request was made for
    not_found,  // there is no such pod
  };
  uint64_t token = 0;
  Outcome outcome = Outcome::done;
};

// To the cluster: how many pods wait for a slot. Absolute; sent when it changed.
struct AskSlots {
  uint32_t wanted = 0;
};

// Slots that were granted or held and are free again; `quick` of them by pods that ended by
// themselves within kQuickMs of their start.
constexpr Millis kQuickMs = 500;
struct FreeSlots {
  std::map<NodeId, uint32_t> slots;
  std::map<NodeId, uint32_t> quick{};
};

// To agents: what of this job has ended there and was not acknowledged yet? Each is answered by
// NodeHeard; where there is no connection nothing comes, and the next NodeReady has it asked again.
struct AskNodes {
  struct One {
    NodeId node = kNoNode;
    uint64_t question = 0;
    bool operator==(const One&) const = default;
  };
  std::vector<One> nodes;
};

// What a registering agent must end, and that our part of the registration is durable.
struct AnswerReconcile {
  NodeId node = kNoNode;
  std::vector<PodKey> end;
};

// Wake the job at this instant (wall clock), or for the index's own backoff.
struct WakeAt {
  Millis at_ms = 0;
};

// These pods' stories are over: their index actors may go.
struct PodsClosed {
  std::vector<PodKey> pods;
};

// The job has its terminal condition, or is gone: its actor may go. It is wanted again at `wake_ms`
// (ttlSecondsAfterFinished; 0: never).
struct JobOver {
  bool forgotten = false;
  Millis wake_ms = 0;
};

using Effect = std::variant<LaunchPods, KillPods, AckReport, Answer, AskSlots, FreeSlots,
                            AnswerReconcile, WakeAt, PodsClosed, JobOver, AskNodes>;

}  // namespace muster::core
