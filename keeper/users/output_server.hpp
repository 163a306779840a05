// Output server: opens outputs for the agent, which cannot read what belongs to other users.
//
// It has its own thread and socket, so a hung file system delays neither processes nor their ends.
// The agent gets descriptors for reading, only of files that Owners::read_output() opens.
#pragma once

#include "keeper/users/owners.hpp"

namespace muster::keeper {

// Answers on `listen_fd`, a packet socket, for as long as the keeper lives. Both stay in use.
void serve_outputs(int listen_fd, const Owners& owners);

}  // namespace muster::keeper
