// JobFilter: which jobs a list or a deletion is about, and in which order they are listed; see
// `muster get jobs --help`.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"
#include "cli/verbs/verb.hpp"
#include "client/terminal/json.hpp"

#include <optional>
#include <string>

namespace muster::cli {

struct JobFilter {
  // The states that are wanted, any of them; none: all.
  bool failed = false, running = false, done = false;
  std::optional<Millis> created_since_ms;
  std::optional<Millis> ended_before_ms;
  std::string user;  // name of the owner; empty: any
  bool any() const {
    return failed || running || done || created_since_ms || ended_before_ms || !user.empty();
  }
};

// What is typed for a filter.
struct JobFilterWords {
  JobFilter filter;
  std::string since, older_than;
};
// Reads --since and --older-than as of `now_ms`.
std::optional<Usage> read_filter(JobFilterWords& words, Millis now_ms);

// A job as a list shows it.
enum class JobStage { running, complete, failed };  // running: not finished
JobStage stage_of(const Json& job);                 // an object of batch/v1
// Of a row of a table; `state`: its cell Status.
JobStage stage_of(const std::string& state);
Millis created_at(const Json& job);               // 0: unknown
std::optional<Millis> ended_at(const Json& job);  // of an object

// `job`: an object, or only its metadata if the filter does not ask when it ended.
bool keeps(const JobFilter& filter, const Json& job, JobStage stage);

enum class JobOrder {
  usual,  // unfinished jobs, then the others, each newest first
  name,
  age,  // newest first
};
// Whether the first job is listed before the second; both are objects or metadata.
bool goes_first(JobOrder order, const Json& job, JobStage stage, const Json& other,
                JobStage other_stage);

}  // namespace muster::cli
