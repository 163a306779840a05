// What a job waits for (muster.dev/after), as text, and what it tells those that follow it.
#pragma once

#include "core/job/fold/job.hpp"

#include <cstdint>
#include <string>

namespace muster::core {

// "job prep to succeed, clean to end", to follow "waits for". Empty: it does not wait.
std::string awaited_text(const Job& job);

// The indexes that wait for those of jobs that this one follows (each:JOB); the jobs that one of
// them waits for ("a, b"); why one never runs: "index 3 of job a failed".
IndexSet awaiting_indexes(const Job& job);
std::string awaited_by(const Job& job, uint32_t index);
std::string never_runs_text(const Job& job, uint32_t index);

// The indexes that were cancelled and stay so: no pod of them may still turn out to have succeeded,
// which would complete them (ADR 74).
IndexSet cancelled_for_good(const JobState& state);

// The hold of a job that is created with one (muster.dev/hold).
JobHeld held_by_owner(const JobMeta& meta, Millis at_ms);

// How far its indexes are, for the jobs that follow it.
Progress progress_of(const Job& job);

}  // namespace muster::core
