#include "cli/verbs/jobs/job_filter.hpp"

#include "base/text/time_text.hpp"
#include "cli/verbs/when.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/values/duration.hpp"

namespace muster::cli {
std::optional<Usage> read_filter(JobFilterWords& words, Millis now_ms) {
  if (!words.since.empty()) {
    auto at = parse_past(words.since, now_ms);
    if (!at) return Usage{"--since: " + at.error().message};
    if (*at > now_ms) return Usage{"--since: `" + words.since + "`: is in the future"};
    words.filter.created_since_ms = *at;
  }
  if (!words.older_than.empty()) {
    const auto span = core::parse_duration(words.older_than);
    if (!span)
      return Usage{"--older-than: `" + words.older_than + "`: must be a duration such as 7d"};
    words.filter.ended_before_ms = now_ms - *span;
  }
  return std::nullopt;
}

JobStage stage_of(const Json& job) {
  if (!condition_of(job, "Complete").is_null()) return JobStage::complete;
  return condition_of(job, "Failed").is_null() ? JobStage::running : JobStage::failed;
}

JobStage stage_of(const std::string& state) {
  if (state == "Complete") return JobStage::complete;
  return state == "Failed" ? JobStage::failed : JobStage::running;
}

Millis created_at(const Json& job) {
  return parse_time(text_at(job, {"metadata", "creationTimestamp"})).value_or(0);
}

std::optional<Millis> ended_at(const Json& job) {
  for (const char* type : {"Complete", "Failed"})
    if (const Json& end = condition_of(job, type); !end.is_null())
      return parse_time(text_at(end, {"lastTransitionTime"}));
  return std::nullopt;
}

bool keeps(const JobFilter& filter, const Json& job, JobStage stage) {
  const bool finished = stage != JobStage::running;
  const bool states = filter.failed || filter.running || filter.done;
  if (states && !(filter.failed && stage == JobStage::failed) && !(filter.running && !finished) &&
      !(filter.done && finished))
    return false;
  if (filter.created_since_ms && created_at(job) < *filter.created_since_ms) return false;
  if (filter.ended_before_ms) {
    const auto ended = ended_at(job);
    if (!ended || *ended >= *filter.ended_before_ms) return false;
  }
  const std::string owner(core::kOwnerKey);
  return filter.user.empty() ||
         text_at(job, {"metadata", "annotations", owner.c_str()}) == filter.user;
}

bool goes_first(JobOrder order, const Json& job, JobStage stage, const Json& other,
                JobStage other_stage) {
  if (order == JobOrder::name) return false;  // as the coordinator lists them
  const bool over = stage != JobStage::running, other_over = other_stage != JobStage::running;
  if (order == JobOrder::usual && over != other_over) return other_over;
  return created_at(job) > created_at(other);
}

}  // namespace muster::cli
