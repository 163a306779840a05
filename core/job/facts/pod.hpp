// Pod: one attempt at one index, as its job remembers it.
//
// created -> bound -> started -> stopping -> ended, each step a record. Counting is independent of
// these steps: a pod is counted before its end (killed by a failing job), with it (the usual case),
// later (deferred until its replacement exists), or never.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"
#include "core/pod_end.hpp"
#include "core/spec/values/steps.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::core {

// How a pod was judged. A pod that is no longer `not_yet` has lost its finalizer (job-semantics
// 11).
enum class Counted : uint8_t {
  not_yet,    // still tracked
  succeeded,  // in `succeeded` or completedIndexes
  failed,     // in `failed`
  ignored,    // a failure that the pod failure policy ignores
  released,   // removed uncounted: success, scale-down, suspend, deletion, a second success, an
              // index out of range, returned by its node
  cancelled,  // likewise: its job or its index was cancelled
};

// The action of the first pod failure policy rule that a failure matched (job-semantics 6.3).
enum class FailureAction : uint8_t { none, count, ignore, fail_index, fail_job };

// A condition of a pod that was set from outside or before its end: DisruptionTarget by an eviction
// or a preemption, or a user's own condition through pods/status.
struct PodCondition {
  std::string type;
  std::string status;  // True, False, Unknown
  Millis at_ms = 0;    // lastTransitionTime
  std::string reason;
  std::string message;
  bool operator==(const PodCondition&) const = default;
};

// A label or annotation that the pod's owner set or removed (no value) after its creation.
struct PodMetaChange {
  bool label = true;  // else an annotation
  std::string key;
  std::optional<std::string> value;
  bool operator==(const PodMetaChange&) const = default;
};

struct Pod {
  PodKey key;
  Millis created_ms = 0;
  NodeId node = kNoNode;
  Millis bound_ms = 0;
  std::optional<Millis> started_at;
  std::optional<int32_t> pid;              // newest process of the first container; for display
  int32_t restarts = 0;                    // restarts in place, of all its containers
  Readiness readiness = Readiness::ready;  // once started
  std::vector<ContainerNow> containers;    // while it runs; empty: one, never restarted
  std::vector<RunEnd> runs;                // that were followed by another, as far as is known
  std::string cpus;                        // that it has, or had, for itself, as "0-3,8"
  int32_t failures = 0;                    // job-index-failure-count at its creation
  int32_t ignored = 0;                     // job-index-ignored-failure-count
  int32_t disruptions = 0;                 // part of `ignored`: those of DisruptionTarget
  Steps steps;                             // what it has beyond its template
  std::optional<Millis> stopping_at;       // when its deletion was requested
  std::optional<Millis> grace_ms;          // for that deletion; absent: the template's
  Counted counted = Counted::not_yet;
  FailureAction action = FailureAction::none;  // of a failed pod
  bool spared = false;                   // its gang broke: unless it succeeds, it counts nowhere
  std::vector<PodCondition> conditions;  // set from outside; usually none
  std::vector<PodMetaChange> meta;       // differences from its template; usually none
  bool ended = false;
  PodEnd end;  // valid when ended

  bool open() const { return !ended; }
  bool active() const { return !ended && !stopping_at; }
  bool terminating() const { return !ended && stopping_at; }
  bool ready() const { return active() && started_at && readiness == Readiness::ready; }
  bool bound() const { return node != kNoNode; }
  bool to_launch() const { return bound() && active() && !started_at; }
  bool operator==(const Pod&) const = default;
  // How it counts if it is deferred until its replacement exists.
  Counted counts_when_replaced() const {
    if (ended && end.cause == EndCause::returned) return Counted::released;
    return action == FailureAction::ignore ? Counted::ignored : Counted::failed;
  }
};

}  // namespace muster::core
