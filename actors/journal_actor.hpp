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
#include <cstdint>
#include <functional>

namespace muster::actors {

struct JournalOptions {
  std::function<void(core::Committed)> show;  // hands a durable batch to the read model
  // Called with the reason when a write fails; must not return in production.
  std::function<void(const std::string&)> failed;
  // Called after a write, with how long it took and the size of its keys and values.
  std::function<void(double seconds, uint64_t bytes)> written = [](double, uint64_t) {};
  // Minimum time between the starts of two commits while all waiting appends have may_wait set, so
  // that at high rates one sync serves many of them and no other append is delayed.
  std::chrono::microseconds gather{0};
  bool detached = false;  // on a thread of its own; else on the scheduler
  bool held = false;      // defers everything until begin_atom
};
journal_actor spawn_journal(caf::actor_system& system, storage::Journal& journal,
                            JournalOptions options);

}  // namespace muster::actors
