// Expected starts: who goes before a waiting job, and about when it gets its first slot. Pure.
//
// Jobs are served by priority, then users, and the jobs of each, by how little they have
// (fair_share.hpp). expect() lets the first few take what becomes free in that order, each up to
// the share of the job in question. What is not known is left out: ends of pods of jobs of which
// nothing is known never come, and after the first job whose start does not follow from the others
// nothing is expected of any. Neither is anything of jobs that stand exactly alike.
//
// Invariant: a start that is given follows from ends that are known.
#pragma once

#include "core/cluster/slots/reservation.hpp"

#include <optional>
#include <vector>

namespace muster::core {

struct Expectation {
  JobId job = 0;
  uint32_t ahead = 0;                // waiting jobs that go first, for a node that it may use
  std::optional<Millis> start_ms{};  // on the clock of Ending::at_ms
};

// How many jobs expect() looks at; each may cost a plan for each before it.
inline constexpr size_t kExpectedMax = 6;
// A start that is sooner says nothing: what fits now is granted at once.
inline constexpr Millis kExpectedMinMs = 1'000;

// `nodes`: with known ends only, and without what is reserved. Jobs with a reservation get a
// position only; their start is known otherwise.
std::vector<Expectation> expect(const std::vector<WaitingJob>& waiting, std::vector<Outlook> nodes,
                                Millis now);

}  // namespace muster::core
