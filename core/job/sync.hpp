// Sync: one run of decide(), shared by its rules. Not for others.
#pragma once

#include "core/job/decision.hpp"
#include "core/job/event.hpp"
#include "core/job/hearing.hpp"
#include "core/job/job.hpp"

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

  // Gathered while events are taken in:
  std::vector<PodsStarted::Start> starts{};
  std::vector<PodsEnded::One> ends{};          // facts; judged by count.cpp
  std::map<NodeId, uint32_t> freed{};          // slots that no longer hold a pod of ours
  std::map<NodeId, uint32_t> freed_quickly{};  // of these, by short pods that ended by themselves
  std::vector<PodKey> closed{};
  std::vector<NodeReady> ready{};  // nodes that may be told (again) what to launch and to kill
  std::vector<JobDeletion> deletions{};
  std::vector<PodsDeletion> pod_deletions{};
  std::string fail_job{};  // why, when a failed pod matched a FailJob rule
  ConditionReason fail_job_reason = ConditionReason::pod_failure_policy;
  bool new_successes = false;  // or the rules of success may have changed
  bool waits = false;          // a decision waits until its nodes were heard
  bool granted = false;        // slots arrived: the cluster's count of them is to be told
  Millis wake_ms = 0;          // earliest instant to look again; 0: none

  const JobState& state() const { return job.state(); }
  const JobSpec& spec() const { return job.spec(); }
  bool per_index() const { return job.per_index() && knobs.gates.backoff_limit_per_index; }
  bool wants_suspended() const { return spec().suspend.value_or(false); }

  void emit(Record record) {
    job.apply(record, nullptr, &out.closed);
    out.records.push_back(std::move(record));
  }
  void order(Effect effect) { out.effects.push_back(std::move(effect)); }
  // Whether all that has ended on these nodes is known; if not, what rests on it waits.
  bool knows_ends(const std::set<NodeId>& nodes) {
    bool known = hearing.knows(job, nodes);
    waits = waits || !known;
    return known;
  }
  void wake(Millis at) { wake_ms = wake_ms == 0 ? at : std::min(wake_ms, at); }
};

// ingest.cpp: events become starts, ends and bindings.
void ingest(Sync& sync, const std::vector<Event>& events);
// owner.cpp: what the owner changes, and what another controller writes; both are answered.
void take_update(Sync& sync, const OwnerUpdate& update);
void take_status(Sync& sync, const StatusWrite& write);
void take_conditions(Sync& sync, const PodConditionsWrite& write);
// deletion.cpp: deletions of pods by hand, by eviction and by preemption.
void choose_victims(Sync& sync, const Preempted& preempted);
void leave_nodes(Sync& sync, const Tainted& tainted);
void delete_pods(Sync& sync);
// Outside replace-only-failed mode a pod is failed once its deletion is requested.
void judge_deleted(Sync& sync);
// count.cpp: every end that arrived is judged, once.
void judge_ends(Sync& sync);
// backoff.cpp: the delays of 5.2 and 5.3.
Millis backoff_delay(const Knobs& knobs, uint32_t failures);
// The record of 5.2 after these ends, as (failures, last failure).
std::pair<uint32_t, Millis> next_backoff(const JobState& state,
                                         const std::vector<PodsEnded::One>& ends);
// finish.cpp: the decisions of 3.4; true when the job is (now) decided.
bool decide_finish(Sync& sync);
bool decide_completion(Sync& sync);
// success_policy.cpp: the first rule that holds (7).
std::optional<size_t> satisfied_rule(const Job& job);
// The owner's deletions; what ended in this sync was judged before.
void delete_job(Sync& sync);
void finish_when_empty(Sync& sync);
// surplus.cpp: which pods go first when there are too many (4.3).
void stop_pods(Sync& sync, std::vector<PodsStopping::One> pods);
bool remove_surplus(Sync& sync, uint32_t target);
// Where its active pods are.
std::set<NodeId> nodes_of_active(const Job& job);
std::vector<PodKey> removal_order(const Job& job, uint32_t number, NodeId only = kNoNode);
// invariants.cpp: ends the process when the status breaks one of them.
void check_status(const Job& job);
// pods.cpp: suspension, surplus and creation (4).
void manage_pods(Sync& sync);
// The Suspended condition (3.5, 9).
void keep_suspended(Sync& sync);

}  // namespace muster::core
