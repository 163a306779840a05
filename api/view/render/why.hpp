// Why: explains in words what a job or an index is waiting for, or how it ended.
//
// Made only from the read model, so it never runs ahead of the disk. Texts are for people; `state`
// is one of a few words for programs.
#pragma once

#include "api/view/model/view.hpp"
#include "core/job/rules/decide.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::api {

struct Explanation {
  // Succeeded, Failed, Running, Stopping, Pending (no slot yet), Backoff, Waiting (no pod yet),
  // Suspended, Held (for other jobs), SchedulingGated, Deleted, Damaged, External (another
  // controller manages the job).
  std::string state;
  std::string summary;
  std::vector<std::string> details;
  Millis until_ms = 0;       // of Backoff: when it ends; else 0
  Millis next_retry_ms = 0;  // of a job: when an index in backoff is next retried; else 0
};

Explanation why_job(const View& view, const core::Job& job, Millis now, const core::Knobs& knobs,
                    uint64_t user_pods_max = 0);
// `last`: the newest ended attempt of this index, if any.
Explanation why_index(const View& view, const core::Job& job, uint32_t index,
                      const std::optional<core::Pod>& last, Millis now, const core::Knobs& knobs,
                      uint64_t user_pods_max = 0);

}  // namespace muster::api
