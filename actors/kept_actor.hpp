// KeptActor: the objects that clients keep here.
//
// The only writer of their rows. Compares versions, so that of two clients that saw the same state
// one is told of a conflict: what a lease is for.
//
// Always holds: of one object no more than one write is under way, and whoever comes meanwhile is
// judged by what that one made of it; so nobody is told of a state that is not on disk.
#pragma once

#include "actors/interfaces.hpp"

#include <caf/actor_system.hpp>

#include <vector>

namespace muster::actors {

// `kept`: what was recovered.
kept_actor spawn_kept(caf::actor_system& system, journal_actor journal, WallClock clock,
                      const std::vector<core::Kept>& kept);

}  // namespace muster::actors
