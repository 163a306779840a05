// Why: what a job, or one index of it, waits for, or how it came to its end, in words.
//
// Made from what is shown alone, so it is never ahead of the disk. Texts are for people; `state` is
// one of a few words for programs.
#pragma once

#include "api/view/view.hpp"
#include "core/job/decide.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::api {

struct Explanation {
  // Succeeded, Failed, Running, Stopping, Pending (for a place on a node), Backoff, Waiting (for
  // its turn), Suspended, Deleted, External (another controller manages the job).
  std::string state;
  std::string summary;
  std::vector<std::string> details;
  Millis until_ms = 0;  // of Backoff: when it goes on; else 0
};

Explanation why_job(const View& view, const core::Job& job, Millis now, const core::Knobs& knobs);
// `last`: the newest attempt of this index that is over, when there is one.
Explanation why_index(const View& view, const core::Job& job, uint32_t index,
                      const std::optional<core::Pod>& last, Millis now, const core::Knobs& knobs);

}  // namespace muster::api
