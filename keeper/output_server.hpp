// Output server: opens outputs for the agent, which cannot read what belongs to other users.
//
// A thread of its own, and a socket of its own: a file system that hangs delays neither processes
// nor their ends. The agent gets a descriptor for reading, of exactly the files that
// Owners::read_output() opens.
#pragma once

#include "keeper/owners.hpp"

namespace muster::keeper {

// Answers on `listen_fd`, a packet socket, for as long as the keeper lives. Both stay in use.
void serve_outputs(int listen_fd, const Owners& owners);

}  // namespace muster::keeper
