// Delays before a failed pod is replaced (job-semantics 5.2 and 5.3).
#include "core/job/rules/sync.hpp"
#include "core/job/rules/waiting.hpp"
#include "core/spec/fields/annotations.hpp"

namespace muster::core {

Millis backoff_delay(const Knobs& knobs, uint32_t failures) {
  if (failures == 0) return 0;
  Millis delay = knobs.backoff_base_ms;
  for (uint32_t i = 1; i < failures && delay < knobs.backoff_max_ms; ++i) delay *= 2;
  return std::min(delay, knobs.backoff_max_ms);
}

std::pair<uint32_t, Millis> next_backoff(const Job& job, const std::vector<PodsEnded::One>& ends) {
  const JobState& state = job.state();
  Millis last_success = 0, last_failure = 0;
  bool succeeded = false;
  uint32_t failures = 0;
  for (const auto& one : ends) {
    // Pods counted before their end were recorded at that time, or were not failures.
    const Pod& pod = state.open.at(one.pod);
    if (pod.counted != Counted::not_yet) continue;
    if (!counts_as_success(job, pod, one.end)) continue;
    succeeded = true;
    last_success = std::max(last_success, one.end.ended_at);
  }
  for (const auto& one : ends) {
    const Pod& pod = state.open.at(one.pod);
    if (pod.counted != Counted::not_yet || counts_as_success(job, pod, one.end)) continue;
    if (one.end.cause == EndCause::returned || pod.spared) continue;
    if (succeeded && one.end.ended_at <= last_success) continue;
    ++failures;
    last_failure = std::max(last_failure, one.end.ended_at);
  }
  if (succeeded) return {failures, last_failure};
  if (failures == 0) return {state.backoff_failures, state.backoff_last_ms};
  return {state.backoff_failures + failures, std::max(state.backoff_last_ms, last_failure)};
}

Knobs knobs_of(const Knobs& coordinator, const JobObject& object) {
  JobAnnotations own = read_annotations(object.meta.annotations);
  Knobs knobs = coordinator;
  if (own.backoff_base_ms) knobs.backoff_base_ms = *own.backoff_base_ms;
  if (own.backoff_max_ms) knobs.backoff_max_ms = *own.backoff_max_ms;
  knobs.backoff_yields = own.backoff_yields;
  return knobs;
}

}  // namespace muster::core
