// HistoryActor: keeps the history of attempts within its bounds.
//
// Now and then it looks at the rows on disk and has the journal remove those that are too old, too
// many, or of jobs that are gone. It knows nothing that is not on disk.
#pragma once

#include "actors/interfaces.hpp"
#include "storage/journal.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_actor.hpp>

namespace muster::actors {

struct HistoryBounds {
  Millis keep_ms = 0;  // attempts that ended longer ago go
  uint64_t max = 0;    // attempts; the oldest beyond them go
};

using history_actor =
    caf::typed_actor<caf::reacts_to<wake_atom>, caf::reacts_to<durable_atom, uint64_t>,
                     caf::reacts_to<stop_atom>>;

// `rows` outlives the actor.
history_actor spawn_history(caf::actor_system& system, journal_actor journal, storage::Rows& rows,
                            WallClock clock, HistoryBounds bounds);

}  // namespace muster::actors
