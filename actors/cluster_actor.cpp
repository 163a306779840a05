#include "actors/cluster_actor.hpp"

#include "actors/supervise.hpp"
#include "base/log.hpp"
#include "core/cluster/lease.hpp"
#include "core/cluster/placement.hpp"
#include "storage/rows.hpp"

#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <unordered_map>
#include <utility>

namespace muster::actors {

namespace {

using core::NodeInfo;

// A node is given as many pods beyond its slots as ended there within this span, about a round trip
// with two syncs: so a slot that frees is filled at once where pods are short, and nothing waits
// there where they run for seconds.
constexpr Millis kLookAheadSpanMs = 50;

class Cluster : public cluster_actor::base {
 public:
  Cluster(caf::actor_config& config, journal_actor journal,
          std::function<registry_actor()> registry, AgentLink& link, WallClock clock,
          ClusterOptions options, std::vector<NodeInfo> nodes, std::map<NodeId, uint32_t> holds)
      : cluster_actor::base(config),
        journal_(std::move(journal)),
        registry_(std::move(registry)),
        link_(link),
        clock_(std::move(clock)),
        options_(std::move(options)) {
    for (NodeInfo& info : nodes) {
      last_node_ = std::max(last_node_, info.id);
      if (!info.gone) by_name_[info.name] = info.id;
      nodes_[info.id].info = std::move(info);
    }
    for (auto [node, count] : holds) nodes_[node].used = count;
  }

  behavior_type make_behavior() override {
    delayed_send(this, tick(), beat_atom_v);
    return {
        [this](const RegisterAgent& m) { enroll(m); },
        [this](const LinkUp& m) { link_up(m); },
        [this](const LinkDown& m) { link_down(m); },
        [this](const Heartbeat& m) { heartbeat(m); },
        [this](const AgentLeaves& m) { leaves(m); },
        [this](const Want& m, const job_actor& job) { want(m, job); },
        [this](const Freed& m) { freed(m); },
        [this](const durable_atom&, uint64_t asked) { durable(asked); },
        [this](const place_atom&) { place(); },
        [this](const beat_atom&) { beat(); },
        [this](const stop_atom&) { quit(); },
    };
  }

  void on_exit() override {
    jobs_.clear();
    asked_.clear();
    registry_ = nullptr;
    destroy(journal_);
  }

 private:
  struct Node {
    NodeInfo info;
    core::Lease lease;
    uint64_t link = 0;                             // 0: not connected
    uint32_t used = 0;                             // slots that are granted or hold a pod
    std::deque<std::pair<Millis, uint32_t>> ends;  // within kLookAheadSpanMs
  };
  struct Waiting {
    job_actor actor;
    uint32_t pending = 0;
    uint64_t received = 0;
    uint64_t granted = 0;
    core::StringMap node_selector;
    // What was granted and has not arrived yet counts against what is wanted.
    uint32_t wanted() const {
      uint64_t coming = granted - received;
      return pending > coming ? static_cast<uint32_t>(pending - coming) : 0;
    }
  };

  std::chrono::milliseconds tick() const {
    return std::chrono::milliseconds(core::tick_ms(options_.node_grace_ms));
  }

  // ---- registration

  void enroll(const RegisterAgent& m) {
    const AgentHello& hello = m.hello;
    auto refuse = [&m](HelloAnswer::Kind kind, std::string why) {
      m.done({kind, std::move(why), kNoNode, {}});
    };
    bool holds = !hello.running.empty() || !hello.waiting.empty() || !hello.ended.empty();
    if (!hello.cluster_id.empty() && hello.cluster_id != options_.cluster_id && holds)
      return refuse(HelloAnswer::Kind::other_cluster,
                    "its work-dir holds pods of cluster " + hello.cluster_id +
                        ", this is cluster " + options_.cluster_id +
                        ": give it another --work-dir, or end them there first");
    if (hello.cluster_id == options_.cluster_id) {
      bool epoch_ahead = hello.highest_epoch > options_.epoch ||
                         (hello.highest_epoch == options_.epoch && hello.epoch_nonce != 0 &&
                          hello.epoch_nonce != options_.nonce);
      if (epoch_ahead || hello.highest_commit > options_.last_commit())
        return options_.outdated(
            "node " + hello.node + " was told of epoch " + std::to_string(hello.highest_epoch) +
            " and commit " + std::to_string(hello.highest_commit) +
            ", but this data-dir is at epoch " + std::to_string(options_.epoch) + " and commit " +
            std::to_string(options_.last_commit()));
    }
    NodeId old = kNoNode;
    if (auto named = by_name_.find(hello.node); named != by_name_.end()) old = named->second;
    bool same_dir = old != kNoNode && nodes_[old].info.work_dir_id == hello.work_dir_id;
    if (old != kNoNode && !same_dir && !nodes_[old].lease.expired())
      return refuse(HelloAnswer::Kind::name_taken,
                    "the name " + hello.node + " belongs to another agent (work-dir id " +
                        nodes_[old].info.work_dir_id +
                        ") that was heard of within --node-grace: choose another --name, or use "
                        "its work-dir");

    std::vector<NodeInfo> changed;
    NodeId id = old;
    if (!same_dir || nodes_[old].info.boot_id != hello.boot_id) {
      id = ++last_node_;
      if (old != kNoNode) changed.push_back(retire(old));
      by_name_[hello.node] = id;
      NodeInfo& info = nodes_[id].info;
      info.id = id;
      info.name = hello.node;
      info.created_ms = info.changed_ms = clock_();
      if (old != kNoNode) info.unschedulable = nodes_[old].info.unschedulable;
    }
    Node& node = nodes_[id];
    node.link = 0;
    node.lease.renew();
    node.info.work_dir_id = hello.work_dir_id;
    node.info.boot_id = hello.boot_id;
    node.info.slots = hello.slots;
    node.info.cpu_millis = hello.cpu_millis;
    node.info.memory_bytes = hello.memory_bytes;
    node.info.labels = hello.labels;
    node.info.address = hello.address;
    node.info.draining = false;
    changed.push_back(node.info);
    log::info("node {} registers (n{}, {} slots, {} running, {} waiting, {} ended)", hello.node, id,
              hello.slots, hello.running.size(), hello.waiting.size(), hello.ended.size());
    bool replaced = old != kNoNode && old != id;
    later(std::move(changed), [this, m, id, old, replaced] {
      if (replaced) send(registry_(), NodeIsLost{old, core::EndCause::node_lost});
      reconcile(m, id);
    });
  }

  void reconcile(const RegisterAgent& m, NodeId id) {
    Reconcile ask{id, m.hello.link, {}, nullptr};
    for (const auto* pods : {&m.hello.running, &m.hello.waiting, &m.hello.ended})
      for (PodId pod : *pods) ask.known[pod.job].insert(pod.key());
    auto end = std::make_shared<std::vector<PodId>>();
    uint64_t number = ++last_asked_;
    asked_.emplace(number, [id, end, done = m.done] {
      done({HelloAnswer::Kind::welcome, "", id, std::move(*end)});
    });
    ask.answered = [me = cluster_actor{this}, number, end](std::vector<PodId> pods) {
      *end = std::move(pods);
      caf::anon_send(me, durable_atom_v, number);
    };
    send(registry_(), std::move(ask));
  }

  // ---- life of a node

  void link_up(const LinkUp& m) {
    Node* node = find(m.node);
    if (!node || node->info.gone) return link_.drop(m.node);
    node->link = m.link;
    node->lease.renew();
    node->info.heartbeat_ms = clock_();
    set_health(*node, NodeInfo::Health::ready);
    send(registry_(), NodeReadyNow{m.node, m.link});
    place_soon();
  }

  void link_down(const LinkDown& m) {
    Node* node = find(m.node);
    if (!node || node->link != m.link) return;
    node->link = 0;
    if (!node->info.gone) set_health(*node, NodeInfo::Health::suspect);
  }

  void heartbeat(const Heartbeat& m) {
    Node* node = find(m.node);
    if (!node || node->link != m.link || node->info.gone) return;
    node->lease.renew();
    node->info.heartbeat_ms = clock_();
    if (node->info.health == NodeInfo::Health::ready) return;
    set_health(*node, NodeInfo::Health::ready);
    place_soon();
  }

  void leaves(const AgentLeaves& m) {
    Node* node = find(m.node);
    if (!node || node->link != m.link) return;
    log::info("node {} (n{}) drains", node->info.name, m.node);
    node->info.draining = true;
    options_.show({node->info});
  }

  void beat() {
    delayed_send(this, tick(), beat_atom_v);
    bool some_healthy = false;
    for (auto& [id, node] : nodes_) {
      if (node.info.gone) continue;
      node.lease.tick();
      if (node.lease.suspect() && node.info.health == NodeInfo::Health::ready)
        set_health(node, NodeInfo::Health::suspect);
      some_healthy |= node.info.health == NodeInfo::Health::ready;
    }
    if (!some_healthy) return;  // it is we who are cut off, and there is nowhere to go
    for (auto& [id, node] : nodes_)
      if (!node.info.gone && node.lease.expired() && node.info.health != NodeInfo::Health::ready)
        lose(id);
  }

  void lose(NodeId id) {
    log::warn(
        "node {} (n{}) is lost: silent for --node-grace; its pods fail and are placed elsewhere",
        nodes_[id].info.name, id);
    std::vector<NodeInfo> changed{retire(id)};
    link_.drop(id);
    later(std::move(changed), [this, id] {
      send(registry_(), NodeIsLost{id, core::EndCause::node_lost});
    });
  }

  // This incarnation gets nothing more, ever.
  NodeInfo retire(NodeId id) {
    Node& node = nodes_[id];
    node.info.gone = true;
    node.info.health = NodeInfo::Health::lost;
    node.info.changed_ms = clock_();
    node.link = 0;
    node.used = 0;
    if (auto named = by_name_.find(node.info.name); named != by_name_.end() && named->second == id)
      by_name_.erase(named);
    return node.info;
  }

  void set_health(Node& node, NodeInfo::Health health) {
    if (node.info.health == health) return;
    log::info("node {} (n{}) is {}", node.info.name, node.info.id,
              health == NodeInfo::Health::ready ? "ready" : "not heard of");
    node.info.health = health;
    node.info.changed_ms = clock_();
    options_.show({node.info});
  }

  Node* find(NodeId id) {
    auto it = nodes_.find(id);
    return it == nodes_.end() ? nullptr : &it->second;
  }

  // ---- slots

  void want(const Want& m, const job_actor& job) {
    if (m.pending == 0 && !jobs_.contains(m.job)) return;
    Waiting& w = jobs_[m.job];
    w.actor = job;
    w.pending = m.pending;
    w.received = m.received;
    w.node_selector = m.node_selector;
    place_soon();
  }

  void freed(const Freed& m) {
    Millis now = clock_();
    for (auto [id, count] : m.slots) {
      Node* node = find(id);
      if (!node || node->info.gone) continue;
      node->used -= std::min(node->used, count);
      node->ends.emplace_back(now, count);
    }
    place_soon();
  }

  uint32_t look_ahead(Node& node, Millis now) {
    while (!node.ends.empty() && node.ends.front().first + kLookAheadSpanMs < now)
      node.ends.pop_front();
    uint32_t recent = 0;
    for (auto [at, count] : node.ends) recent += count;
    return std::min(recent, 4 * node.info.slots + 16);
  }

  void place_soon() {
    if (place_due_) return;
    place_due_ = true;
    send(this, place_atom_v);
  }

  void place() {
    place_due_ = false;
    Millis now = clock_();
    std::vector<core::FreeNode> free;
    for (auto& [id, node] : nodes_) {
      bool usable = node.link != 0 && !node.info.gone &&
                    node.info.health == NodeInfo::Health::ready && !node.info.draining &&
                    !node.info.unschedulable;
      if (!usable) continue;
      uint32_t room = node.info.slots + look_ahead(node, now);
      if (room > node.used) free.push_back({id, room - node.used, &node.info.labels});
    }
    if (free.empty()) return;
    std::vector<core::WaitingJob> waiting;
    auto add = [&waiting](JobId id, const Waiting& w) {
      if (w.wanted() > 0) waiting.push_back({id, w.wanted(), &w.node_selector});
    };
    auto first = jobs_.upper_bound(last_served_);
    for (auto it = first; it != jobs_.end(); ++it) add(it->first, it->second);
    for (auto it = jobs_.begin(); it != first; ++it) add(it->first, it->second);
    if (waiting.empty()) return;
    last_served_ = waiting.front().job;
    for (auto& [id, slots] : core::place(std::move(free), std::move(waiting))) {
      Waiting& w = jobs_.at(id);
      std::map<NodeId, uint64_t> links;
      for (auto [node, count] : slots) {
        nodes_.at(node).used += count;
        links[node] = nodes_.at(node).link;
        w.granted += count;
      }
      send(w.actor, Granted{slots, std::move(links)});
    }
  }

  // ---- the journal

  void later(std::vector<NodeInfo> changed, std::function<void()> then) {
    Append append;
    for (const NodeInfo& info : changed) append.rows.push_back(storage::node_row(info));
    append.nodes = std::move(changed);
    uint64_t number = ++last_asked_;
    asked_.emplace(number, std::move(then));
    append.done = [me = cluster_actor{this}, number](uint64_t) {
      caf::anon_send(me, durable_atom_v, number);
    };
    send(journal_, std::move(append));
  }

  void durable(uint64_t asked) {
    auto node = asked_.extract(asked);
    node.mapped()();
  }

  journal_actor journal_;
  std::function<registry_actor()> registry_;
  AgentLink& link_;
  WallClock clock_;
  ClusterOptions options_;
  std::map<NodeId, Node> nodes_;
  std::map<std::string, NodeId> by_name_;  // living incarnations
  NodeId last_node_ = 0;
  std::map<JobId, Waiting> jobs_;
  JobId last_served_ = 0;
  bool place_due_ = false;
  uint64_t last_asked_ = 0;
  std::unordered_map<uint64_t, std::function<void()>> asked_;
};

}  // namespace

cluster_actor spawn_cluster(caf::actor_system& system, journal_actor journal,
                            std::function<registry_actor()> registry, AgentLink& link,
                            WallClock clock, ClusterOptions options, std::vector<NodeInfo> nodes,
                            std::map<NodeId, uint32_t> holds) {
  return vital(cluster_actor{system.spawn<Cluster>(
      std::move(journal), std::move(registry), std::ref(link), std::move(clock), std::move(options),
      std::move(nodes), std::move(holds))});
}

}  // namespace muster::actors
