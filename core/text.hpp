// Text: the one printer of events, records and effects, a line each (logs, transcripts, `muster
// journal`).
//
// Pods are always j7/12#0, nodes n1, a run of pods of one attempt j7/12-15#0. Instants are UTC with
// milliseconds. What is the usual case is left out (no signal, no message, pid unknown). Always one
// line, whatever a message holds.
#pragma once

#include "core/job/effect.hpp"
#include "core/job/event.hpp"
#include "core/job/job.hpp"
#include "core/job/record.hpp"

#include <string>
#include <string_view>

namespace muster::core {

// "2026-01-01T00:00:10.000Z".
std::string instant_text(Millis at_ms);

std::string_view name(Counted counted);
std::string_view name(EndCause cause);
std::string_view name(Readiness readiness);
std::string_view name(FailureAction action);  // as the API writes it: "FailIndex"; of none ""

std::string to_text(JobId job, const Event& event);
std::string to_text(JobId job, const Record& record);
std::string to_text(JobId job, const Effect& effect);

// The figures of the status: "active=1 ready=0 terminating=0 succeeded=2 failed=1 completed=0,1".
std::string status_text(const Job& job);

}  // namespace muster::core
