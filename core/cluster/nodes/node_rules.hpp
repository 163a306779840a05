// Node rules: limits on a node's name and on what its agent reports about it.
#pragma once

#include "core/cluster/nodes/node_info.hpp"

#include <string>

namespace muster::core {

inline constexpr size_t kNodeLabelsMax = 1'000;
inline constexpr size_t kNodeResourcesMax = 100;
inline constexpr size_t kNodeIdMax = 128;       // bytes, for each id and the secret
inline constexpr size_t kNodeAddressMax = 253;  // bytes
inline constexpr uint32_t kNodeSlotsMax = 1'000'000;

// The first rule that the agent's description of its node violates, and what would be right; empty:
// none.
std::string node_error(const NodeInfo& node);

}  // namespace muster::core
