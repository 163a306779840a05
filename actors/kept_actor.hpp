// KeptActor: the objects that muster stores for clients.
//
// The only writer of their rows. Compares versions: of two clients that change the same version,
// one gets a conflict. Leases rely on this.
//
// Invariant: each object has at most one write in flight; later requests for it wait and are
// checked against its result, so clients only ever see durable state.
#pragma once

#include "actors/interfaces.hpp"

#include <caf/actor_system.hpp>

#include <vector>

namespace muster::actors {

// `kept`: the recovered objects.
kept_actor spawn_kept(caf::actor_system& system, journal_actor journal, WallClock clock,
                      const std::vector<core::Kept>& kept);

}  // namespace muster::actors
