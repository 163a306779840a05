// JournalActor: group commit.
//
// The only actor that writes to the journal; everything that arrives during a sync goes into the
// next one. Detached (on its own thread) except in the simulation. A commit syncs the rows, shows
// them, and then calls each append's `done`, in order of arrival. A failed commit ends the process:
// the state on disk is unknown, and the restart recovers.
//
// While a starting coordinator may still find that its data is outdated, everything is deferred
// until begin_atom; if the process ends before that, nothing was written.
#pragma once

#include "actors/interfaces.hpp"
#include "storage/journal/journal.hpp"

#include <caf/actor_system.hpp>

#include <chrono>
#include <functional>

namespace muster::actors {

// `show` hands a durable batch to the read model; `failed` is called with the reason when a write
// fails, and must not return in production. `gather`: minimum time between the starts of two
// commits while all waiting appends have may_wait set, so that at high rates one sync serves many
// of them and no other append is delayed. `detached` false: runs on the scheduler (simulation,
// where gather is 0). `held`: defers everything until begin_atom.
journal_actor spawn_journal(caf::actor_system& system, storage::Journal& journal,
                            std::function<void(core::Committed)> show,
                            std::function<void(const std::string&)> failed,
                            std::chrono::microseconds gather, bool detached, bool held = false);

}  // namespace muster::actors
