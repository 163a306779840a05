// Event text: the reason, message and name of a job's event.
#pragma once

#include "core/job/fold/job.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::api {

// Identifies an event of a job.
struct EventId {
  JobId job = 0;
  uint64_t nr = 0;
};

// Worded as in job-semantics 13.
std::string event_reason(const core::Job& job, const core::JobEvent& event);
std::string event_message(const core::Job& job, const core::JobEvent& event);
// NAME.ID-NR: the job's name, then its id and the event's number in hexadecimal. parse_event_name()
// is the inverse.
std::string event_name(const core::Job& job, const core::JobEvent& event);
std::optional<EventId> parse_event_name(std::string_view name);

}  // namespace muster::api
