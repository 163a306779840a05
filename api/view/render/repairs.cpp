#include "api/view/render/repairs.hpp"

#include "core/spec/fields/after.hpp"
#include "core/spec/fields/annotations.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace muster::api {
namespace {

constexpr int kRepairsMax = 100;

std::string annotation(const core::Job& job, std::string_view key) {
  const core::StringMap& all = job.object().meta.annotations;
  const auto found = all.find(std::string(key));
  return found == all.end() ? "" : found->second;
}

// The first of its rounds, and its number among them.
std::pair<std::string, int> round_of_job(const core::Job& job) {
  const std::string root = annotation(job, core::kRetryOfKey);
  if (root.empty()) return {job.object().meta.name, 1};
  return {root, std::max(1, std::atoi(annotation(job, core::kRoundKey).c_str()))};
}

// Finds other jobs of the namespace of `job`, which stays in memory: of finished jobs, only those
// that were used last do (job_store.hpp), and that includes just the last result.
class Others {
 public:
  Others(const View& view, const core::Job& job)
      : view_(view), ns_(job.object().meta.ns), own_(job.object().meta.name) {}
  std::optional<Shown> find(const std::string& name) const {
    const auto found = view_.job(ns_, name);
    view_.job(ns_, own_);
    return found;
  }

 private:
  const View& view_;
  const std::string ns_, own_;
};

// The newest of the rounds that follow `job`, and what they, or it, have done or still run.
struct Later {
  std::string newest;  // empty: there are none
  core::IndexSet covered;
  bool failed = false;  // the newest one
};

Later later_rounds(const Others& others, const core::Job& job) {
  Later later{.covered = job.state().completed};
  const auto [root, first] = round_of_job(job);
  for (int round = first + 1; round < first + kRepairsMax; ++round) {
    const std::string name = root + "-r" + std::to_string(round);
    const auto shown = others.find(name);
    if (!shown || round_of_job(*shown->job).first != root) break;
    later.newest = name;
    later.failed = shown->job->condition(core::ConditionType::failed) != nullptr;
    later.covered.insert_all(shown->job->finished() ? shown->job->state().completed
                                                    : shown->job->own_indexes());
  }
  return later;
}

// Which job let job `name`, and so those that follow it, down; `name` itself if none did. Empty
// `lost`: as a whole.
std::string root_cause(const Others& others, std::string name, const core::IndexSet& lost) {
  for (int i = 0; i < kRepairsMax; ++i) {
    const auto shown = others.find(name);
    if (!shown) return name;
    const core::Job& job = *shown->job;
    const core::IndexSet& wanted = lost.empty() ? job.state().failed_indexes : lost;
    std::string cause;
    for (const core::Followed& one : job.state().followed)
      if (!wanted.empty() && wanted.without(job.own_indexes().without(one.known.passed)).empty())
        cause = one.name;
    const core::Condition* const end = job.condition(core::ConditionType::failed);
    if (end && end->reason == core::ConditionReason::dependency_never_satisfied)
      for (const core::After& one : core::after_of(job.object().meta.annotations))
        if (one.needed == core::Needed::ok) cause = one.job;
    if (cause.empty()) return name;
    name = cause;
  }
  return name;
}

// "muster retry job/prep --failed --dependents". What was cancelled has not failed.
std::string retry_with_dependents(const core::Job& job, const core::IndexSet& lost) {
  const core::JobState& s = job.state();
  const core::IndexSet& wanted = lost.empty() ? s.failed_indexes : lost;
  const bool failed = !wanted.without(s.cancelled_indexes).empty();
  return "muster retry job/" + job.object().meta.name + (failed ? " --failed" : "") +
         " --dependents";
}

// What `job` needs where job `name` let it down; empty `lost`: it as a whole.
std::string needed_text(const Others& others, const core::Job& job, const std::string& name,
                        const core::IndexSet& lost) {
  const bool one = lost.size() == 1;
  const std::string it = lost.empty() ? "this job" : one ? "it" : "they";
  const std::string retry = "muster retry job/" + job.object().meta.name + " --failed";
  const auto other = others.find(name);
  if (!other) return it + (one || lost.empty() ? " runs" : " run") + " only with a new job";
  const Later later = later_rounds(others, *other->job);
  const bool repaired =
      !later.newest.empty() && (lost.empty() ? !later.failed : lost.without(later.covered).empty());
  if (repaired)
    return "job " + later.newest +
           (lost.empty() ? " repairs that"
            : one        ? " runs it again"
                         : " runs them again") +
           ", so the way on is: " + retry;
  const std::string root = root_cause(others, name, lost);
  const auto cause = others.find(root);
  if (!cause) return it + (one || lost.empty() ? " runs" : " run") + " only with a new job";
  if (root != name && !later_rounds(others, *cause->job).newest.empty())
    return "the way on is: muster retry job/" + name + " --dependents";
  return "the way on is: " + retry_with_dependents(*cause->job, lost);
}

std::string lost_text(const core::IndexSet& lost, const std::string& name) {
  const bool one = lost.size() == 1;
  return (one ? "index " : "indexes ") + lost.text() + " never ran, because " +
         (one ? "it" : "they") + " did not succeed in job " + name + "; ";
}

}  // namespace

std::vector<std::string> repairs_needed(const View& view, const core::Job& job,
                                        std::optional<uint32_t> index) {
  std::vector<std::string> out;
  const core::Condition* const end = job.condition(core::ConditionType::failed);
  const bool never = end && end->reason == core::ConditionReason::dependency_never_satisfied;
  if (job.state().followed.empty() && !never) return out;
  const Others others(view, job);
  if (const Later own = later_rounds(others, job); !own.newest.empty()) return out;
  for (const core::Followed& one : job.state().followed) {
    core::IndexSet lost = job.own_indexes().without(one.known.passed);
    if (!one.ended) lost = lost.without(lost.without(one.known.failed));
    if (index && !lost.contains(*index)) continue;
    if (index) {
      lost.clear();
      lost.insert(*index);
    }
    if (!lost.empty())
      out.push_back((index ? "" : lost_text(lost, one.name)) +
                    needed_text(others, job, one.name, lost));
  }
  if (!never || !out.empty()) return out;
  for (const core::After& one : core::after_of(job.object().meta.annotations)) {
    const auto other = one.needed == core::Needed::ok ? others.find(one.job) : std::nullopt;
    if (other && other->job->condition(core::ConditionType::failed))
      out.push_back(needed_text(others, job, one.job, {}));
  }
  return out;
}

}  // namespace muster::api
