// Environment: which variables of the agent's its keeper and its pods get.
//
// A pod can read what its keeper was started with (/proc/PID/environ), so the keeper gets a short
// list too, and the daemon forgets what is not on it (forget_environment).
#pragma once

#include <string>
#include <vector>

namespace muster::agent {

// "NAME=value" of those that are set: what a program needs to find its way.
std::vector<std::string> pod_environment();
// The same, and the keeper's own knobs (MUSTER_KEEPER_*).
std::vector<std::string> keeper_environment();

// Removes from this process what neither its keeper nor its pods get, also from
// what /proc shows of it. Before the first thread.
void forget_environment();

}  // namespace muster::agent
