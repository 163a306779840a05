// muster's own annotations on a Job: a different backoff, a different restart delay, gangs, and
// what a command that cannot be started means.
//
// They are checked when a job is admitted; reading ignores what is malformed, so a stored job
// always reads.
#pragma once

#include "core/index_set.hpp"
#include "core/spec/job_spec.hpp"
#include "core/spec/violations.hpp"

#include <optional>
#include <string_view>

namespace muster::core {

constexpr std::string_view kBackoffBaseKey = "muster.dev/backoff-base";
constexpr std::string_view kBackoffMaxKey = "muster.dev/backoff-max";
constexpr std::string_view kRestartDelayKey = "muster.dev/restart-delay";
constexpr std::string_view kGangKey = "muster.dev/gang";
// "FailJob": a pod whose command cannot be started ends the job; for what a person has just typed.
constexpr std::string_view kStartFailureKey = "muster.dev/start-failure";
// Only these indexes of the job run ("3,7-9"); for another round of some indexes of a job.
constexpr std::string_view kIndexesKey = "muster.dev/indexes";

struct JobAnnotations {
  std::optional<Millis> backoff_base_ms;  // none: the coordinator's
  std::optional<Millis> backoff_max_ms;
  Millis restart_delay_ms = 10'000;
  bool gang = false;
  bool start_failure_fails_job = false;
  std::optional<IndexSet> indexes;  // none: all
};

JobAnnotations read_annotations(const StringMap& annotations);
// The same for one of them, looked up at each failed start.
bool start_failure_fails_job(const StringMap& annotations);

void validate_annotations(const StringMap& annotations, Violations& found);
// muster.dev/indexes: a set below the completions, of an Indexed job.
void validate_indexes(const StringMap& annotations, const JobSpec& spec, Violations& found);

}  // namespace muster::core
