// Hollow nodes start no process and call each pod a success, so no job may get there by chance.
#pragma once

#include "core/cluster/node_info.hpp"
#include "core/spec/well_known.hpp"

namespace muster::core {

// kHollowKey is the label of such a node, and the taint that keeps jobs off that do not ask for it.
//
// The node's agent tells these labels now. A node that becomes hollow gets the taint, one that
// becomes a real one loses it; what people do to it in between stays.
void take_labels(NodeInfo& node, const StringMap& told, bool was_hollow);

}  // namespace muster::core
