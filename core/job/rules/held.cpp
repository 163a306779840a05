// Holds a job until the jobs that it depends on have ended (muster.dev/after, ADR 42), and each of
// its indexes until the same index of the jobs that it follows has passed (ADR 42).
#include "core/job/rules/held.hpp"

#include "core/job/rules/sync.hpp"
#include "core/spec/fields/owner.hpp"

#include <algorithm>
#include <array>

namespace muster::core {
namespace {

std::string needed_text(const After& after) {
  constexpr std::array<const char*, 4> kNeeded = {" to succeed", " to fail", " to end",
                                                  " to succeed index by index"};
  return after.job + kNeeded.at(static_cast<size_t>(after.needed));
}

// "Job prep failed, but this job runs only if it succeeds".
std::string end_text(const After& after, DependencyEnd how) {
  return "Job " + after.job +
         (how == DependencyEnd::deleted ? " was deleted before it finished"
                                        : " " + std::string(name(how))) +
         ", but this job runs only if it " + (after.needed == Needed::ok ? "succeeds" : "fails");
}

// Records what is new about a job that this one follows.
void take_progress(Sync& sync, JobId job, const Progress& now) {
  const auto& all = sync.state().followed;
  const auto it = std::ranges::find(all, job, &Followed::job);
  if (it == all.end()) return;
  const auto unknown = [&known = it->known](const IndexSet& set) {
    return set.without(known.passed).without(known.failed);
  };
  Progress more{unknown(now.passed), unknown(now.failed)};
  if (more != Progress{}) sync.emit(DependencyAdvanced{sync.now, job, std::move(more)});
}

const Dependency* awaited(const Sync& sync, JobId job) {
  const auto& all = sync.state().dependencies;
  const auto it = std::ranges::find(all, job, &Dependency::job);
  return it == all.end() || sync.state().forgotten ? nullptr
                                                   : &*it;  // nothing follows JobForgotten
}

}  // namespace

JobHeld held_by_owner(const JobMeta& meta, Millis at_ms) {
  const auto owner = owner_of(meta.annotations);
  return {.at_ms = at_ms, .by = owner && !owner->name.empty() ? owner->name : "its owner"};
}

std::string awaited_text(const Job& job) {
  std::string text;
  for (const Dependency& one : job.state().dependencies)
    text += (text.empty() ? "job " : ", ") + needed_text(one.after);
  return text;
}

void take_dependency(Sync& sync, const DependencyHasEnded& ended) {
  sync.order(Answer{ended.token});
  const Dependency* const dependency = awaited(sync, ended.job);
  if (!dependency) return;
  const After after = dependency->after;
  if (ended.progress) take_progress(sync, ended.job, *ended.progress);
  sync.emit(DependencyEnded{sync.now, ended.job, ended.how});
  if (satisfies(ended.how, after.needed) || !sync.fail_job.empty()) return;
  sync.fail_job = end_text(after, ended.how);
  sync.fail_job_reason = ConditionReason::dependency_never_satisfied;
}

void take_progress(Sync& sync, const DependencyHasAdvanced& advanced) {
  sync.order(Answer{advanced.token});
  if (awaited(sync, advanced.job)) take_progress(sync, advanced.job, *advanced.progress);
}

// With a limit per index, they fail; the others go on. Without, no index may fail alone, so the job
// fails.
void fail_unmet(Sync& sync) {
  const Job& job = sync.job;
  if (sync.state().followed.empty() || job.decided()) return;
  const IndexSet own = job.own_indexes();
  IndexSet never;
  for (const Followed& one : sync.state().followed) {
    if (!one.ended && one.known.failed.empty()) continue;
    const IndexSet open = own.without(one.known.passed);
    never.insert_all(one.ended ? open : open.without(open.without(one.known.failed)));
  }
  if (sync.per_index()) {
    never = never.without(sync.state().failed_indexes);
    if (!never.empty()) sync.emit(IndexesFailed{sync.now, std::move(never)});
  } else if (!never.empty() && sync.fail_job.empty()) {
    const auto index = static_cast<uint32_t>(never.lowest());
    sync.fail_job = "Index " + std::to_string(index) + " of this job never runs, because " +
                    never_runs_text(job, index);
    sync.fail_job_reason = ConditionReason::dependency_never_satisfied;
  }
}

IndexSet awaiting_indexes(const Job& job) {
  IndexSet waiting;
  if (job.decided()) return waiting;
  const IndexSet own = job.own_indexes();
  for (const Followed& one : job.state().followed)
    if (!one.ended) waiting.insert_all(own.without(one.known.passed).without(one.known.failed));
  return waiting.without(job.state().failed_indexes);
}

std::string awaited_by(const Job& job, uint32_t index) {
  std::string jobs;
  for (const Followed& one : job.state().followed)
    if (!one.ended && !one.known.passed.contains(index) && !one.known.failed.contains(index))
      jobs += (jobs.empty() ? "" : ", ") + one.name;
  return jobs;
}

std::string never_runs_text(const Job& job, uint32_t index) {
  for (const Followed& one : job.state().followed) {
    const bool failed = one.known.failed.contains(index);
    if (failed || (one.ended && !one.known.passed.contains(index)))
      return "index " + std::to_string(index) + " of job " + one.name +
             (failed ? " failed or was cancelled" : " never succeeded");
  }
  return "";
}

Progress progress_of(const Job& job) {
  Progress progress{job.state().completed, job.state().failed_indexes};
  progress.passed.insert_all(job.left_out());
  if (!job.per_index()) progress.failed.insert_all(cancelled_for_good(job.state()));
  return progress;
}

IndexSet cancelled_for_good(const JobState& s) {
  IndexSet indexes = s.cancelled_indexes;
  if (indexes.empty()) return indexes;
  for (const auto& [key, pod] : s.open)
    if (pod.counted == Counted::not_yet) indexes.erase(key.index);
  return indexes;
}

void waive_dependencies(Sync& sync) {
  while (!sync.state().dependencies.empty())
    sync.emit(
        DependencyEnded{sync.now, sync.state().dependencies.front().job, DependencyEnd::waived});
}

}  // namespace muster::core
