// CronObject: converts a batch/v1 CronJob between its JSON and the values of core/cron.
//
// Its rules are those of Kubernetes (pkg/apis/batch/validation). Its job template is checked like a
// Job, so what is accepted here can be created when it is due.
#pragma once

#include "api/kube/objects/manifest.hpp"
#include "base/text/json.hpp"
#include "core/cron/cron_job.hpp"
#include "core/cron/schedule.hpp"
#include "core/spec/fields/owner_ref.hpp"
#include "core/spec/values/violations.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::api {

// The metadata that the template adds to each job, besides its own.
constexpr const char* kScheduledKey = "batch.kubernetes.io/cronjob-scheduled-timestamp";

// How the jobs of the template will be admitted.
struct TemplateRules {
  Admission admission;
  // Set for users: the highest priority that they may ask for.
  std::optional<int32_t> priority_max{};
};

// Completes and checks a conforming CronJob. `old`: the one that it replaces. Warnings of its
// template are added to `warnings`.
void settle_cron_job(Json& cron, const Json* old, const TemplateRules& rules,
                     core::Violations& found, std::vector<std::string>& warnings);

// The CronJob of stored JSON.
core::CronJob cron_of(const Json& cron);

// `cron` with this status.
void set_cron_status(Json& cron, const core::CronStatus& status);

// The Job for this scheduled time. `zone`: the schedule's.
Json cron_child(const Json& cron, Millis scheduled_ms, const core::Zone& zone);

// RFC 3339 with the zone's offset: "2026-03-01T12:00:00+01:00".
std::string zoned_time(Millis at_ms, const core::Zone& zone);

}  // namespace muster::api
