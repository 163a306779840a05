// When and how a job ends (job-semantics 3.3 and 3.4). A decision is final: once the interim
// condition is written, the opposite outcome is impossible. The terminal condition waits until
// every pod has ended.
#include "core/job/rules/decide.hpp"
#include "core/job/rules/failure_policy.hpp"
#include "core/job/rules/sync.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/values/well_known.hpp"

#include <set>

namespace muster::core {

namespace {

constexpr const char* kCancelledIndexes = "Job has cancelled indexes";

// Whether it has finalizers set by others. Those of the deletion itself are handled here, but in a
// foreground deletion, the one that waits for dependents other than pods is the API's to remove.
bool has_finalizers(const Job& job, bool foreground = false) {
  for (const std::string& name : job.object().meta.finalizers)
    if (name == kForegroundFinalizer ? foreground : name != kOrphanFinalizer) return true;
  return false;
}

// Pods that the decision counts differently: the policy may ignore killed pods in their current
// state (6.6), pods of a broken gang count nowhere, and a deleted pod that has failed stays failed
// on success.
std::vector<PodsStopping::One> exceptions(const Sync& sync, bool success) {
  std::vector<PodsStopping::One> found;
  const JobState& s = sync.state();
  if (success && !sync.spec().replace_only_failed())
    for (PodKey key : sync.job.unjudged())
      found.push_back({key, Counted::failed, false, std::nullopt});
  if (success) return found;
  bool policy = sync.spec().pod_failure_policy && sync.knobs.gates.pod_failure_policy;
  if (!policy && !s.broken) return found;
  for (const auto& [key, pod] : s.open) {
    if (pod.counted != Counted::not_yet) continue;
    if (pod.spared)
      found.push_back({key, Counted::released, false, std::nullopt});
    else if (policy &&
             match_failure(sync.job, pod, sync.knobs.gates).action == FailureAction::ignore)
      found.push_back({key, Counted::ignored, false, std::nullopt});
  }
  return found;
}

// Whether a failure with this reason may come from the pod that broke the gang.
bool by_broken_gang(ConditionReason reason) {
  return reason == ConditionReason::backoff_limit_exceeded ||
         reason == ConditionReason::max_failed_indexes_exceeded ||
         reason == ConditionReason::failed_indexes;
}

// Whether only cancelled indexes are left. With a limit per index, these have failed.
bool only_cancelled_left(const Sync& sync) {
  const JobState& s = sync.state();
  return !s.cancelled_indexes.empty() &&
         s.completed.size() + s.cancelled_indexes.size() >=
             static_cast<uint64_t>(std::max<int64_t>(sync.job.needed().value_or(0), 0));
}

// Waits until it is known which of the pods have ended on their own.
void finish(Sync& sync, bool success, ConditionReason reason, std::string message) {
  std::vector<PodKey> stopped;
  std::set<NodeId> nodes;
  for (const auto& [key, pod] : sync.state().open)
    if (pod.bound() && pod.counted == Counted::not_yet) nodes.insert(pod.node);
  if (!sync.knows_ends(nodes)) return;
  for (const auto& [key, pod] : sync.state().open)
    if (pod.bound() && pod.active()) stopped.push_back(key);
  if (!success && sync.state().broken && by_broken_gang(reason)) {
    blame_spared(sync);
    message += ": " + sync.state().broken->why;
  }
  if (auto first = exceptions(sync, success); !first.empty())
    sync.emit(PodsStopping{sync.now, std::move(first), true, sync.state().backoff_failures,
                           sync.state().backoff_last_ms});
  sync.emit(FinishDecided{sync.now, success, reason, std::move(message)});
  kill_pods(sync, stopped);
}

// Decision 4. Deferred pods are tracked failures: they count here, though `failed` lags (2.2).
bool backoff_limit_exceeded(const Sync& sync) {
  const Job& job = sync.job;
  auto limit = static_cast<uint64_t>(sync.spec().backoff_limit.value_or(6));
  uint64_t failed = job.state().failed + job.state().deferred.size() - job.deferred_not_failed();
  if (!sync.spec().replace_only_failed()) failed += job.unjudged().size();
  if (failed > limit) return true;
  // 5.4: restarts in place count against it too; limits 0 and 1 behave the same.
  return sync.spec().pod.restart_policy == "OnFailure" &&
         job.restarts() >= std::max<uint64_t>(limit, 1);
}

// Decision 5. Schedules a wake-up if the deadline is still ahead.
bool deadline_exceeded(Sync& sync) {
  const auto& seconds = sync.spec().active_deadline_s;
  if (!seconds || sync.wants_suspended() || !sync.state().started_at) return false;
  constexpr int64_t kFar = 1'000'000'000'000;  // seconds, beyond any clock: no overflow
  Millis due = *sync.state().started_at + std::min(*seconds, kFar) * 1000;
  if (sync.now >= due) return true;
  sync.wake(due);
  return false;
}

bool succeed_by_policy(Sync& sync) {
  if (!sync.new_successes || !sync.knobs.gates.success_policy) return false;
  auto rule = satisfied_rule(sync.job);
  if (!rule) return false;
  finish(sync, true, ConditionReason::success_policy,
         "Matched rules at index " + std::to_string(*rule));
  return true;
}

}  // namespace

// Also true while a decision waits.
bool decide_finish(Sync& sync) {
  const Job& job = sync.job;
  const JobState& s = job.state();
  if (job.decided()) return true;
  if (s.cancelled) {
    finish(sync, false, ConditionReason::cancelled, "Cancelled by " + s.cancelled->by);
    return true;
  }
  if (!sync.fail_job.empty()) {  // decision 3
    finish(sync, false, sync.fail_job_reason, sync.fail_job);
    return true;
  }
  if (backoff_limit_exceeded(sync)) {
    finish(sync, false, ConditionReason::backoff_limit_exceeded,
           "Job has reached the specified backoff limit");
    return true;
  }
  if (deadline_exceeded(sync)) {
    finish(sync, false, ConditionReason::deadline_exceeded,
           "Job was active longer than specified deadline");
    return true;
  }
  if (!sync.per_index() && only_cancelled_left(sync)) {
    finish(sync, false, ConditionReason::failed_indexes, kCancelledIndexes);
    return true;
  }
  if (!sync.per_index()) return succeed_by_policy(sync);
  // Decisions 6 and 7.
  if (auto most = job.spec().max_failed_indexes;
      most && job.failures_of_indexes() > static_cast<uint64_t>(*most)) {
    finish(sync, false, ConditionReason::max_failed_indexes_exceeded,
           "Job has exceeded the specified maximal number of failed indexes");
    return true;
  }
  if (job.gang().leads && s.failed_indexes.contains(0)) {  // the workers wait for it
    finish(sync, false, ConditionReason::failed_indexes, "The leader (index 0) has failed");
    return true;
  }
  // Another leader would run without it, on fewer hosts than were asked for.
  if (job.gang().leads && !s.failed_indexes.empty() && !s.completed.contains(0) &&
      !job.spec().max_failed_indexes) {
    finish(sync, false, ConditionReason::failed_indexes,
           "A worker (index " + std::to_string(s.failed_indexes.lowest()) + ") has failed");
    return true;
  }
  // Such a gang can never be whole again.
  if (job.gang().ranks && !s.failed_indexes.empty()) {
    finish(sync, false, ConditionReason::failed_indexes, "A rank has failed");
    return true;
  }
  if (job.gang().ranks && s.broken && !s.completed.empty()) {
    finish(sync, false, ConditionReason::failed_indexes, "A rank failed after others had ended");
    return true;
  }
  if (!s.failed_indexes.empty() &&
      s.failed_indexes.size() + s.completed.size() >=
          static_cast<uint64_t>(std::max<int64_t>(job.needed().value_or(0), 0))) {
    finish(sync, false, ConditionReason::failed_indexes,
           job.failures_of_indexes() == 0 ? kCancelledIndexes : "Job has failed indexes");
    return true;
  }
  return succeed_by_policy(sync);  // decision 8
}

bool decide_completion(Sync& sync) {
  const Job& job = sync.job;
  if (job.decided()) return true;
  const auto needed = job.needed();
  bool enough = job.succeeded() >= static_cast<uint64_t>(needed.value_or(1));
  if (sync.waits_to_start() || !enough || job.active() > 0) return false;
  finish(sync, true, ConditionReason::completions_reached,
         "Reached expected number of succeeded pods");
  return true;
}

namespace {

void delete_now(Sync& sync, JobDeleted how) {
  std::vector<PodKey> stopped;
  if (!how.orphan && !how.waits)
    for (const auto& [key, pod] : sync.state().open)
      if (pod.bound() && pod.active()) stopped.push_back(key);
  how.at_ms = sync.now;
  sync.emit(how);
  kill_pods(sync, stopped);
}

}  // namespace

// While it has finalizers set by others, a deleted job and its pods stay and are shown; only
// foreground deletion ends the pods first. An orphaned job stays orphaned when it is deleted again.
void delete_job(Sync& sync) {
  const JobState& s = sync.state();
  for (const JobDeletion& deletion : sync.deletions) {
    bool orphan = deletion.orphan || s.orphaned;
    bool background = deletion.background || orphan;
    bool gone = background && !has_finalizers(sync.job);
    bool waits = background && !orphan && !gone;
    bool changes = !s.deleted_at || (gone && !s.background_deleted) || (s.deletion_waits && !waits);
    if (!s.forgotten && changes) delete_now(sync, {0, gone, orphan, waits});
    sync.order(Answer{deletion.token});
  }
  // The last finalizer is gone: carry out the deletion.
  bool held_up = s.deletion_waits || (s.orphaned && !s.background_deleted);
  if (held_up && !s.forgotten && !has_finalizers(sync.job))
    delete_now(sync, {0, true, s.orphaned, false});
}

bool notice_due(const Job& job) {
  if (!job.finished()) return false;
  const StringMap& annotations = job.object().meta.annotations;
  if (annotations.contains(std::string(kNotifiedKey))) return false;
  const NoticeWishes wishes = notice_wishes(annotations);
  return wishes.any() && (!wishes.only_failures || !job.condition(ConditionType::complete));
}

std::optional<Millis> expires_at(const Job& job) {
  const auto& ttl = job.spec().ttl_s;
  if (!ttl || job.state().deleted_at) return std::nullopt;
  const Condition* const end = job.terminal();
  if (end == nullptr) return std::nullopt;
  return end->at_ms + std::max<Millis>(*ttl * 1000LL, notice_due(job) ? kNoticeLifeMs : 0);
}

void finish_when_empty(Sync& sync) {
  const JobState& s = sync.state();
  if (s.forgotten) return;
  if (!sync.job.finished() && sync.job.decided() && s.open.empty())
    sync.emit(JobFinished{sync.now});
  // Keep the job until its dependents know how it ended, even after a crash.
  if (sync.job.finished() && sync.knobs.has_dependents) return;
  if (auto due = expires_at(sync.job); due && *due <= sync.now)
    sync.emit(JobDeleted{sync.now, false, false});
  bool foreground = !s.background_deleted && !s.orphaned;
  bool gone = s.deleted_at && s.open.empty() && !has_finalizers(sync.job, foreground) &&
              (!s.orphaned || s.finished.empty());
  if (gone) sync.emit(JobForgotten{sync.now});
}

}  // namespace muster::core
