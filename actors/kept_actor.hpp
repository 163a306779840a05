// KeptActor: the objects that muster stores for clients.
//
// The only writer of their rows. Compares versions, so that of two clients that saw the same state
// one gets a conflict, which is what leases rely on.
//
// Always holds: each object has at most one write in flight, and later requests for it wait and are
// checked against its result; so no client learns of a state that is not on disk.
#pragma once

#include "actors/interfaces.hpp"

#include <caf/actor_system.hpp>

#include <vector>

namespace muster::actors {

// `kept`: the recovered objects.
kept_actor spawn_kept(caf::actor_system& system, journal_actor journal, WallClock clock,
                      const std::vector<core::Kept>& kept);

}  // namespace muster::actors
