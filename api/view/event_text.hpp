// The words of an event of a job, and its name.
#pragma once

#include "core/job/job.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::api {

// Which event of which job.
struct EventId {
  JobId job = 0;
  uint64_t nr = 0;
};

// The facts of an event (job-semantics 13).
std::string event_reason(const core::Job& job, const core::JobEvent& event);
std::string event_message(const core::Job& job, const core::JobEvent& event);
// JOB.ID-NR in hexadecimal digits, and back.
std::string event_name(const core::Job& job, const core::JobEvent& event);
std::optional<EventId> parse_event_name(std::string_view name);

}  // namespace muster::api
