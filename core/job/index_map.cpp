#include "core/job/index_map.hpp"

#include "core/job/waiting.hpp"

#include <algorithm>

namespace muster::core {
namespace {

// Each index goes into the first set that claims it.
class Sorter {
 public:
  explicit Sorter(const Job& job) : end_(static_cast<uint32_t>(job.index_count())) {}

  bool free(uint32_t index, const IndexMap& map) const {
    return index < end_ && !map.succeeded.contains(index) && !map.failed.contains(index) &&
           !map.running.contains(index) && !map.pending.contains(index);
  }

 private:
  uint32_t end_;  // an index that was scaled away may have a pod that is still ending
};

bool runs(const Pod& pod) {
  return pod.started_at && pod.readiness != Readiness::initializing;
}

}  // namespace

IndexMap index_map(const Job& job, Millis now, const Knobs& knobs) {
  IndexMap map;
  if (!job.indexed()) return map;
  const JobState& s = job.state();
  const Sorter sorter(job);
  map.succeeded = s.completed;
  map.failed = s.failed_indexes;
  for (const auto& [key, pod] : s.open)
    if (runs(pod) && sorter.free(key.index, map)) map.running.insert(key.index);
  for (const auto& [key, pod] : s.open)
    if (!pod.terminating() && sorter.free(key.index, map)) map.pending.insert(key.index);
  if (job.decided() || job.finished()) {
    const bool failed =
        job.condition(ConditionType::failed) || job.condition(ConditionType::failure_target);
    if (!failed || job.per_index()) return map;
    for (const auto& [index, next] : s.attempts)
      if (sorter.free(index, map)) map.failed.insert(index);
    return map;
  }
  if (job.spec().suspend.value_or(false) || s.deleted_at) return map;
  if (job.per_index() && knobs.gates.backoff_limit_per_index) {
    auto add = [&](uint32_t index) {
      if (index_due(job, knobs, index) > now && sorter.free(index, map)) map.backoff.insert(index);
    };
    for (const auto& [index, pod] : s.deferred) add(index);
    for (PodKey key : job.unjudged()) add(key.index);
    return map;
  }
  if (job_due(job, knobs) <= now) return map;
  for (const auto& [index, next] : s.attempts)
    if (sorter.free(index, map)) map.backoff.insert(index);
  return map;
}

}  // namespace muster::core
