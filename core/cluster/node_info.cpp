// Which nodes are ready, and the labels that selectors see.
#include "core/cluster/node_info.hpp"

namespace muster::core {

bool is_ready(const NodeInfo& node) {
  return node.health == NodeInfo::Health::ready && !node.draining && !node.trouble;
}

StringMap labels_of(const NodeInfo& node) {
  StringMap labels = node.spec.labels;
  labels.insert(node.labels.begin(), node.labels.end());
  labels.try_emplace("kubernetes.io/hostname", node.name);
  return labels;
}

}  // namespace muster::core
