// Text: prints instants, and jobs, events, records and effects for transcripts and tests.
//
// Always one line each, whatever a message contains. Pods print as j7/12#0, nodes as n1, a run of
// pods with the same attempt as j7/12-15#0. Instants are in UTC with milliseconds. Values are
// omitted in the usual case (no signal, no message, unknown pid).
#pragma once

#include "core/job/facts/effect.hpp"
#include "core/job/facts/event.hpp"
#include "core/job/facts/record.hpp"
#include "core/job/fold/job.hpp"

#include <string>
#include <string_view>

namespace muster::core {

// "2026-01-01T00:00:10.000Z".
std::string instant_text(Millis at_ms);

std::string_view name(Counted counted);
std::string_view name(EndCause cause);
std::string_view name(Readiness readiness);
std::string_view name(ContainerPhase phase);
std::string_view name(FailureAction action);         // as in the API: "FailIndex"; none: ""
std::string_view record_name(const Record& record);  // the name of its type: "PodsCreated"

std::string to_text(JobId job, const Event& event);
std::string to_text(JobId job, const Record& record);
std::string to_text(JobId job, const Effect& effect);

// The counters of the status: "active=1 ready=0 terminating=0 succeeded=2 failed=1 completed=0,1".
std::string status_text(const Job& job);

}  // namespace muster::core
