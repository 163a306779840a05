// Pod: one attempt at one index, as its job remembers it.
//
// created -> bound -> started -> stopping -> ended, each step a record. Counted is a fact of its
// own: before the end (killed by a failing job), with it (the usual case), later (held back until
// its replacement exists), or never.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"

#include <string>

namespace muster::core {

// How a pod was judged. A pod that is no longer `not_yet` has lost its finalizer (job-semantics
// 11).
enum class Counted : uint8_t {
  not_yet,    // still tracked
  succeeded,  // in `succeeded` or completedIndexes
  failed,     // in `failed`
  ignored,    // a failure that the pod failure policy ignores
  released,   // removed uncounted: success, scale-down, suspend, deletion, a second success, an
              // index out of range
};

// Why a pod's processes are no more.
enum class EndCause : uint8_t {
  exited,         // by themselves, or killed behind our back
  killed,         // after a kill that the coordinator ordered
  never_started,  // killed while it waited
  start_failed,   // exit code 126 or 127
  keeper_lost,    // exit code unknown: 137, DisruptionTarget/TerminationByKubelet
  agent_stopped,  // the agent drained: DisruptionTarget/TerminationByKubelet
  fenced,         // ended at registration because it was not open for that node
  deadline,       // activeDeadlineSeconds of the pod
  out_of_memory,  // OOMKilled
  node_lost,      // its node was declared lost: DisruptionTarget/DeletionByTaintManager
  node_deleted,   // its Node object was deleted: DisruptionTarget/DeletionByPodGC
};

struct PodEnd {
  EndCause cause = EndCause::exited;
  int32_t exit_code = 0;  // 128+S when signal S ended it
  int32_t signal = 0;
  Millis ended_ms = 0;
  std::string message;  // why it could not be started, and the like; usually empty
  bool operator==(const PodEnd&) const = default;
  bool succeeded() const {
    return exit_code == 0 && (cause == EndCause::exited || cause == EndCause::killed ||
                              cause == EndCause::agent_stopped || cause == EndCause::fenced);
  }
};

struct Pod {
  PodKey key;
  Millis created_ms = 0;
  NodeId node = kNoNode;
  Millis bound_ms = 0;
  Millis started_ms = 0;  // 0: not started
  int32_t pid = 0;        // newest process of the first container; for people
  int32_t restarts = 0;
  int32_t failures = 0;    // job-index-failure-count at its creation
  int32_t ignored = 0;     // job-index-ignored-failure-count
  Millis stopping_ms = 0;  // when its deletion was requested; 0: not
  Counted counted = Counted::not_yet;
  bool ended = false;
  PodEnd end;  // valid when ended

  bool open() const { return !ended; }
  bool active() const { return !ended && stopping_ms == 0; }
  bool terminating() const { return !ended && stopping_ms != 0; }
  bool ready() const { return active() && started_ms != 0; }
  bool bound() const { return node != kNoNode; }
  bool operator==(const Pod&) const = default;
};

}  // namespace muster::core
