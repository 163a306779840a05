// Delays before a failed pod is replaced (job-semantics 5.2 and 5.3).
#include "core/job/rules/backoff.hpp"

#include "core/job/facts/pod_conditions.hpp"
#include "core/job/rules/sync.hpp"
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

namespace {

// A disruption that a limited number is ignored of delays nothing: the limit ends what repeats, and
// the index has done nothing wrong (ADR 82).
bool waits_after_disruptions(const Job& job) {
  return !disruptions_max(job.object().meta.annotations);
}

// Those that delay the next pod. A step delays nothing.
uint32_t delaying(const Job& job, int32_t failures, int32_t ignored, int32_t disruptions,
                  Steps steps) {
  if (disruptions > 0 && !waits_after_disruptions(job)) ignored -= disruptions;
  return static_cast<uint32_t>(failures + std::max(0, ignored - steps.taken()));
}

}  // namespace

Millis index_due(const Job& job, const Knobs& knobs, uint32_t index) {
  if (auto it = job.state().inherited.find(index); it != job.state().inherited.end()) {
    const FailureCounts& counts = it->second;
    if (counts.failed_ms == 0) return 0;
    return counts.failed_ms +
           backoff_delay(knobs, delaying(job, counts.failures, counts.ignored, counts.disruptions,
                                         next_steps(job, index)));
  }
  const auto& deferred = job.state().deferred;
  auto it = deferred.find(index);
  const Pod* pod = it != deferred.end() ? &it->second : deleted_pod(job, index);
  if (!pod || pod->counts_when_replaced() == Counted::released) return 0;
  if (next_steps(job, index) != pod->steps) return 0;  // it ran out of what the next one has
  const bool ignored = pod->counts_when_replaced() == Counted::ignored;
  if (ignored && is_disrupted(*pod) && !waits_after_disruptions(job)) return 0;
  Millis failed_ms = pod->ended ? pod->end.ended_at : pod->stopping_at.value_or(0);
  return failed_ms +
         backoff_delay(
             knobs, delaying(job, pod->failures, pod->ignored, pod->disruptions, pod->steps) + 1);
}

Millis job_due(const Job& job, const Knobs& knobs) {
  const JobState& s = job.state();
  bool per_index = job.per_index() && knobs.gates.backoff_limit_per_index;
  if (per_index || s.backoff_failures == 0) return 0;
  return s.backoff_last_ms + backoff_delay(knobs, s.backoff_failures);
}

Knobs knobs_of(const Knobs& coordinator, const JobObject& object) {
  JobAnnotations own = read_annotations(object.meta.annotations);
  Knobs knobs = coordinator;
  if (own.backoff_base_ms) knobs.backoff_base_ms = *own.backoff_base_ms;
  if (own.backoff_max_ms) knobs.backoff_max_ms = *own.backoff_max_ms;
  knobs.backoff_yields = own.backoff_yields;
  knobs.surplus_finishes = own.surplus_finishes;
  return knobs;
}

}  // namespace muster::core
