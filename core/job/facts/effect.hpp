// Effects: orders to carry out once the records of the same decision are durable.
//
// A crash loses none: Job::desired_effects derives launches and kills from the state, and a
// recovered job sets its timers and asks for slots again.
#pragma once

#include "core/job/facts/pod.hpp"
#include "core/quick_ends.hpp"

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster::core {

struct LaunchPods {
  struct One {
    PodKey pod;
    NodeId node = kNoNode;
    uint64_t registration = 0;  // of the node; the order is void under any other
    bool operator==(const One&) const = default;
  };
  std::vector<One> pods;
};

struct KillPods {
  struct One {
    PodKey pod;
    NodeId node = kNoNode;
    Millis deadline_ms = 0;  // when to send SIGKILL, in job time
    bool operator==(const One&) const = default;
  };
  std::vector<One> pods;
};

// How long pods may run that were bound before an operator changed that.
struct LimitPods {
  struct One {
    PodKey pod;
    NodeId node = kNoNode;
    std::optional<Millis> limit_ms{};  // from the pod's first process; absent: none
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

// To the cluster: how many pods wait for a slot, by their steps. Sent after a change or a grant.
struct AskSlots {
  uint32_t wanted = 0;               // without steps
  std::map<Steps, uint32_t> more{};  // with some; none is 0
  bool operator==(const AskSlots&) const = default;
};

// Slots, granted or held, that are free again, of pods with equal steps. `quick`: those freed by
// short pods.
struct FreeSlots {
  std::map<NodeId, uint32_t> slots;
  QuickEndsOfNodes quick{};
  // Nodes that could not start a pod of this job for a reason of their own.
  std::map<NodeId, FailedStarts> avoid{};
  RunTimes ran{};  // of these pods
  Steps steps{};
};

// To agents: which pods of this job have ended there and are not acknowledged? Each agent answers
// with NodeHeard. A node without a connection does not answer; it is asked again after its next
// NodeReady.
struct AskNodes {
  struct One {
    NodeId node = kNoNode;
    uint64_t question = 0;
    bool operator==(const One&) const = default;
  };
  std::vector<One> nodes;
};

// The pods that a registering agent must end; also confirms that this job's part of the
// registration is durable.
struct AnswerReconcile {
  NodeId node = kNoNode;
  std::vector<PodKey> end;
};

// Wake the job at this instant, in job time (job_clock.hpp).
struct WakeAt {
  Millis at_ms = 0;
};

// These pods are over: their index actors can end.
struct PodsClosed {
  std::vector<PodKey> pods;
};

// The job has its terminal condition, or is gone: its actor can end. The job must be loaded again
// at `wake_ms` (ttlSecondsAfterFinished), if set.
struct JobOver {
  bool forgotten = false;
  std::optional<Millis> wake_ms;
  std::optional<bool> complete{};  // else Failed; absent: it did not finish
};

using Effect = std::variant<LaunchPods, KillPods, LimitPods, AckReport, Answer, AskSlots, FreeSlots,
                            AnswerReconcile, WakeAt, PodsClosed, JobOver, AskNodes>;

}  // namespace muster::core
