// Hollow nodes start no processes and report every pod as a success, so a taint keeps off jobs that
// do not ask for them.
#pragma once

#include "core/cluster/nodes/node_info.hpp"
#include "core/spec/values/well_known.hpp"

namespace muster::core {

// kHollowKey is both the label of such a node and its taint.
//
// Stores the labels that the node's agent reports. A node that becomes hollow gets the taint, and a
// node that becomes real loses it; changes that operators make in between stay.
void take_labels(NodeInfo& node, const StringMap& labels, bool was_hollow);

}  // namespace muster::core
