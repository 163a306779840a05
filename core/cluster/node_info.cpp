// The labels that selectors see.
#include "core/cluster/node_info.hpp"

namespace muster::core {

StringMap labels_of(const NodeInfo& node) {
  StringMap labels = node.spec.labels;
  labels.insert(node.labels.begin(), node.labels.end());
  labels.try_emplace("kubernetes.io/hostname", node.name);
  return labels;
}

}  // namespace muster::core
