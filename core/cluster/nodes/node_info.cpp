// The readiness of nodes, and the labels that selectors see.
#include "core/cluster/nodes/node_info.hpp"

namespace muster::core {

NodeHealth health_of(const NodeInfo& node) {
  return {node.id,         node.health,    node.draining, node.trouble,       node.heartbeat_ms,
          node.changed_ms, node.loss_held, node.check,    node.starts_failing};
}

void set_health(NodeInfo& node, const NodeHealth& health) {
  node.health = health.health;
  node.draining = health.draining;
  node.trouble = health.trouble;
  node.heartbeat_ms = health.heartbeat_ms;
  node.changed_ms = health.changed_ms;
  node.loss_held = health.loss_held;
  node.check = health.check;
  node.starts_failing = health.starts_failing;
}

bool is_healthy(const NodeInfo& node) {
  return node.health == NodeInfo::Health::ready && !node.draining && !node.trouble &&
         !node.check.fails();
}

bool is_ready(const NodeInfo& node) {
  return is_healthy(node) && node.starts_failing.empty();
}

StringMap labels_of(const NodeInfo& node) {
  StringMap labels = node.spec.labels;
  labels.insert(node.labels.begin(), node.labels.end());
  labels.try_emplace("kubernetes.io/hostname", node.name);
  labels.try_emplace("kubernetes.io/os", "linux");
  return labels;
}

}  // namespace muster::core
