// JournalActor: group commit.
//
// Owns the journal; everything that arrived while the last sync ran goes into the next one.
// Detached (a thread of its own) except in the simulation. Order of a commit: rows synced, then
// shown, then each append's `done`, in order of arrival. A commit that fails ends the process:
// nobody knows what is on disk, and the restart is the recovery.
//
// A start that may yet prove to be one on old data holds everything back until begin_atom: when it
// ends before that, nothing was written.
#pragma once

#include "actors/interfaces.hpp"
#include "storage/journal.hpp"

#include <caf/actor_system.hpp>

#include <chrono>
#include <functional>

namespace muster::actors {

// `show` hands a durable batch to the copy that is shown; `failed` is called with the reason when
// the disk no longer writes, and must not return in production. `gather`: a commit begins no sooner
// than this after the one before it if all that waits says may_wait, so that at high rates a sync
// serves many and nobody waits for nothing. `detached` false: runs on the scheduler (simulation;
// there gather is 0).
journal_actor spawn_journal(caf::actor_system& system, storage::Journal& journal,
                            std::function<void(core::Committed)> show,
                            std::function<void(const std::string&)> failed,
                            std::chrono::microseconds gather, bool detached, bool held = false);

}  // namespace muster::actors
