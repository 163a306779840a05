// Sync: the state of one decide(), shared by its rules. Only for core/job.
#pragma once

#include "core/job/facts/decision.hpp"
#include "core/job/facts/event.hpp"
#include "core/job/fold/hearing.hpp"
#include "core/job/fold/job.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::core {

struct Sync {
  Job& job;
  Millis now;
  const Knobs& knobs;
  Hearing& hearing;
  Decision out{};

  // Collected while events are ingested:
  std::vector<PodsStarted::Start> starts{};
  std::vector<PodsEnded::One> ends{};             // not judged yet; see judge.cpp
  std::map<Steps, FreeSlots> freed{};             // slots that no longer hold a pod of this job
  std::map<NodeId, std::string> failed_starts{};  // nodes that could not start a pod, and why
  std::vector<PodKey> closed{};
  std::vector<NodeReady> ready{};  // nodes to send launches and kills to (again)
  std::vector<JobDeletion> deletions{};
  std::vector<PodsDeletion> pod_deletions{};
  std::string fail_job{};  // why the job fails, if a failed pod matched a FailJob rule
  ConditionReason fail_job_reason = ConditionReason::pod_failure_policy;
  bool new_successes = false;  // or the success criteria may have changed
  bool new_cancellations = false;
  bool waits = false;             // a decision waits for answers from nodes
  bool granted = false;           // slots arrived: confirm them to the cluster
  std::optional<Millis> wake_ms;  // earliest instant to look again

  const JobState& state() const { return job.state(); }
  const JobSpec& spec() const { return job.spec(); }
  bool per_index() const { return job.per_index() && knobs.gates.backoff_limit_per_index; }
  bool wants_suspended() const { return spec().suspend.value_or(false); }
  // It has no startTime yet and must not get one: not even its deadline runs.
  bool waits_to_start() const {
    return job.held() || job.begins_after(now) || (job.on_hold() && !state().started_at);
  }

  void emit(Record record) {
    job.apply(record, nullptr, &out.closed);
    out.records.push_back(std::move(record));
  }
  void order(Effect effect) { out.effects.push_back(std::move(effect)); }
  // Whether everything that has ended on these nodes is known; if not, the decision must wait.
  bool knows_ends(const std::set<NodeId>& nodes, const std::set<PodKey>& ending = {}) {
    bool known = hearing.knows(job, nodes, ending);
    waits = waits || !known;
    return known;
  }
  void wake(Millis at) { wake_ms = std::min(at, wake_ms.value_or(at)); }
};

// decide.cpp: whether muster manages the job, not another controller (4.7).
bool managed(const Sync& sync);
// ingest.cpp: events become starts, ends and bindings.
void ingest(Sync& sync, const std::vector<Event>& events);
// Whether a pod of the job has ever started, as far as this is on record.
bool has_started(const Job& job);
// How long others have to try what one node could not start before the job is to blame, and what
// several could not. A node that has room tries within milliseconds.
constexpr Millis kOthersTryMs = 60'000;
constexpr Millis kMoreTryMs = 2'000;
// held.cpp: a job that this one depends on has ended, or has advanced; the annotation was removed.
void take_dependency(Sync& sync, const DependencyHasEnded& ended);
void take_progress(Sync& sync, const DependencyHasAdvanced& advanced);
void waive_dependencies(Sync& sync);
// The indexes that wait for indexes that never pass.
void fail_unmet(Sync& sync);
// owner.cpp: changes by the owner, by operators and by another controller; all are answered.
void take_update(Sync& sync, const OwnerUpdate& update);
void take_status(Sync& sync, const StatusWrite& write);
void take_conditions(Sync& sync, const PodConditionsWrite& write);
void take_hold(Sync& sync, const HoldChange& change);
void take_cancellation(Sync& sync, const Cancellation& cancellation);
void take_overrides(Sync& sync, const OverridesChange& change);
// deletion.cpp: pods deleted by their owner, eviction, taints or preemption.
void choose_victims(Sync& sync, const Preempted& preempted);
void leave_nodes(Sync& sync, const Tainted& tainted);
void delete_pods(Sync& sync);
// Outside replace-only-failed mode, a pod has failed once its deletion is requested.
void judge_deleted(Sync& sync);
// Ends the pods of cancelled indexes, and fails those indexes that have none.
void end_cancelled(Sync& sync);
// judge.cpp: judges every end that arrived, once; failure_policy.cpp: which rule a failure matches
// (6).
void judge_ends(Sync& sync);
// Makes the decision of a pod that was judged before again, if it failed the job.
void judge_again(Sync& sync, const Pod& pod);
// Fails a job that nothing of has ever started, once it has waited long enough for another node to
// try.
void give_up_starting(Sync& sync);
// The action of the first rule that this failure matches. A default `end` stands for a pod that has
// not ended.
FailureAction failure_action(const Sync& sync, const Pod& pod, const PodEnd& end);
// The steps of the next pod of an index whose pod ended like this; none: the end is no reason for
// more, or the job has no further step.
Steps raised_steps(const Sync& sync, const Pod& pod, const PodEnd& end);
// gang.cpp: whether an end is a success. It is not for an MPI worker that was ordered to end.
bool counts_as_success(const Job& job, const Pod& pod, const PodEnd& end);
// Whether this may be the end of an MPI job's leader that failed because of a worker, and if so,
// whether the workers' nodes still have to answer. `ending`: the pods whose ends have arrived.
bool may_blame_worker(const Sync& sync, const Pod& pod, const PodEnd& end);
bool awaits_workers(Sync& sync, const std::set<PodKey>& ending);
// Breaks the gang if the ends in this sync, or these deleted pods, call for it. Call these before
// the pods are judged.
void break_gang_by_ends(Sync& sync);
void break_gang_by_deletions(Sync& sync, const std::vector<PodKey>& deleted);
// Whether the failure that broke the gang used up the retries of this leader's index.
bool leader_fails(const Sync& sync, const Pod& pod);
// Sets a spared pod's condition that says what broke its gang, unless it is itself disrupted.
void blame(Sync& sync, const Pod& pod, const PodEnd& end);
// The same for each running pod that the broken gang takes down.
void blame_spared(Sync& sync);
// Ends the pods that a broken gang takes down; true if that must wait for their nodes.
bool end_broken_gang(Sync& sync);
// Whether no pods may be created because pods of the gang are still ending.
bool gang_still_ends(const Job& job);
// Whether this index is an MPI job's leader that must not be created yet.
bool leader_waits(Sync& sync, uint32_t index);
// backoff.cpp: the delays of 5.2 and 5.3.
Millis backoff_delay(const Knobs& knobs, uint32_t failures);
// The backoff record of 5.2 after these ends, as (failures, last failure).
std::pair<uint32_t, Millis> next_backoff(const Job& job, const std::vector<PodsEnded::One>& ends);
// finish.cpp: the decisions of 3.4. True if the job is decided by now, or a decision waits.
bool decide_finish(Sync& sync);
bool decide_completion(Sync& sync);
// success_policy.cpp: the first rule that holds (7).
std::optional<size_t> satisfied_rule(const Job& job);
// finish.cpp: the owner's deletions. Call it after the ends in this sync have been judged.
void delete_job(Sync& sync);
void finish_when_empty(Sync& sync);
// surplus.cpp: which pods are removed first when there are too many (4.3).
void stop_pods(Sync& sync, std::vector<PodsStopping::One> pods);
// Orders kills for those that are bound and open. Call it after the record that stops them.
void kill_pods(Sync& sync, const std::vector<PodKey>& pods);
bool remove_surplus(Sync& sync, uint32_t target);
std::set<NodeId> nodes_of_active(const Job& job);
// With a node: of the pods there with these steps.
std::vector<PodKey> removal_order(const Job& job, uint32_t number, NodeId only = kNoNode,
                                  Steps steps = {});
// invariants.cpp: aborts if the status violates an invariant.
void check_status(const Job& job);
// pods.cpp: suspension, surplus and creation (4).
// The pod of this index that failed because it was deleted and that waits for its replacement.
const Pod* deleted_pod(const Job& job, uint32_t index);
void manage_pods(Sync& sync);
// The Suspended condition (3.5, 9).
void keep_suspended(Sync& sync);

}  // namespace muster::core
