// Records: what a job holds to be true. The only thing that changes a job is apply(record).
//
// A record carries outcomes (how a pod counted, which instant, which index failed), never reasons
// to look up: rules, gates, annotations and the clock are read by decide() alone, so a later
// version folds old records to the same status. Past tense. Instants are wall-clock milliseconds; a
// job's records never go back in time.
#pragma once

#include "core/job/condition.hpp"
#include "core/job/pod.hpp"
#include "core/spec/job_spec.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster::core {

// The job exists. Written by the registry together with the owner's row, which holds the object
// itself.
struct JobAdmitted {
  Millis at_ms = 0;
  JobObjectPtr object;  // not in the record's bytes: a row of its own
};

// The owner changed metadata or spec (the row beside the fold was rewritten in the same batch).
struct JobSpecChanged {
  Millis at_ms = 0;
  int64_t generation = 0;
  int32_t parallelism = 0;
  std::optional<int32_t> completions;
  JobObjectPtr object;  // not in the record's bytes
};

// Not suspended and no startTime: the job runs from now.
struct JobStarted {
  Millis at_ms = 0;
};

// Pods exist from here, lowest index first. A run is `count` indexes in sequence that agree in the
// rest. Where an index has a deferred pod, its replacement exists now, so that one is counted as
// `deferred_counted` says.
struct PodsCreated {
  struct Run {
    uint32_t first = 0;
    uint32_t count = 1;
    uint32_t attempt = 0;
    int32_t failures = 0;
    int32_t ignored = 0;
    Counted deferred_counted = Counted::not_yet;  // not_yet: there was none
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
    int32_t pid = 0;
    int32_t restarts = 0;
    Millis started_ms = 0;
    Readiness readiness = Readiness::ready;
    bool operator==(const Start&) const = default;
  };
  Millis at_ms = 0;
  std::vector<Start> starts;
};

// Nothing of these pods is left, and how each was judged. `backoff` is the record of
// job-semantics 5.2 after this sync.
struct PodsEnded {
  struct One {
    PodKey pod;
    PodEnd end;
    int32_t pid = 0;  // when its start was not reported before; else 0
    int32_t restarts = 0;
    std::optional<Millis> started_at;            // as pid
    Counted counted = Counted::not_yet;          // not_yet: deferred, or counted before
    bool fails_index = false;                    // FailIndex, or the limit per index is spent
    FailureAction action = FailureAction::none;  // of the first rule that a failure matched
    bool operator==(const One&) const = default;
  };
  Millis at_ms = 0;
  std::vector<One> ends;
  uint32_t backoff_failures = 0;
  Millis backoff_last_ms = 0;
};

// Deletion of these pods was requested, or what such a pod counts as is known now. `counted` of
// each: released (uncounted deletion), failed (outside replace-only-failed mode a deleted pod is a
// failed pod at once) or not_yet. Those that are not bound and counted are gone with this record;
// the end of an unbound one that is not counted follows in the same batch. `backoff` is the record
// of job-semantics 5.2 after this sync.
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
  bool by_job = true;  // the job itself deletes them: an event for each
  uint32_t backoff_failures = 0;
  Millis backoff_last_ms = 0;
};

// The pod has this condition now; one of the same type is replaced in its place.
struct PodConditionSet {
  Millis at_ms = 0;
  PodKey pod;
  PodCondition condition;
};

// Their owner deleted these pods, which had ended and were counted: they are not shown any more.
struct PodsRemoved {
  Millis at_ms = 0;
  std::vector<PodKey> pods;
};

// Suspended became True (startTime is cleared) or False.
struct JobSuspended {
  Millis at_ms = 0;
  bool suspended = true;
};

// Another controller (managedBy) wrote the status of its job: the JSON that is shown from here on.
struct StatusWritten {
  Millis at_ms = 0;
  std::string json;
};

// The job will succeed or fail (SuccessCriteriaMet or FailureTarget). All its pods are being
// deleted. On failure each pod that is not counted yet counts as failed; on success ended ones
// count as failed and the others are released.
struct FinishDecided {
  Millis at_ms = 0;
  bool success = false;
  ConditionReason reason = ConditionReason::completions_reached;
  std::string message;
};

// All pods have ended: Complete (with completionTime) or Failed, with reason and message of the
// decision.
struct JobFinished {
  Millis at_ms = 0;
};

// The rules of backoffLimitPerIndex are in force for this job (again), or not any more: then no
// index is failed, and those that were run again.
struct IndexLimitsSet {
  Millis at_ms = 0;
  bool on = true;
};

// The owner deleted the job: its pods are released and end. In the background its name is free from
// here and it is not shown any more; in the foreground it is shown until its last pod has ended.
// Orphaned, its pods run on and are shown without an owner. `waits`: somebody's finalizer is on it,
// so its pods run on until that is gone; another of these records says so.
struct JobDeleted {
  Millis at_ms = 0;
  bool background = true;
  bool orphan = false;
  bool waits = false;
};

// These labels and annotations of the pod are not as its template has them, from here on.
struct PodMetaSet {
  Millis at_ms = 0;
  PodKey pod;
  std::vector<PodMetaChange> changes;
};

// The conditions of a job of ours that are not ours, all of them, as they are shown: JSON, a list.
struct ConditionsWritten {
  Millis at_ms = 0;
  std::string json;
};

// The last pod of a deleted job has ended (of an orphaned one: was deleted too): nothing of it is
// kept.
struct JobForgotten {
  Millis at_ms = 0;
};

using Record = std::variant<JobAdmitted, JobSpecChanged, JobStarted, PodsCreated, PodsBound,
                            PodsStarted, PodsEnded, PodsStopping, PodConditionSet, PodsRemoved,
                            JobSuspended, StatusWritten, FinishDecided, JobFinished, JobDeleted,
                            JobForgotten, IndexLimitsSet, PodMetaSet, ConditionsWritten>;

inline Millis at(const Record& record) {
  return std::visit([](const auto& r) { return r.at_ms; }, record);
}

}  // namespace muster::core
