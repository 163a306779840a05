// When and how a job ends (job-semantics 3.3 and 3.4). A decision is final: once the interim
// condition is written, the opposite outcome is impossible. The terminal condition waits until
// every pod has ended.
#include "core/job/sync.hpp"

namespace muster::core {

namespace {

void finish(Sync& sync, bool success, const char* reason, const char* message) {
  KillPods kill;
  for (const auto& [key, pod] : sync.state().open)
    if (pod.bound() && pod.active()) kill.pods.push_back({key, pod.node});
  sync.emit(FinishDecided{sync.now, success, reason, message});
  if (!kill.pods.empty()) sync.order(std::move(kill));
}

}  // namespace

bool decide_finish(Sync& sync) {
  const Job& job = sync.job;
  const JobState& s = job.state();
  if (job.decided()) return true;
  // Decision 4. Held-back pods are tracked failures: they count here though `failed` lags (2.2).
  uint64_t failed = s.failed + s.held.size();
  if (failed > static_cast<uint64_t>(job.spec().backoff_limit.value_or(6))) {
    finish(sync, false, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
    return true;
  }
  if (!job.per_index()) return false;
  // Decisions 6 and 7.
  if (auto most = job.spec().max_failed_indexes;
      most && s.failed_indexes.size() > static_cast<uint64_t>(*most)) {
    finish(sync, false, "MaxFailedIndexesExceeded",
           "Job has exceeded the specified maximal number of failed indexes");
    return true;
  }
  if (s.failed_indexes.size() > 0 && s.failed_indexes.size() + s.completed.size() >=
                                         static_cast<uint64_t>(std::max(s.completions, 0))) {
    finish(sync, false, "FailedIndexes", "Job has failed indexes");
    return true;
  }
  return false;
}

bool decide_completion(Sync& sync) {
  const Job& job = sync.job;
  const JobState& s = job.state();
  if (job.decided()) return true;
  bool enough = s.completions >= 0 ? job.succeeded() >= static_cast<uint64_t>(s.completions)
                                   : job.succeeded() > 0;
  if (!enough || job.active() > 0) return false;
  finish(sync, true, "CompletionsReached", "Reached expected number of succeeded pods");
  return true;
}

void delete_job(Sync& sync) {
  for (const JobDeletion& deletion : sync.deletions) {
    const JobState& s = sync.state();
    if (s.deleted_ms == 0 || (deletion.background && !s.background_deleted)) {
      KillPods kill;
      for (const auto& [key, pod] : s.open)
        if (pod.bound() && pod.active()) kill.pods.push_back({key, pod.node});
      sync.emit(JobDeleted{sync.now, deletion.background});
      if (!kill.pods.empty()) sync.order(std::move(kill));
    }
    sync.order(Answer{deletion.token});
  }
}

void finish_when_empty(Sync& sync) {
  const JobState& s = sync.state();
  if (s.forgotten) return;
  if (!sync.job.finished() && sync.job.decided() && s.open.empty())
    sync.emit(JobFinished{sync.now});
  if (s.deleted_ms != 0 && s.open.empty()) sync.emit(JobForgotten{sync.now});
}

}  // namespace muster::core
