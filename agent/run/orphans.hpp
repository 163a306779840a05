// Orphans: processes whose keeper is gone and has no successor.
//
// The next keeper of a work-dir ends what an earlier one left behind. If none can be started, the
// agent does, as far as it may, before it gives their pods up.
#pragma once

#include "core/node/values.hpp"

#include <vector>

namespace muster::agent {

// Sends SIGKILL to the process groups of those that still exist: a pid with another start time, or
// that leads no group, is somebody else's by now. Without the right to, nothing happens: a keeper
// that ran as root runs pods as other users.
void kill_orphans(const std::vector<core::node::ProcessStart>& processes);

}  // namespace muster::agent
