// What always holds of a job's status (job-semantics 1.5), asserted after every sync: a status that
// broke one of these must never become durable. Cheap: nothing here grows with the job.
#include "base/check.hpp"
#include "core/job/sync.hpp"

namespace muster::core {

void check_status(const Job& job) {
  const JobState& s = job.state();
  bool complete = job.condition("Complete"), failed = job.condition("Failed");
  bool met = job.condition("SuccessCriteriaMet"), target = job.condition("FailureTarget");
  MUSTER_CHECK(!(complete && (failed || target)), job.id());
  MUSTER_CHECK(!(met && (failed || target)), job.id());
  MUSTER_CHECK(!complete || met, job.id());
  MUSTER_CHECK(!failed || target, job.id());
  MUSTER_CHECK(complete == (s.completion_ms != 0), job.id());
  MUSTER_CHECK(s.completion_ms == 0 || s.completion_ms >= s.start_ms, job.id());
  MUSTER_CHECK(job.ready() <= job.active() && job.active() <= s.open.size(), job.id());
  if (complete || failed) {
    MUSTER_CHECK(s.open.empty() && s.held.empty(), job.id());
  }
  MUSTER_CHECK(s.completed.empty() || job.indexed(), job.id());
  MUSTER_CHECK(s.failed_indexes.empty() || job.per_index(), job.id());
  if (job.indexed()) {
    auto end = static_cast<uint64_t>(std::max(s.completions, 0));
    MUSTER_CHECK(s.completed.lowest(end) > UINT32_MAX, job.id());
    MUSTER_CHECK(s.failed_indexes.lowest(end) > UINT32_MAX, job.id());
    MUSTER_CHECK(s.completed.size() + s.failed_indexes.size() <= end, job.id());
  }
}

}  // namespace muster::core
