// Asserted after every sync: a status that violates an invariant must never become durable. `muster
// verify` checks them too.
#include "core/job/rules/invariants.hpp"

#include "base/check.hpp"
#include "core/job/rules/sync.hpp"

namespace muster::core {

std::string broken_rule(const Job& job) {
  const JobState& s = job.state();
  bool complete = job.condition(ConditionType::complete),
       failed = job.condition(ConditionType::failed);
  bool met = job.condition(ConditionType::success_criteria_met),
       target = job.condition(ConditionType::failure_target);
  if (complete && (failed || target)) return "it is Complete and has failed";
  if (met && (failed || target)) return "it has met its success criteria and has failed";
  if (complete && !met) return "it is Complete without SuccessCriteriaMet";
  if (failed && !target) return "it is Failed without FailureTarget";
  if (complete != s.completed_at.has_value()) return "Complete and completionTime do not agree";
  if (s.completed_at && s.completed_at < s.started_at)
    return "its completionTime is before its startTime";
  if (job.ready() > job.active() || job.active() > s.open.size())
    return "ready <= active <= open pods does not hold";
  if ((complete || failed) && !(s.open.empty() && s.deferred.empty()))
    return "it is finished but has pods that are not";
  if (!s.completed.empty() && !job.indexed()) return "it is NonIndexed but has completed indexes";
  if (!s.failed_indexes.empty() && !job.per_index())
    return "it has failed indexes and no backoff limit per index";
  if (!s.cancelled_indexes.empty() && !job.indexed())
    return "it is NonIndexed but has cancelled indexes";
  if (s.cancelled_indexes.without(s.completed) != s.cancelled_indexes)
    return "an index has completed and is cancelled";
  if (job.indexed()) {
    auto end = static_cast<uint64_t>(job.index_count());
    if (s.completed.lowest(end) <= UINT32_MAX) return "an index beyond its completions completed";
    if (s.failed_indexes.lowest(end) <= UINT32_MAX) return "an index beyond its completions failed";
    if (s.cancelled_indexes.lowest(end) <= UINT32_MAX)
      return "an index beyond its completions is cancelled";
    if (s.completed.size() + s.failed_indexes.size() > end)
      return "more indexes are completed and failed than there are";
  }
  return "";
}

void check_status(const Job& job) {
  const std::string broken = broken_rule(job);
  MUSTER_CHECK(broken.empty(), job.id(), broken);
}

}  // namespace muster::core
