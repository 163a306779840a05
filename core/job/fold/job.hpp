// Job: a fold over records.
//
// apply(record) is the only thing that changes a job. Records carry the outcome of a rule, so
// apply() never evaluates one. decide() looks at a job and returns records and effects. The job's
// actor, recovery and the read model use the same apply(). desired_effects() lists the effects that
// the state calls for, so that none is lost between the disk and its execution.
//
// Invariants (job-semantics 1.5): active + terminating = open pods; ready <= active; an index is in
// at most one of completed and failed; a counter changes only with the record that judges the pod,
// and never for a pod judged before. The cost of a record is logarithmic in the size of the job.
#pragma once

#include "core/index_set.hpp"
#include "core/job/facts/condition.hpp"
#include "core/job/facts/effect.hpp"
#include "core/job/facts/pod.hpp"
#include "core/job/facts/record.hpp"
#include "core/spec/fields/job_spec.hpp"

#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace muster::core {

constexpr uint32_t kFinishedPodsMax = 10'000;  // finished pods kept per job; the oldest go first
constexpr size_t kNotesMax = 20;               // events that say why somebody did something
constexpr size_t kCancellationsMax = 64;       // of indexes, of which is kept who made them
constexpr size_t kStartTroubleMax = 16;        // nodes that could not start pods
constexpr uint32_t kEventsMax = 1'000;         // events kept per job, warnings included

// An event of the job (job-semantics 13), as facts; its text is generated when it is shown.
struct JobEvent {
  enum class Kind : uint8_t {
    successful_create,
    successful_delete,
    completed,
    failed,
    suspended,
    resumed,
    too_many_succeeded,
    gang_broken,
    held,
    released,
    overridden,
    cancelled
  };
  Kind kind = Kind::successful_create;
  Millis at_ms = 0;
  PodKey pod;       // created or deleted, or the one that broke the gang
  uint64_t nr = 0;  // rises by one per event of the job; used as its name
  bool operator==(const JobEvent&) const = default;
  bool warning() const {
    return kind == Kind::failed || kind == Kind::too_many_succeeded || kind == Kind::gang_broken;
  }
};

// What the next pod of an index inherits in a gang (job-semantics 4.6).
struct FailureCounts {
  int32_t failures = 0;
  int32_t ignored = 0;
  Millis failed_ms = 0;     // instant of the failure that delays it; 0: none
  int32_t disruptions = 0;  // part of `ignored`
  bool operator==(const FailureCounts&) const = default;
};

// Which failures end other pods (gang.cpp), derived from the annotations of an Indexed job.
struct GangRules {
  bool together = false;  // muster.dev/gang
  bool leads = false;     // muster.dev/mpi with a launcher: index 0 leads the others
  bool whole = false;     // muster.dev/restart: gang
  bool ranks = false;     // muster.dev/mpi without a launcher: every rank needs all the others
  bool breaks() const { return leads || whole; }
};

// What all ended attempts of a job have used.
struct JobUsage {
  Usage used{};           // CPU times in total, the peak of the largest
  Millis ran_ms = 0;      // their run times in total
  uint64_t attempts = 0;  // that were on a node, other than those it returned
  // When the first process of any pod started, and how long the job had been free to run by then.
  std::optional<Millis> first_start{};
  Millis waited_ms = 0;
  std::string queue{};  // that an operator had moved the job to, once it has finished
  bool operator==(const JobUsage&) const = default;
};

// The last failed start of the job's pods on a node, none of which has started since.
struct StartTrouble {
  Millis at_ms = 0;
  std::string why;
  bool operator==(const StartTrouble&) const = default;
};

// All durable state of a job except what its owner wrote; the content of a snapshot.
struct JobState {
  int64_t generation = 1;
  int32_t parallelism = 1;
  std::optional<int32_t> completions;
  Millis admitted_ms = 0;
  std::optional<Millis> started_at;    // startTime
  std::optional<Millis> completed_at;  // completionTime
  std::optional<Millis> deleted_at;    // deletionTimestamp
  Millis last_record_ms = 0;
  bool background_deleted = false;  // no longer shown
  bool orphaned = false;            // deleted, but its pods keep running and are shown
  bool deletion_waits = false;      // deleted, but its pods keep running until finalizers are gone
  bool forgotten = false;
  bool synced = false;  // a first sync has happened: status has ready, terminating, uncounted…
  std::vector<Condition> conditions;
  IndexSet completed;             // Indexed
  IndexSet failed_indexes;        // with backoffLimitPerIndex
  bool index_limits_off = false;  // the limit per index does not apply: its gate is off
  uint64_t succeeded = 0;         // NonIndexed: counted successes
  uint64_t failed = 0;            // counted failed pods
  uint32_t backoff_failures = 0;  // failures since the last success (5.2)
  Millis backoff_last_ms = 0;
  uint32_t attempt_floor = 0;  // an index without an entry in `attempts` starts here
  uint32_t attempt_max = 0;    // highest attempt number ever assigned, plus 1
  uint32_t next_number = 0;    // NonIndexed: the next pod's number
  std::map<uint32_t, uint32_t>
      attempts;  // next attempt, of indexes that had one and are neither completed nor failed
  // That the next pod of an index has, if any, until it is completed; in a gang, one entry for all,
  // under index 0.
  std::map<uint32_t, Steps> steps;
  std::map<PodKey, Pod> open;  // not ended
  std::map<uint32_t, Pod>
      deferred;  // ended, deferred until their replacement exists (11.3), by index
  std::optional<GangBreak> broken;              // until the gang's pods are created again
  std::map<uint32_t, FailureCounts> inherited;  // by index, in a gang with a limit per index
  std::list<Pod> finished;                      // oldest first, at most kFinishedPodsMax
  std::deque<JobEvent> events;  // oldest first, at most kEventsMax; warnings are dropped last
  uint64_t events_total = 0;
  uint64_t pods_created = 0;
  std::string external_status;           // JSON, written by the controller that `managedBy` names
  std::string own_conditions;            // JSON list: set from outside, if muster manages the job
  std::vector<Dependency> dependencies;  // jobs that it waits for and that have not ended
  std::vector<Followed> followed;        // those of needed == each, also after their end
  JobUsage usage;
  std::optional<JobHeld> hold;
  std::optional<JobHeld> owner_hold;      // the owner's, while an operator's is in its place
  std::optional<OverridesSet> overrides;  // of what the object says
  std::map<uint64_t, std::string> notes;  // of the events that say who and why, by number
  std::optional<JobCancelled> cancelled;
  IndexSet cancelled_indexes;                    // not completed; those that have failed, too
  std::vector<IndexesCancelled> cancellations;   // of them, the newest last
  std::map<NodeId, StartTrouble> start_trouble;  // that returned pods, until the job is finished
  bool operator==(const JobState&) const = default;
};

// What a batch of records changed, for watches. Keys may repeat.
struct Touched {
  std::vector<PodKey> pods;      // created or changed
  std::vector<Pod> removed;      // no longer shown; their last state
  std::vector<JobEvent> events;  // new ones
  // The indexes that became completed or failed, unless such sets also lost indexes.
  IndexSet completed, failed_indexes;
  bool indexes_lost = false;
};

// What a copy of a job without pods shows of them (core/job/shown/past.hpp).
struct PodCounts {
  uint32_t active = 0, ready = 0, open = 0, pending = 0;
  bool held = false;
};

class Job {
 public:
  Job(JobId id, JobObjectPtr object);
  // From a snapshot; `object` is the latest owner's row.
  Job(JobId id, JobObjectPtr object, JobState state);
  // For display only: the state has no pods, but shows these.
  Job(JobId id, JobObjectPtr object, JobState state, const PodCounts& pods);
  Job(const Job& other);
  Job(Job&&) = default;
  Job& operator=(Job&&) = default;

  // The only way to change a job. Adds the changes to `touched`, and to `closed` the attempts that
  // are over: those that were on a node, have ended, are judged and will not change again.
  void apply(const Record& record, Touched* touched = nullptr, std::vector<Pod>* closed = nullptr);

  // The desired effects on a node (kNoNode: on all nodes): the pods to launch there under this
  // registration, except those it already knows, the pods to kill and, on one node, new limits for
  // pods that it knows.
  std::vector<Effect> desired_effects(NodeId node, const std::set<PodKey>& known = {},
                                      uint64_t registration = 0) const;
  // For the pods there that were bound before the last override.
  LimitPods limits_since_override(NodeId node = kNoNode) const;
  // Kills those of these pods that are bound and open. Their deletion must have been requested.
  KillPods kills(const std::vector<PodKey>& pods) const;

  JobId id() const { return id_; }
  const JobState& state() const { return state_; }
  const JobObject& object() const { return *object_; }
  const JobObjectPtr& object_ptr() const { return object_; }
  const JobSpec& spec() const { return object_->spec; }
  bool indexed() const { return indexed_; }
  bool per_index() const { return per_index_; }
  const GangRules& gang() const { return gang_; }

  // Status counters (2.1).
  uint32_t active() const { return active_; }
  uint32_t ready() const { return ready_; }
  uint32_t terminating() const { return open_count() - active_; }
  uint32_t open_count() const {
    return absent_ ? absent_->open : static_cast<uint32_t>(state_.open.size());
  }
  uint32_t pending_count() const {
    return absent_ ? absent_->pending : static_cast<uint32_t>(pending_.size());
  }
  uint64_t succeeded() const { return indexed_ ? state_.completed.size() : state_.succeeded; }
  const Condition* condition(ConditionType type) const;  // nullptr: absent or False
  const Condition* terminal() const;  // Complete or Failed; nullptr: it has not finished
  bool finished() const;              // Complete or Failed
  bool decided() const;               // SuccessCriteriaMet or FailureTarget
  bool suspended() const { return condition(ConditionType::suspended); }
  // The completions of an Indexed job. 0: absent.
  int64_t index_count() const { return state_.completions.value_or(0); }
  // Finished, not deleted and without open pods: it need not stay in memory.
  bool can_unload() const { return finished() && state_.open.empty() && !state_.deleted_at; }
  // It must not start yet: jobs that it depends on have not ended, or none of their indexes that it
  // follows has.
  bool held() const;
  // The instant after `at` before which it must not start (muster.dev/begin); absent: it may, or
  // has started.
  std::optional<Millis> begins_after(Millis at) const;
  // Whether this index may run: in every job that this one follows, it has passed.
  bool cleared(uint32_t index) const;
  bool hidden() const { return state_.background_deleted || state_.forgotten; }

  // A pod that is shown: open, deferred or finished. nullptr: no such pod.
  const Pod* pod(PodKey key) const;
  // Calls f(const Pod&) for each shown pod: open ones by key, deferred ones, finished ones oldest
  // first.
  template <class F>
  void each_pod(F f) const {
    for (const auto& [key, pod] : state_.open) f(pod);
    for (const auto& [index, pod] : state_.deferred) f(pod);
    for (const Pod& pod : state_.finished) f(pod);
  }

  // For decide(): pods without a node, lowest index first (pending); indexes that no new pod may
  // take (taken): completed, failed, cancelled, left out, not cleared, held by an active pod or, in
  // replace-only-failed mode, by a terminating one; the next attempt of an index.
  const std::set<PodKey>& pending() const { return pending_; }
  // Those of them with steps, by these; no set is empty.
  const std::map<Steps, std::set<PodKey>>& raised() const { return raised_; }
  // The first `most` of those with these steps.
  std::vector<PodKey> pending_with(Steps steps, size_t most) const;
  // Its pods have scheduling gates: they exist but are not bound.
  bool gated() const { return !spec().pod.scheduling_gates.empty(); }
  // Someone holds it (muster hold): no pods are created or bound.
  bool on_hold() const { return state_.hold.has_value(); }
  // What it may ask the cluster for: pods without a node, by their steps.
  AskSlots slots_wanted() const;
  const IndexSet& taken() const { return taken_; }
  // Open pods whose deletion was requested and that are not judged yet; the number of deferred pods
  // that will not count as failed; total restarts of all open pods.
  const std::set<PodKey>& unjudged() const { return unjudged_; }
  uint32_t deferred_not_failed() const { return deferred_not_failed_; }
  uint64_t restarts() const { return restarts_; }
  // Whether a pod may have labels that differ from its template's.
  bool relabeled() const { return relabeled_; }
  uint32_t next_attempt(uint32_t index) const;
  // How many successes complete the job: its completions, or the number of indexes in
  // muster.dev/indexes. Absent: a single success.
  std::optional<int64_t> needed() const;
  const IndexSet& left_out() const { return left_out_; }  // indexes that must not run
  // Of the failed indexes, those that were not cancelled.
  uint64_t failures_of_indexes() const;
  IndexSet own_indexes() const;  // all others

 private:
  Millis kill_deadline(const Pod& pod) const;
  friend struct Applier;
  void rebuild();
  void wait(const Pod& pod);  // it is pending
  void wait_no_more(const Pod& pod);
  IndexSet take_rules();
  JobId id_;
  JobObjectPtr object_;
  bool indexed_;
  bool per_index_;
  GangRules gang_;
  JobState state_;
  std::optional<PodCounts> absent_;
  // Derived from state_, kept up to date by apply():
  uint32_t active_ = 0;
  uint32_t ready_ = 0;
  std::set<PodKey> pending_;
  std::map<Steps, std::set<PodKey>> raised_;
  IndexSet taken_;
  IndexSet left_out_;
  bool any_cleared_ = false;  // some index is
  std::set<PodKey> unjudged_;
  uint32_t deferred_not_failed_ = 0;
  uint64_t restarts_ = 0;
  bool relabeled_ = false;
  std::unordered_map<PodKey, std::list<Pod>::iterator> finished_at_;
};

// The job's object as the scheduler sees it for pods with these steps, with what operators have
// overridden.
JobObjectPtr placed_object(const Job& job, Steps steps = {});
// As nodes see it: only its time limit can be overridden. Nodes know a template by its generation,
// so with that or with steps it has one that differs from those of objects: below zero.
JobObjectPtr launched_object(const Job& job, Steps steps = {});
// What the next pod of an index has.
Steps next_steps(const Job& job, uint32_t index);

}  // namespace muster::core
