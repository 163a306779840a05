#include "core/job/shown/index_map.hpp"

#include "core/job/rules/backoff.hpp"
#include "core/job/rules/held.hpp"

#include <algorithm>

namespace muster::core {
namespace {

// Whether an index is in none of the sets yet. Indexes that were scaled away never qualify, though
// they may have pods that are still ending.
bool unplaced(const Job& job, uint32_t index, const IndexMap& map) {
  return index < job.index_count() && !map.succeeded.contains(index) &&
         !map.failed.contains(index) && !map.cancelled.contains(index) &&
         !map.running.contains(index) && !map.pending.contains(index);
}

bool runs(const Pod& pod) {
  return pod.started_at && pod.readiness != Readiness::initializing;
}

}  // namespace

IndexMap index_map(const Job& job, Millis now, const Knobs& knobs) {
  IndexMap map;
  if (!job.indexed()) return map;
  const JobState& s = job.state();
  map.succeeded = s.completed;
  map.cancelled = cancelled_for_good(s);
  map.failed = s.failed_indexes.without(map.cancelled);
  for (const auto& [key, pod] : s.open)
    if (runs(pod) && unplaced(job, key.index, map)) map.running.insert(key.index);
  for (const auto& [key, pod] : s.open)
    if (!pod.terminating() && unplaced(job, key.index, map)) map.pending.insert(key.index);
  if (job.decided() || job.finished()) {
    const bool failed =
        job.condition(ConditionType::failed) || job.condition(ConditionType::failure_target);
    if (!failed || job.per_index()) return map;
    for (const auto& [index, next] : s.attempts)
      if (unplaced(job, index, map)) map.failed.insert(index);
    return map;
  }
  if (job.spec().suspend.value_or(false) || s.deleted_at) return map;
  if (job.per_index() && knobs.gates.backoff_limit_per_index) {
    auto add = [&](uint32_t index) {
      if (index_due(job, knobs, index) > now && unplaced(job, index, map))
        map.backoff.insert(index);
    };
    for (const auto& [index, pod] : s.deferred) add(index);
    for (PodKey key : job.unjudged()) add(key.index);
    for (const auto& [index, counts] : s.inherited) add(index);
    return map;
  }
  if (job_due(job, knobs) <= now) return map;
  for (const auto& [index, next] : s.attempts)
    if (unplaced(job, index, map)) map.backoff.insert(index);
  return map;
}

}  // namespace muster::core
