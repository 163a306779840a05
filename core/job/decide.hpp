// decide: evaluates a job's rules for the events that have arrived.
//
// One call is one Kubernetes sync (job-semantics 14): events are taken in, ends are judged, then
// the job's end is decided (3.4), then pods are removed or created (4), then the terminal condition
// is added if no pod is left. Each record is applied to the job as soon as a rule emits it, so that
// the next rule sees it; the returned records, applied in order to a copy of the original job, give
// the same job. Pure: time and knobs are arguments.
#pragma once

#include "core/job/decision.hpp"
#include "core/job/event.hpp"
#include "core/job/hearing.hpp"
#include "core/job/job.hpp"

#include <optional>
#include <vector>

namespace muster::core {

// Advances `job` by `events`. `now` is raised to the job's last record. `hearing` lives as long as
// the job is in memory.
Decision decide(Job& job, const std::vector<Event>& events, Millis now, const Knobs& knobs,
                Hearing& hearing);
// The same without asking nodes, for a job whose pods never end unseen.
Decision decide(Job& job, const std::vector<Event>& events, Millis now, const Knobs& knobs);

// When a finished job is to be deleted (ttlSecondsAfterFinished), if ever.
std::optional<Millis> expires_at(const Job& job);

}  // namespace muster::core
