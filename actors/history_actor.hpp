// HistoryActor: keeps the history of jobs and of attempts within its bounds.
//
// Periodically scans the rows on disk and has the journal remove entries of jobs that are gone and
// attempts if they are too old or too many, and the attempts of jobs of which nothing is left.
// Keeps no state.
#pragma once

#include "actors/interfaces.hpp"
#include "storage/journal/journal.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_actor.hpp>

namespace muster::actors {

struct HistoryBounds {
  Millis keep_ms = 0;       // attempts closed longer ago are removed
  uint64_t max = 0;         // attempts; the oldest beyond these are removed
  Millis jobs_keep_ms = 0;  // entries of jobs that ended longer ago are removed
  uint64_t jobs_max = 0;    // entries; likewise. 0: no history
};

using history_actor =
    caf::typed_actor<caf::reacts_to<wake_atom>, caf::reacts_to<durable_atom, uint64_t>,
                     caf::reacts_to<stop_atom>>;

// `rows` outlives the actor.
history_actor spawn_history(caf::actor_system& system, journal_actor journal, storage::Rows& rows,
                            WallClock clock, HistoryBounds bounds);

}  // namespace muster::actors
