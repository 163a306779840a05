#include "core/cluster/fold/cluster.hpp"

#include <algorithm>
#include <type_traits>

namespace muster::core::cluster {

NodeId node_of(const Record& record) {
  return std::visit(
      [](const auto& r) -> NodeId {
        using R = std::decay_t<decltype(r)>;
        if constexpr (std::is_same_v<R, NodeRegistered>)
          return r.node.id;
        else if constexpr (std::is_same_v<R, TickPassed> || std::is_same_v<R, UsesNoted>)
          return kNoNode;
        else
          return r.node;
      },
      record);
}

bool is_end(const Record& record) {
  return std::holds_alternative<NodeReplaced>(record) || std::holds_alternative<NodeLost>(record) ||
         std::holds_alternative<NodeDeleted>(record);
}

bool is_durable(const Record& record) {
  return is_end(record) || std::holds_alternative<NodeRegistered>(record) ||
         std::holds_alternative<NodeSpecChanged>(record) ||
         std::holds_alternative<NodeLeft>(record) ||
         std::holds_alternative<StrangersFound>(record) ||
         std::holds_alternative<StrangersDropped>(record) ||
         std::holds_alternative<UsesNoted>(record);
}

Cluster::Cluster(Settings settings, const std::vector<NodeInfo>& nodes)
    : settings_(std::move(settings)),
      noted_(settings_.noted),
      slots_(settings_.slots),
      queues_known_(!settings_.await_queues) {
  for (const auto& [user, use] : noted_.uses)
    slots_.restore_use(user, use, settings_.started_ms - noted_.at_ms);
  for (const NodeInfo& info : nodes) {
    last_id_ = std::max(last_id_, info.id);
    nodes_[info.id].info = info;
    if (info.gone) continue;
    living_[info.name] = info.id;
    awaited_.insert(info.name);
    slots_.set_node(info);
  }
}

const Cluster::Node* Cluster::node(NodeId id) const {
  auto it = nodes_.find(id);
  return it == nodes_.end() ? nullptr : &it->second;
}

NodeId Cluster::living(const std::string& name) const {
  auto it = living_.find(name);
  return it == living_.end() ? kNoNode : it->second;
}

NodeId Cluster::newest(const std::string& name) const {
  for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it)
    if (it->second.info.name == name) return it->second.info.deleted ? kNoNode : it->first;
  return kNoNode;
}

void Cluster::end(NodeId id, Millis at_ms) {
  Node& node = nodes_.at(id);
  node.info.gone = true;
  node.info.loss_held = false;
  node.info.check = {};
  node.info.starts_failing.clear();
  node.starts.clear();
  node.info.health = NodeInfo::Health::lost;
  node.info.changed_ms = at_ms;
  node.link.reset();
  slots_.remove_node(id);
  if (living(node.info.name) == id) living_.erase(node.info.name);
}

struct NodeApplier {
  Cluster& c;

  static void set_health(NodeInfo& info, NodeInfo::Health health, Millis at_ms) {
    if (info.health == health) return;
    info.health = health;
    info.changed_ms = at_ms;
  }
  static void renew(Cluster::Node& node, Millis at_ms) {
    node.lease.renew();
    node.info.loss_held = false;
    node.info.heartbeat_ms = at_ms;
    set_health(node.info, NodeInfo::Health::ready, at_ms);
  }

  void operator()(const NodeRegistered& r) const {
    Cluster::Node& node = c.nodes_[r.node.id];
    node.info = r.node;
    node.info.loss_held = false;
    node.lease.renew();
    node.link.reset();
    c.last_id_ = std::max(c.last_id_, r.node.id);
    c.living_[r.node.name] = r.node.id;
    c.awaited_.erase(r.node.name);
    c.slots_.set_node(node.info);
  }
  void operator()(const NodeReplaced& r) const { c.end(r.node, r.at_ms); }
  void operator()(const NodeLost& r) const { c.end(r.node, r.at_ms); }
  void operator()(const NodeDeleted& r) const {
    c.end(r.node, r.at_ms);
    c.nodes_.at(r.node).info.deleted = true;
  }
  void operator()(const NodeSpecChanged& r) const {
    NodeInfo& info = c.nodes_.at(r.node).info;
    info.spec = r.spec;
    if (!info.gone) c.slots_.set_node(info);
  }
  void operator()(const NodeLeft& r) const {
    NodeInfo& info = c.nodes_.at(r.node).info;
    info.draining = true;
    info.left_ms = r.at_ms;
  }
  void operator()(const StrangersFound& r) const {
    std::vector<PodId>& strangers = c.nodes_.at(r.node).info.strangers;
    strangers.insert(strangers.end(), r.pods.begin(), r.pods.end());
  }
  void operator()(const StrangersDropped& r) const { c.nodes_.at(r.node).info.strangers.clear(); }
  void operator()(const UsesNoted& r) const { c.noted_ = r.noted; }
  void operator()(const NodeConnected& r) const {
    Cluster::Node& node = c.nodes_.at(r.node);
    node.link = r.link;
    node.starts.started.reset();
    renew(node, r.at_ms);
  }
  void operator()(const NodeDisconnected& r) const {
    Cluster::Node& node = c.nodes_.at(r.node);
    node.link.reset();
    if (!node.info.gone) set_health(node.info, NodeInfo::Health::suspect, r.at_ms);
  }
  void operator()(const NodeResponded& r) const {
    Cluster::Node& node = c.nodes_.at(r.node);
    node.starts.started = r.started;
    renew(node, r.at_ms);
  }
  void operator()(const NodeTroubled& r) const {
    NodeInfo& info = c.nodes_.at(r.node).info;
    info.trouble = r.trouble;
    info.changed_ms = r.at_ms;
  }
  void operator()(const NodeSuspected& r) const {
    set_health(c.nodes_.at(r.node).info, NodeInfo::Health::suspect, r.at_ms);
  }
  void operator()(const LossHeld& r) const { c.nodes_.at(r.node).info.loss_held = true; }
  void operator()(const HealthChecked& r) const {
    NodeInfo& info = c.nodes_.at(r.node).info;
    if (info.check.fails() != r.check.fails()) info.changed_ms = r.at_ms;
    info.check = r.check;
  }
  void operator()(const StartsFailed& r) const {
    c.nodes_.at(r.node).starts.note(r.job, r.user, r.pods, r.why, r.up_ms);
  }
  void operator()(const StartsForgiven& r) const { c.nodes_.at(r.node).starts.failed.erase(r.job); }
  void operator()(const NodeClosed& r) const {
    Cluster::Node& node = c.nodes_.at(r.node);
    node.starts.wait_ms = StartWatch::kProbeMinMs;
    node.starts.probe_up_ms = r.probe_up_ms;
    node.info.starts_failing = r.why;
    node.info.changed_ms = r.at_ms;
  }
  void operator()(const ProbeSent& r) const {
    StartWatch& starts = c.nodes_.at(r.node).starts;
    starts.wait_ms = r.wait_ms;
    starts.probe_up_ms = r.next_up_ms;
  }
  void operator()(const StartsCleared& r) const {
    Cluster::Node& node = c.nodes_.at(r.node);
    node.starts.clear();
    if (node.info.starts_failing.empty()) return;
    node.info.starts_failing.clear();
    node.info.changed_ms = r.at_ms;
  }
  void operator()(const TickPassed&) const {
    for (auto& [id, node] : c.nodes_)
      if (!node.info.gone) node.lease.tick();
  }
};

// Whether the node takes pods follows from what is known about it now.
void Cluster::tell_slots(NodeId id) {
  const Node& node = nodes_.at(id);
  if (!node.info.gone) slots_.set_usable(id, node.link && is_ready(node.info));
  if (node.starts.closed())
    closed_.insert(id);
  else
    closed_.erase(id);
}

void Cluster::apply(const Record& record) {
  std::visit(NodeApplier{*this}, record);
  if (const NodeId id = node_of(record); id != kNoNode) tell_slots(id);
}

}  // namespace muster::core::cluster
