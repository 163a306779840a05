// Environment: which of the agent's variables its keeper and its pods get.
//
// A pod can read the keeper's environment (/proc/PID/environ), so the keeper gets a short list too,
// and the daemon drops what is not on it (forget_environment).
#pragma once

#include "core/node/command.hpp"

#include <string>
#include <vector>

namespace muster::agent {

// "NAME=value" of those that are set: PATH, HOME and the like.
std::vector<std::string> pod_environment();
// What all pods of this agent get.
core::node::NodeFacts node_facts(std::string node_name);
// The environment without LD_LIBRARY_PATH, plus the keeper's settings (MUSTER_KEEPER_*).
std::vector<std::string> keeper_environment();

// Removes from this process, and from its /proc/PID/environ, what neither its keeper nor its pods
// get. Call before the first thread starts.
void forget_environment();

}  // namespace muster::agent
