// decide: what a job makes of all that reached it meanwhile.
//
// One call is one Kubernetes sync (job-semantics 14): what arrived is taken in, ends are judged,
// then the job's end is decided (3.4), then pods are removed or created (4), then the terminal
// condition is added when nothing is left. A rule emits its records as it goes, and each is applied
// to the job at once, so that the next rule sees it; what is returned, applied in order to a copy
// of the job as it was, gives the same job. Pure: time and knobs are arguments.
#pragma once

#include "core/job/decision.hpp"
#include "core/job/event.hpp"
#include "core/job/hearing.hpp"
#include "core/job/job.hpp"

#include <vector>

namespace muster::core {

// Brings `job` forward by what `events` say. `now` is raised to the job's last record. `hearing`
// lives as long as the job is in memory.
Decision decide(Job& job, const std::vector<Event>& events, Millis now, const Knobs& knobs,
                Hearing& hearing);
// The same of a job whose nodes need not be asked: nothing ends there unseen.
Decision decide(Job& job, const std::vector<Event>& events, Millis now, const Knobs& knobs);

// Of a finished job: when it is to be deleted (ttlSecondsAfterFinished); 0: never.
Millis expires_at(const Job& job);

}  // namespace muster::core
