// Records: what a job holds to be true. Only apply(record) changes a job.
//
// Records carry outcomes (how a pod counted, which instant, which index failed), so apply() never
// evaluates a rule: only decide() reads policies, gates and the clock, and a later version folds
// old records to the same status. Names are in the past tense. Instants are wall-clock
// milliseconds; a job's records never go back in time.
#pragma once

#include "core/index_set.hpp"
#include "core/job/facts/condition.hpp"
#include "core/job/facts/dependency.hpp"
#include "core/job/facts/overrides.hpp"
#include "core/job/facts/pod.hpp"
#include "core/spec/fields/job_spec.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster::core {

// The job exists. The registry writes it together with the owner's row, which holds the object.
struct JobAdmitted {
  Millis at_ms = 0;
  JobObjectPtr object;              // not in the record's bytes: a row of its own
  std::vector<Dependency> after{};  // the job is held until these have ended
};

// The owner changed metadata or spec; the owner's row is rewritten in the same batch.
struct JobSpecChanged {
  Millis at_ms = 0;
  int64_t generation = 0;
  int32_t parallelism = 0;
  std::optional<int32_t> completions;
  JobObjectPtr object;  // not in the record's bytes
};

// The job is not suspended and had no startTime: it runs from now on.
struct JobStarted {
  Millis at_ms = 0;
};

// These pods exist from now on, lowest index first. A run is `count` consecutive indexes whose
// other fields are equal. If an index has a deferred pod, the replacement now exists, and the
// deferred pod counts as `deferred_counted`.
struct PodsCreated {
  struct Run {
    uint32_t first = 0;
    uint32_t count = 1;
    uint32_t attempt = 0;
    int32_t failures = 0;
    int32_t ignored = 0;
    Counted deferred_counted = Counted::not_yet;  // not_yet: there was none
    int32_t disruptions = 0;                      // part of `ignored`
    bool operator==(const Run&) const = default;
  };
  Millis at_ms = 0;
  std::vector<Run> runs;
};

// Bound to an incarnation of a node; durable before the launch.
struct PodsBound {
  struct Binding {
    PodKey pod;
    NodeId node = kNoNode;
    bool operator==(const Binding&) const = default;
  };
  Millis at_ms = 0;
  std::vector<Binding> bindings;
};

struct PodsStarted {
  struct Start {
    PodKey pod;
    std::optional<int32_t> pid{};  // absent: no process of it has started yet
    int32_t restarts = 0;
    Millis started_ms = 0;
    Readiness readiness = Readiness::ready;
    std::vector<ContainerNow> containers{};  // empty: one, never restarted
    std::string cpus{};                      // that it has for itself; empty: none
    bool operator==(const Start&) const = default;
  };
  Millis at_ms = 0;
  std::vector<Start> starts;
};

// These pods have ended, each judged as recorded here. `backoff_*` is the backoff record of
// job-semantics 5.2 after this sync.
struct PodsEnded {
  struct One {
    PodKey pod;
    PodEnd end;
    std::optional<StartOf<Millis>> start{};      // as known with its end; absent: it never started
    int32_t restarts = 0;                        // meaningful if it started
    std::vector<RunEnd> runs{};                  // before its end, as its node remembers them
    Counted counted = Counted::not_yet;          // not_yet: deferred, or counted before
    bool fails_index = false;                    // FailIndex, or the limit per index is exceeded
    FailureAction action = FailureAction::none;  // of the first rule that the failure matched
    // The next pods of its index have at least these; in a gang, those of all indexes.
    Steps raised{};
    bool operator==(const One&) const = default;
  };
  Millis at_ms = 0;
  std::vector<One> ends;
  uint32_t backoff_failures = 0;
  Millis backoff_last_ms = 0;
};

// Deletion of these pods was requested, or it is now known how such a pod counts. `counted`:
// released (uncounted deletion), failed (outside replace-only-failed mode a deleted pod has failed
// at once), ignored (by the pod failure policy) or not_yet. An unbound pod that is counted is gone
// with this record; the end of an unbound pod that is not counted follows in the same batch.
// `backoff_*` is the backoff record of job-semantics 5.2 after this sync.
struct PodsStopping {
  struct One {
    PodKey pod;
    Counted counted = Counted::not_yet;
    bool fails_index = false;
    std::optional<Millis> grace_ms;  // absent: the template's
    bool operator==(const One&) const = default;
  };
  Millis at_ms = 0;
  std::vector<One> pods;
  bool by_job = true;  // deleted by the job itself: one event per pod
  uint32_t backoff_failures = 0;
  Millis backoff_last_ms = 0;
};

// The pod now has this condition, which replaces one of the same type.
struct PodConditionSet {
  Millis at_ms = 0;
  PodKey pod;
  PodCondition condition;
};

// The owner deleted these pods, which had ended and were counted: they are no longer shown.
struct PodsRemoved {
  Millis at_ms = 0;
  std::vector<PodKey> pods;
};

// Suspended became True (startTime is cleared) or False.
struct JobSuspended {
  Millis at_ms = 0;
  bool suspended = true;
};

// Another controller (managedBy) wrote the job's status: the JSON that is shown from now on.
struct StatusWritten {
  Millis at_ms = 0;
  std::string json;
};

// The job will succeed or fail (SuccessCriteriaMet or FailureTarget), and all its pods are deleted.
// Open pods that are not counted yet count as failed on failure and are released on success;
// deferred ones count as they would with a replacement.
struct FinishDecided {
  Millis at_ms = 0;
  bool success = false;
  ConditionReason reason = ConditionReason::completions_reached;
  std::string message;
};

// All pods have ended: Complete (with completionTime) or Failed, with the reason and message of the
// decision.
struct JobFinished {
  Millis at_ms = 0;
};

// The limit per index (backoffLimitPerIndex) was switched on or off. Off: no index counts as failed
// any more, and those that had failed run again.
struct IndexLimitsSet {
  Millis at_ms = 0;
  bool on = true;
};

// The owner or the TTL deleted the job: its pods are released and end. In the background, its name
// is free at once and it is no longer shown; in the foreground, it is shown until its last pod has
// ended. Orphaned, its pods keep running and are shown without an owner. `waits`: it has a
// finalizer, so its pods keep running until that is removed; then another of these records follows.
struct JobDeleted {
  Millis at_ms = 0;
  bool background = true;
  bool orphan = false;
  bool waits = false;
};

// From now on these labels and annotations of the pod differ from its template.
struct PodMetaSet {
  Millis at_ms = 0;
  PodKey pod;
  std::vector<PodMetaChange> changes;
};

// All conditions set from outside on a job that muster manages, as they are shown: a JSON list.
struct ConditionsWritten {
  Millis at_ms = 0;
  std::string json;
};

// How a gang broke.
struct GangBreak {
  PodKey by;                 // the pod that failed
  bool whole = false;        // all pods are ended and created again; else only the leader, index 0
  bool leader_pays = false;  // the failure is charged to the leader's index, not to the one of `by`
  std::string why;           // for people: which pod failed, and how
  bool operator==(const GangBreak&) const = default;
};

// A pod of a gang has failed or is failing. All other open pods are spared until the pods that the
// break ends have been created again.
struct GangBroken {
  Millis at_ms = 0;
  GangBreak how;
};

// A job that this one depends on has ended, or need not end any more. Once no dependency is left,
// the job is no longer held; if the end was not the required one, its failure follows in the same
// batch.
struct DependencyEnded {
  Millis at_ms = 0;
  JobId job = 0;
  DependencyEnd how = DependencyEnd::succeeded;
};

// These indexes of a job that this one follows have passed or failed since the last such record.
struct DependencyAdvanced {
  Millis at_ms = 0;
  JobId job = 0;
  Progress more;
};

// These indexes failed without another pod: the indexes that they wait for will never pass, or they
// were cancelled. Their deferred pods count as they would with a replacement.
struct IndexesFailed {
  Millis at_ms = 0;
  IndexSet indexes;
};

// From now on the job creates and places no pods; those that have a node go on. Replaces an earlier
// hold. Part of the state until it is released.
struct JobHeld {
  Millis at_ms = 0;
  std::string by;            // the user
  bool by_operator = false;  // only operators may release it
  std::string reason{};      // may be empty
  bool operator==(const JobHeld&) const = default;
};
struct JobReleased {
  Millis at_ms = 0;
  std::string by;
};

// An operator overrode what the job's object says of its pods; these are all overrides from now on.
// Part of the state while there are any.
struct OverridesSet {
  Millis at_ms = 0;
  Overrides overrides;
  std::string by;
  bool operator==(const OverridesSet&) const = default;
};

// A user ended the job: it fails, with FinishDecided in this batch or, if that must wait for its
// nodes, in a later one. Part of the state.
struct JobCancelled {
  Millis at_ms = 0;
  std::string by;
  bool operator==(const JobCancelled&) const = default;
};

// A user ended these indexes, which had neither completed nor failed: they get no more pods. They
// fail, or without a limit per index never succeed. How an open pod of theirs counts is another
// record; if it has succeeded on its own, its index has completed after all.
struct IndexesCancelled {
  Millis at_ms = 0;
  std::string by;
  IndexSet indexes;
  bool operator==(const IndexesCancelled&) const = default;
};

// The last pod of a deleted job has ended (or, if orphaned, was deleted too): nothing of the job is
// kept.
struct JobForgotten {
  Millis at_ms = 0;
};

using Record =
    std::variant<JobAdmitted, JobSpecChanged, JobStarted, PodsCreated, PodsBound, PodsStarted,
                 PodsEnded, PodsStopping, PodConditionSet, PodsRemoved, JobSuspended, StatusWritten,
                 FinishDecided, JobFinished, JobDeleted, JobForgotten, IndexLimitsSet, PodMetaSet,
                 ConditionsWritten, GangBroken, DependencyEnded, DependencyAdvanced, IndexesFailed,
                 JobHeld, JobReleased, OverridesSet, JobCancelled, IndexesCancelled>;

inline Millis at(const Record& record) {
  return std::visit([](const auto& r) { return r.at_ms; }, record);
}

}  // namespace muster::core
