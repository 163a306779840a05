// Checkpoint: a copy of the leader's journal for a follower that lacks too much of it.
//
// The copy is made beside the database, mostly of hard links, and is removed when the follower lets
// go of it.
#pragma once

#include "base/result.hpp"
#include "coordinator/threads/inbox.hpp"
#include "storage/journal/journal.hpp"

#include <kj/async.h>

#include <memory>
#include <schema/standby.capnp.h>
#include <string>

namespace muster::standby {

// Made on another thread. `door` is that of this thread; the journal must outlive the promise. What
// is attached lasts as long as the copy.
kj::Promise<Result<wire::Checkpoint::Client>> checkpoint_of(std::shared_ptr<coordinator::Door> door,
                                                            storage::Journal& journal,
                                                            const std::string& data_dir,
                                                            kj::Own<void> attached);
// Removes copies that a process that has ended has left. Call before the first copy.
void remove_checkpoints(const std::string& data_dir);

}  // namespace muster::standby
