// What a CronJob's controller does next. Pure: all that it remembers is the CronJob's status, so a
// coordinator that was away makes up for it by the same rules (Kubernetes'
// pkg/controller/cronjob/cronjob_controllerv2.go).
//
// A scheduled time is processed once: its job has a name that is computed from it, and
// lastScheduleTime is written when that job exists. Of several missed times, only the last is made
// up for, and only within startingDeadlineSeconds.
#pragma once

#include "core/cron/cron_job.hpp"
#include "core/cron/schedule.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::core {

struct CronEvent {
  bool warning = false;
  std::string reason, message;
  bool operator==(const CronEvent&) const = default;
};

struct CronDecision {
  std::vector<JobRef> remove;   // delete these jobs first; without events
  std::optional<Millis> start;  // then create the job of this scheduled time
  CronStatus status;            // then write this, with the created job added by started()
  std::vector<CronEvent> events;
  std::optional<Millis> wake;  // decide again at this instant at the latest; absent: at a change
};

// `zone`: nullptr if it is unknown.
CronDecision decide(const CronJob& cron, std::vector<ChildJob> children, const Zone* zone,
                    Millis now_ms);

// The status once the job of this scheduled time exists.
CronStatus started(CronStatus status, JobRef job, Millis scheduled_ms);

// The name of a CronJob's job of this scheduled time. `cron`: its own name.
std::string job_name(const std::string& cron, Millis scheduled_ms);

}  // namespace muster::core
