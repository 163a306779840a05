// Hollow nodes start no processes and report each pod as a success, so a taint keeps jobs off that
// do not ask for them.
#pragma once

#include "core/cluster/node_info.hpp"
#include "core/spec/well_known.hpp"

namespace muster::core {

// kHollowKey is both the label of such a node and its taint.
//
// Takes over the labels that the node's agent reports. A node that becomes hollow gets the taint,
// one that becomes real loses it; changes that operators make in between stay.
void take_labels(NodeInfo& node, const StringMap& labels, bool was_hollow);

}  // namespace muster::core
