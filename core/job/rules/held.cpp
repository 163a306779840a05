// Holds a job until the jobs that it depends on have ended (muster.dev/after, ADR 42).
#include "core/job/rules/held.hpp"

#include "core/job/rules/sync.hpp"

#include <algorithm>
#include <array>

namespace muster::core {
namespace {

std::string needed_text(const After& after) {
  constexpr std::array<const char*, 3> kNeeded = {" to succeed", " to fail", " to end"};
  return after.job + kNeeded.at(static_cast<size_t>(after.needed));
}

// "Job prep failed, but this job runs only if it succeeds".
std::string end_text(const After& after, DependencyEnd how) {
  return "Job " + after.job +
         (how == DependencyEnd::deleted ? " was deleted before it finished"
                                        : " " + std::string(name(how))) +
         ", but this job runs only if it " + (after.needed == Needed::ok ? "succeeds" : "fails");
}

}  // namespace

std::string awaited_text(const Job& job) {
  std::string text;
  for (const Dependency& one : job.state().dependencies)
    text += (text.empty() ? "job " : ", ") + needed_text(one.after);
  return text;
}

void take_dependency(Sync& sync, const DependencyHasEnded& ended) {
  sync.order(Answer{ended.token});
  if (sync.state().forgotten) return;  // nothing follows JobForgotten
  const auto& dependencies = sync.state().dependencies;
  const auto it = std::ranges::find(dependencies, ended.job, &Dependency::job);
  if (it == dependencies.end()) return;
  const After after = it->after;
  sync.emit(DependencyEnded{sync.now, ended.job, ended.how});
  if (satisfies(ended.how, after.needed) || !sync.fail_job.empty()) return;
  sync.fail_job = end_text(after, ended.how);
  sync.fail_job_reason = ConditionReason::dependency_never_satisfied;
}

void waive_dependencies(Sync& sync) {
  while (!sync.state().dependencies.empty())
    sync.emit(
        DependencyEnded{sync.now, sync.state().dependencies.front().job, DependencyEnd::waived});
}

}  // namespace muster::core
