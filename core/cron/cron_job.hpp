// CronJob: the values of a batch/v1 CronJob that its controller decides on, and what it knows of
// the jobs that the CronJob controls.
#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::core {

// The job's name ends in the minutes since 1970, "-28899480", and has at most 63 bytes.
constexpr size_t kCronNameMax = 52;

// What happens at a scheduled time while an earlier job is unfinished.
enum class Concurrency { allow, forbid, replace };

struct CronSpec {
  std::string schedule;
  std::optional<std::string> time_zone;  // absent: the coordinator's
  std::optional<int64_t> starting_deadline_s;
  Concurrency concurrency = Concurrency::allow;
  bool suspend = false;
  std::optional<int32_t> keep_successful, keep_failed;  // absent: all
};

struct JobRef {
  std::string name, uid;
  bool operator==(const JobRef&) const = default;
};

struct CronStatus {
  std::vector<JobRef> active;
  std::optional<Millis> scheduled_ms;   // lastScheduleTime
  std::optional<Millis> successful_ms;  // lastSuccessfulTime
  bool operator==(const CronStatus&) const = default;
};

struct CronJob {
  std::string name;
  Millis created_ms = 0;
  bool deleted = false;  // it starts nothing any more
  CronSpec spec;
  CronStatus status;
};

// A job whose controller is the CronJob.
struct ChildJob {
  enum class End { none, complete, failed };
  JobRef ref;
  End end = End::none;
  std::optional<Millis> started_ms;
  Millis ended_ms = 0;  // if complete
  bool operator==(const ChildJob&) const = default;
};

}  // namespace muster::core
