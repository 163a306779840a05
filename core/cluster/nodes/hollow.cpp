#include "core/cluster/nodes/hollow.hpp"

namespace muster::core {

void take_labels(NodeInfo& node, const StringMap& labels, bool was_hollow) {
  node.labels = labels;
  const bool hollow = labels.contains(std::string(kHollowKey));
  if (hollow == was_hollow) return;
  std::erase_if(node.spec.taints, [](const Taint& taint) { return taint.key == kHollowKey; });
  if (hollow) node.spec.taints.push_back({std::string(kHollowKey), "true", "NoSchedule"});
}

}  // namespace muster::core
