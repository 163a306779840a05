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
// Slots that a job was asked to give back are counted on for so long: SIGTERM, a usual grace, and
// the report.
constexpr Millis kPreemptionMs = 60'000;

class Cluster : public cluster_actor::base {
 public:
  Cluster(caf::actor_config& config, journal_actor journal,
          std::function<registry_actor()> registry, AgentLink& link, WallClock clock,
          ClusterOptions options, std::vector<NodeInfo> nodes,
          const std::map<JobId, HeldSlots>& holds)
      : cluster_actor::base(config),
        journal_(std::move(journal)),
        registry_(std::move(registry)),
        link_(link),
        clock_(std::move(clock)),
        options_(std::move(options)) {
    for (NodeInfo& info : nodes) {
      last_node_ = std::max(last_node_, info.id);
      if (!info.gone) by_name_[info.name] = info.id;
      set_info(nodes_[info.id], std::move(info));
    }
    for (const auto& [id, slots] : holds) {
      Client& job = jobs_[id];
      learn(job, slots.object);
      for (auto [node, count] : slots.slots) hold(job, node, count);
    }
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
        [this](const JobLeft& m) { left(m); },
        [this](const ChangeNode& m) { change(m); },
        [this](const DeleteNode& m) { remove(m); },
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
    core::StringMap labels;  // labels_of(info)
    core::Lease lease;
    uint64_t link = 0;                             // 0: not connected
    uint32_t used = 0;                             // slots that are granted or hold a pod
    core::Amounts taken;                           // resources of these
    std::deque<std::pair<Millis, uint32_t>> ends;  // within kLookAheadSpanMs
  };
  // A job that waits for slots or holds some; forgotten when it does neither.
  struct Client {
    job_actor actor;
    core::JobObjectPtr object;
    core::Demand demand;
    uint32_t pending = 0;
    uint64_t received = 0;
    uint64_t granted = 0;
    std::map<NodeId, uint32_t> held;
    // Slots it was told to give up, and until when that is waited for.
    std::map<NodeId, std::pair<uint32_t, Millis>> leaving;
    // What was granted and has not arrived yet counts against what is wanted.
    uint32_t wanted() const {
      uint64_t coming = granted - received;
      return pending > coming ? static_cast<uint32_t>(pending - coming) : 0;
    }
    bool idle() const { return pending == 0 && held.empty() && granted == received; }
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
      NodeId before = newest(hello.node);
      id = ++last_node_;
      if (old != kNoNode) changed.push_back(retire(old));
      by_name_[hello.node] = id;
      NodeInfo& info = nodes_[id].info;
      info.id = id;
      info.name = hello.node;
      info.created_ms = info.changed_ms = clock_();
      // What people set belongs to the name.
      if (before != kNoNode) info.spec = nodes_[before].info.spec;
    }
    Node& node = nodes_[id];
    node.link = 0;
    node.lease.renew();
    node.info.work_dir_id = hello.work_dir_id;
    node.info.boot_id = hello.boot_id;
    node.info.slots = hello.slots;
    node.info.cpu_millis = hello.cpu_millis;
    node.info.memory_bytes = hello.memory_bytes;
    node.info.resources = hello.resources;
    node.info.labels = hello.labels;
    node.labels = core::labels_of(node.info);
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
    for (auto it = jobs_.begin(); it != jobs_.end();) {
      it->second.held.erase(id);
      it->second.leaving.erase(id);
      it = it->second.idle() ? jobs_.erase(it) : std::next(it);
    }
    node.used = 0;
    node.taken = {};
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

  // ---- what people change

  void set_info(Node& node, NodeInfo info) {
    node.info = std::move(info);
    node.labels = core::labels_of(node.info);
  }

  // The newest incarnation of this name; kNoNode: there is none, or it was deleted.
  NodeId newest(const std::string& name) const {
    for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it)
      if (it->second.info.name == name) return it->second.info.deleted ? kNoNode : it->first;
    return kNoNode;
  }

  void change(const ChangeNode& m) {
    NodeId id = newest(m.name);
    if (id == kNoNode) return no_node(m.name, m.done);
    Node& node = nodes_[id];
    if (node.info.spec != m.seen)
      return m.done(Error{Errc::conflict, "the node has been modified", {}});
    node.info.spec = m.spec;
    node.labels = core::labels_of(node.info);
    log::info("node {} (n{}) is changed{}", m.name, id,
              m.spec.unschedulable ? ": it is cordoned" : "");
    later({node.info}, [this, done = m.done] {
      done(Nothing{});
      place_soon();
    });
  }

  void remove(const DeleteNode& m) {
    NodeId id = newest(m.name);
    if (id == kNoNode) return no_node(m.name, m.done);
    log::warn("node {} (n{}) is deleted; its pods end as disrupted", m.name, id);
    retire(id);
    nodes_[id].info.deleted = true;
    link_.drop(id);
    later({nodes_[id].info}, [this, id, done = m.done] {
      send(registry_(), NodeIsLost{id, core::EndCause::node_deleted});
      done(Nothing{});
    });
  }

  void no_node(const std::string& name, const std::function<void(Status)>& done) {
    later({}, [done, name] {
      done(Error{Errc::not_found, "nodes \"" + name + "\" not found", {}});
    });
  }

  // ---- slots

  void learn(Client& job, const core::JobObjectPtr& object) {
    if (job.object == object) return;
    // What it holds was taken by the old demand.
    core::Demand demand = core::demand_of(*object);
    if (job.object && demand.amounts != job.demand.amounts)
      for (auto [node, count] : job.held) {
        nodes_[node].taken.add(job.demand.amounts, -int64_t{count});
        nodes_[node].taken.add(demand.amounts, count);
      }
    job.object = object;
    job.demand = std::move(demand);
  }

  void hold(Client& job, NodeId id, uint32_t count) {
    Node& node = nodes_[id];
    node.used += count;
    if (!job.demand.amounts.none()) node.taken.add(job.demand.amounts, count);
    job.held[id] += count;
  }

  void release(Client& job, NodeId id, uint32_t count) {
    auto held = job.held.find(id);
    if (held == job.held.end()) return;
    count = std::min(count, held->second);
    Node& node = nodes_[id];
    node.used -= count;
    if (!job.demand.amounts.none()) node.taken.add(job.demand.amounts, -int64_t{count});
    if ((held->second -= count) == 0) job.held.erase(held);
    auto leaving = job.leaving.find(id);
    if (leaving == job.leaving.end()) return;
    leaving->second.first -= std::min(leaving->second.first, count);
    if (leaving->second.first == 0) job.leaving.erase(leaving);
  }

  void want(const Want& m, const job_actor& actor) {
    if (m.pending == 0 && !jobs_.contains(m.job)) return;
    auto [it, fresh] = jobs_.try_emplace(m.job);
    Client& job = it->second;
    if (fresh) job.granted = m.received;  // it was forgotten when nothing was on its way
    job.actor = actor;
    learn(job, m.object);
    job.pending = m.pending;
    job.received = m.received;
    forget_idle(m.job);
    place_soon();
  }

  void freed(const Freed& m) {
    auto it = jobs_.find(m.job);
    if (it == jobs_.end()) return;
    Millis now = clock_();
    for (auto [id, count] : m.slots) {
      Node* node = find(id);
      if (!node || node->info.gone) continue;
      release(it->second, id, count);
      node->ends.emplace_back(now, count);
    }
    forget_idle(m.job);
    place_soon();
  }

  // Its actor is gone and it has no open pod: what was granted last never arrived.
  void left(const JobLeft& m) {
    auto it = jobs_.find(m.job);
    if (it == jobs_.end()) return;
    while (!it->second.held.empty())
      release(it->second, it->second.held.begin()->first, UINT32_MAX);
    jobs_.erase(it);
    place_soon();
  }

  void forget_idle(JobId id) {
    auto it = jobs_.find(id);
    if (it != jobs_.end() && it->second.idle()) jobs_.erase(it);
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
    std::vector<core::FreeNode> free, ahead;
    bool any_free = false;
    for (auto& [id, node] : nodes_) {
      bool usable = node.link != 0 && !node.info.gone &&
                    node.info.health == NodeInfo::Health::ready && !node.info.draining;
      if (!usable) continue;
      uint32_t slots = node.info.slots;
      core::FreeNode entry{
          id, slots > node.used ? slots - node.used : 0, {}, &node.info, &node.labels};
      entry.room = core::capacity_of(node.info);
      entry.room.add(node.taken, -1);
      uint32_t room = slots + look_ahead(node, now);
      any_free |= entry.free > 0;
      free.push_back(entry);
      entry.free = room > std::max(node.used, slots) ? room - std::max(node.used, slots) : 0;
      if (entry.free > 0) ahead.push_back(std::move(entry));
    }
    std::vector<core::WaitingJob> waiting = waiting_jobs();
    if (waiting.empty() || free.empty()) return;
    last_served_ = waiting.front().job;
    int32_t top = waiting.front().demand->priority, low = top;
    for (const core::WaitingJob& job : waiting) top = std::max(top, job.demand->priority);
    if (any_free) grant(core::place(free, std::move(waiting)));
    if (!ahead.empty()) {
      waiting = waiting_jobs();
      // No look-ahead of gangs, nor where resources are counted; lower priority gives way.
      std::erase_if(waiting, [top](const core::WaitingJob& job) {
        return job.demand->gang || !job.demand->amounts.none() || job.demand->priority < top;
      });
      if (!waiting.empty()) grant(core::place(std::move(ahead), std::move(waiting)));
    }
    for (const auto& [id, job] : jobs_)
      if (!job.held.empty()) low = std::min(low, job.demand.priority);
    if (low < top) preempt(now);
  }

  std::vector<core::WaitingJob> waiting_jobs() const {
    std::vector<core::WaitingJob> waiting;
    auto add = [&waiting](JobId id, const Client& job) {
      if (job.wanted() > 0) waiting.push_back({id, job.wanted(), &job.demand});
    };
    auto first = jobs_.upper_bound(last_served_);
    for (auto it = first; it != jobs_.end(); ++it) add(it->first, it->second);
    for (auto it = jobs_.begin(); it != first; ++it) add(it->first, it->second);
    return waiting;
  }

  void grant(const core::Grants& grants) {
    for (const auto& [id, slots] : grants) {
      Client& job = jobs_.at(id);
      std::map<NodeId, uint64_t> links;
      for (auto [node, count] : slots) {
        hold(job, node, count);
        links[node] = nodes_.at(node).link;
        job.granted += count;
      }
      send(job.actor, Granted{slots, std::move(links)});
    }
  }

  // Takes slots back from lower priorities for the job of the highest that waits. What was asked
  // back and has not come yet counts as free, so nobody is asked twice for one need; it goes to the
  // highest that waits when it comes. All of this is memory: a crash decides it anew.
  void preempt(Millis now) {
    std::vector<core::WaitingJob> waiting = waiting_jobs();
    if (waiting.empty()) return;
    auto neediest = std::max_element(waiting.begin(), waiting.end(),
                                     [](const core::WaitingJob& a, const core::WaitingJob& b) {
                                       return a.demand->priority < b.demand->priority;
                                     });
    std::map<NodeId, core::FreeNode> nodes;
    for (auto& [id, node] : nodes_) {
      if (node.link == 0 || node.info.gone || node.info.draining) continue;
      uint32_t slots = node.info.slots;
      core::FreeNode entry{
          id, slots > node.used ? slots - node.used : 0, {}, &node.info, &node.labels};
      entry.room = core::capacity_of(node.info);
      entry.room.add(node.taken, -1);
      nodes.emplace(id, std::move(entry));
    }
    std::vector<core::Holder> holders;
    for (auto& [id, job] : jobs_) {
      std::erase_if(job.leaving, [now](const auto& one) { return one.second.second < now; });
      for (auto [node, count] : job.held) {
        auto entry = nodes.find(node);
        if (entry == nodes.end() || !job.actor) continue;
        auto asked = job.leaving.find(node);
        uint32_t leaving = asked == job.leaving.end() ? 0 : std::min(asked->second.first, count);
        entry->second.free += leaving;
        entry->second.room.add(job.demand.amounts, leaving);
        holders.push_back({id, node, count - leaving, &job.demand});
      }
    }
    std::vector<core::FreeNode> room;
    for (auto& [id, entry] : nodes) room.push_back(std::move(entry));
    for (const auto& [id, slots] : core::preempt(std::move(room), *neediest, std::move(holders))) {
      Client& job = jobs_.at(id);
      for (auto [node, count] : slots) {
        log::info("j{} gives {} slots of n{} to a job of higher priority", id, count, node);
        auto& leaving = job.leaving[node];
        leaving = {leaving.first + count, now + kPreemptionMs};
      }
      send(job.actor, Preempt{slots});
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
  std::map<JobId, Client> jobs_;
  JobId last_served_ = 0;
  bool place_due_ = false;
  uint64_t last_asked_ = 0;
  std::unordered_map<uint64_t, std::function<void()>> asked_;
};

}  // namespace

cluster_actor spawn_cluster(caf::actor_system& system, journal_actor journal,
                            std::function<registry_actor()> registry, AgentLink& link,
                            WallClock clock, ClusterOptions options, std::vector<NodeInfo> nodes,
                            std::map<JobId, HeldSlots> holds) {
  return vital(cluster_actor{system.spawn<Cluster>(
      std::move(journal), std::move(registry), std::ref(link), std::move(clock), std::move(options),
      std::move(nodes), std::move(holds))});
}

}  // namespace muster::actors
