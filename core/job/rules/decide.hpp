// decide: evaluates a job's rules for the events that have arrived.
//
// One call is one Kubernetes sync (job-semantics 14): events are ingested, ends are judged, the
// job's end is decided (3.4), pods are removed or created (4), and the terminal condition is added
// if no pod is left. Each record is applied to the job as soon as a rule emits it, so that the next
// rule sees it. Applying the returned records in order to a copy of the original job gives the same
// job. Pure: time and knobs are arguments.
#pragma once

#include "core/job/facts/decision.hpp"
#include "core/job/facts/event.hpp"
#include "core/job/fold/hearing.hpp"
#include "core/job/fold/job.hpp"

#include <optional>
#include <vector>

namespace muster::core {

// Advances `job` by `events`. A `now` before the job's last record is raised to it. `hearing` lives
// as long as the job is in memory.
Decision decide(Job& job, const std::vector<Event>& events, Millis now, const Knobs& knobs,
                Hearing& hearing);
// The same without asking nodes, for a job whose pods never end unseen.
Decision decide(Job& job, const std::vector<Event>& events, Millis now, const Knobs& knobs);

// How long it is tried to tell of an end, from then on (muster.dev/mail and notify).
constexpr Millis kNoticeLifeMs = 24 * 3'600'000;
// Whether somebody has to be told that this job has finished.
bool notice_due(const Job& job);

// When to delete a finished job (ttlSecondsAfterFinished), if ever. Not before its end was told.
std::optional<Millis> expires_at(const Job& job);

}  // namespace muster::core
