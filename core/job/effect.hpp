// Effects: orders to carry out once the records decided with them are durable.
//
// None is lost in a crash: Job::desired_effects derives launches and kills from the state, and a
// recovered job decides timers and slots again.
#pragma once

#include "core/job/pod.hpp"
#include "core/quick_ends.hpp"

#include <map>
#include <optional>
#include <variant>
#include <vector>

namespace muster::core {

struct LaunchPods {
  struct One {
    PodKey pod;
    NodeId node = kNoNode;
    uint64_t registration = 0;  // of the node; under another one the order is void
    bool operator==(const One&) const = default;
  };
  std::vector<One> pods;
};

struct KillPods {
  struct One {
    PodKey pod;
    NodeId node = kNoNode;
    Millis deadline_ms = 0;  // job time: SIGKILL then
    bool operator==(const One&) const = default;
  };
  std::vector<One> pods;
};

// The report with this token is on disk.
struct AckReport {
  uint64_t token = 0;
};

// The request with this token (a deletion, say) is durable or was refused.
struct Answer {
  enum class Outcome : uint8_t {
    done,
    conflict,   // the object or status has changed since the request read it
    not_found,  // no such pod or job
  };
  uint64_t token = 0;
  Outcome outcome = Outcome::done;
};

// To the cluster: how many pods wait for a slot. Absolute; sent after a change or a grant.
struct AskSlots {
  uint32_t wanted = 0;
};

// Slots, granted or held, that are free again; some of them by short pods.
struct FreeSlots {
  std::map<NodeId, uint32_t> slots;
  QuickEndsOfNodes quick{};
};

// To agents: which pods of this job have ended there and are not acknowledged? Each answers with
// NodeHeard. Without a connection there is no answer; after the next NodeReady the node is asked
// again.
struct AskNodes {
  struct One {
    NodeId node = kNoNode;
    uint64_t question = 0;
    bool operator==(const One&) const = default;
  };
  std::vector<One> nodes;
};

// What a registering agent must end; also confirms that this job's part of the registration is
// durable.
struct AnswerReconcile {
  NodeId node = kNoNode;
  std::vector<PodKey> end;
};

// Wake the job at this instant of its own time (job_clock.hpp).
struct WakeAt {
  Millis at_ms = 0;
};

// These pods are over: their index actors can end.
struct PodsClosed {
  std::vector<PodKey> pods;
};

// The job has its terminal condition, or is gone: its actor can end. It is needed again at
// `wake_ms` (ttlSecondsAfterFinished), if at all.
struct JobOver {
  bool forgotten = false;
  std::optional<Millis> wake_ms;
  std::optional<bool> complete{};  // else Failed; absent: it did not finish
};

using Effect = std::variant<LaunchPods, KillPods, AckReport, Answer, AskSlots, FreeSlots,
                            AnswerReconcile, WakeAt, PodsClosed, JobOver, AskNodes>;

}  // namespace muster::core
