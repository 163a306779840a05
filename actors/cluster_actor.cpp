#include "actors/cluster_actor.hpp"

#include "actors/gate.hpp"
#include "actors/supervise.hpp"
#include "base/log.hpp"
#include "base/secret.hpp"
#include "base/seldom.hpp"
#include "core/cluster/nodes/claims.hpp"
#include "core/cluster/nodes/hollow.hpp"
#include "core/cluster/nodes/lease.hpp"
#include "core/cluster/slots/slots.hpp"
#include "storage/rows/rows.hpp"

#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

namespace muster::actors {

namespace {

using core::NodeInfo;

class Cluster : public GatedActor<cluster_actor> {
 public:
  Cluster(caf::actor_config& config, journal_actor journal,
          std::function<registry_actor()> registry, SealedLink link, WallClock clock,
          ClusterOptions options, std::vector<NodeInfo> nodes,
          const std::map<JobId, HeldSlots>& holds)
      : GatedActor(config, std::move(journal), link),
        registry_(std::move(registry)),
        clock_(std::move(clock)),
        options_(std::move(options)),
        slots_(options_.user_pods_max) {
    for (NodeInfo& info : nodes) {
      last_node_ = std::max(last_node_, info.id);
      if (!info.gone) by_name_[info.name] = info.id;
      if (!info.gone) awaited_.insert(info.name);
      if (!info.gone) slots_.set_node(info);
      Node& node = nodes_[info.id];
      node.info = std::move(info);
    }
    for (const auto& [id, held] : holds) slots_.hold(id, held.object, held.slots);
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
        [this](const Freed& m) {
          slots_.avoid(m.job, m.avoid, uptime());
          slots_.freed(m.job, m.slots, m.quick, uptime());
          moved(m.job);
        },
        [this](const JobLeft& m) {
          slots_.left(m.job);
          moved(m.job);
        },
        [this](const ChangeNode& m) { change(m); },
        [this](const DeleteNode& m) { remove(m); },
        [this](const durable_atom&, uint64_t number, uint64_t commit) {
          gate_.open(number, commit);
        },
        [this](const sync_atom&, uint64_t number) {
          auto answered = registering_.extract(number);
          answered.mapped()();
        },
        [this](const place_atom&) { place(); },
        [this](const beat_atom&) { beat(); },
        [this](const stop_atom&) { quit(); },
    };
  }

  void on_exit() override {
    actors_.clear();
    registering_.clear();
    registry_ = nullptr;
    gate_.close();
  }

 private:
  struct Node {
    NodeInfo info;  // as last requested; placement uses this
    core::Lease lease;
    std::optional<uint64_t> link{};  // the number of its session, while connected
  };

  std::chrono::milliseconds tick() const {
    return std::chrono::milliseconds(core::tick_ms(options_.node_grace_ms));
  }
  // Milliseconds of a monotonic clock.
  Millis uptime() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(clock().now().time_since_epoch())
        .count();
  }

  // ---- registration

  void enroll(const RegisterAgent& m) {
    const AgentHello& hello = m.hello;
    auto refuse = [this, &m](HelloAnswer::Kind kind, std::string why) {
      gate_.reply(m.done, HelloAnswer{kind, std::move(why), kNoNode, {}});
    };
    bool holds = !hello.running.empty() || !hello.waiting.empty() || !hello.ended.empty();
    bool ours = hello.cluster_id == options_.cluster_id;
    if (!ours && holds)
      return refuse(HelloAnswer::Kind::other_cluster,
                    "its work-dir has pods of " +
                        (hello.cluster_id.empty() ? "no cluster" : "cluster " + hello.cluster_id) +
                        ", but this is cluster " + options_.cluster_id +
                        ": use another --work-dir, or end those pods first");
    NodeId old = kNoNode;
    if (auto named = by_name_.find(hello.node); named != by_name_.end()) old = named->second;
    bool same_dir = old != kNoNode && is_of(hello, nodes_[old].info);
    const bool restored = ours && standing(hello) == core::EpochLine::Standing::restored;
    if (std::string beyond = ours && !restored ? beyond_ours(hello) : ""; !beyond.empty()) {
      if (proves_later(hello)) return options_.outdated(beyond);
      if (auto more = unproven_.due(uptime()))
        log::error(
            "{}; rejecting it, because it cannot prove {}{}", beyond,
            hello.must_prove ? "this by a coordinator's seal" : "that it has served this cluster",
            *more);
      return refuse(HelloAnswer::Kind::other_cluster,
                    hello.must_prove
                        ? "it claims to have seen later state than this coordinator, but has no "
                          "seal of a coordinator of this cluster that proves it: use another "
                          "--work-dir"
                        : "it has seen later state than this coordinator, but cannot prove that it "
                          "belongs to this cluster: use another --work-dir");
    }
    if (old != kNoNode && !same_dir && !nodes_[old].lease.expired())
      return refuse(HelloAnswer::Kind::name_taken,
                    "the name " + hello.node +
                        " belongs to another agent that responded within --node-grace: choose "
                        "another --name, or use that agent's --work-dir");

    if (same_dir && nodes_[old].info.boot_id != hello.boot_id && !hello.ends.empty())
      return report_ends(m, old);

    const NodeId known = newest(hello.node);
    const bool was_hollow =
        known != kNoNode && nodes_[known].info.labels.contains(std::string(core::kHollowKey));
    const core::Offer offer = offered(hello, known);
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
      if (before != kNoNode && nodes_[before].info.work_dir_id == hello.work_dir_id)
        info.strangers = nodes_[before].info.strangers;
      // The spec that users set belongs to the name, not to an incarnation.
      if (before != kNoNode) info.spec = nodes_[before].info.spec;
    }
    Node& node = nodes_[id];
    return_slots();
    node.link.reset();
    node.lease.renew();
    node.info.work_dir_id = hello.work_dir_id;
    node.info.secret = hello.secret;
    node.info.boot_id = hello.boot_id;
    node.info.slots = offer.slots;
    node.info.cpu_millis = hello.cpu_millis;
    node.info.memory_bytes = hello.memory_bytes;
    node.info.resources = offer.resources;
    core::take_labels(node.info, offer.labels, was_hollow);
    node.info.address = hello.address;
    node.info.ip = hello.ip;
    node.info.limits = hello.limits;
    node.info.limits.required = options_.require_limits;
    node.info.draining = false;
    node.info.left_ms = 0;
    std::erase_if(node.info.strangers, [&hello](PodId pod) {
      return std::find(hello.running.begin(), hello.running.end(), pod) == hello.running.end();
    });
    slots_.set_node(node.info);
    changed.push_back(node.info);
    log::info("node {} registered (n{}, {} slots, {} running, {} waiting, {} ended)", hello.node,
              id, offer.slots, hello.running.size(), hello.waiting.size(), hello.ended.size());
    bool replaced = old != kNoNode && old != id;
    if (awaited_.erase(hello.node) > 0 && awaited_.empty()) options_.all_here();
    later(std::move(changed), [this, m, id, old, replaced, restored](const Durable&) {
      if (replaced) send(registry_(), NodeIsLost{old, core::EndCause::node_lost});
      reconcile(m, id, restored);
    });
  }

  static constexpr size_t kBeyondMax = 500;  // characters that are logged

  // What the agent's node has: what it says, as far as it may.
  core::Offer offered(const AgentHello& hello, NodeId known) const {
    core::Offer offer{hello.slots, hello.resources, hello.labels};
    std::optional<core::NodeClaims> claims = hello.claims;
    if (hello.as_registered && known == kNoNode) claims.emplace();
    if (hello.as_registered && known != kNoNode) {
      const NodeInfo& before = nodes_.at(known).info;
      claims = core::claims_of({before.slots, before.resources, before.labels});
    }
    if (!claims) return offer;
    if (const std::string beyond = core::hold(offer, *claims); !beyond.empty())
      log::warn(
          "node {} claims {}, which it may not; `muster node claims {}` shows and changes what it "
          "may",
          hello.node, beyond.substr(0, kBeyondMax), hello.node);
    return offer;
  }

  // Records what ended on a rebooted node's previous incarnation. Once that is on disk, enrolls the
  // agent, and the incarnation's other pods are lost. The agent reports these ends again.
  void report_ends(const RegisterAgent& m, NodeId old) {
    Report report{old, m.hello.ends, nullptr};
    for (auto& [job, part] : report.jobs) part.node = old;
    auto again = std::make_shared<RegisterAgent>(m);
    again->hello.ends.clear();
    report.done = [me = cluster_actor{this}, again](std::vector<PodId>) {
      caf::anon_send(me, *again);
    };
    send(registry_(), std::move(report));
  }

  // Whether the agent uses the work-dir of this node. A row written by an earlier version has no
  // secret and accepts the first one presented.
  static bool is_of(const AgentHello& hello, const NodeInfo& info) {
    return info.work_dir_id == hello.work_dir_id &&
           (info.secret.empty() || same_secret(info.secret, hello.secret));
  }

  // Whether to believe the agent that our data-dir is outdated, which stops the coordinator. An
  // agent of another machine must present history that we sealed and that our data-dir does not
  // contain. An agent of this machine and user is believed if it has served this cluster: an old
  // copy of the data-dir lacks newer nodes, but it has the cluster's keys.
  bool proves_later(const AgentHello& hello) const {
    if (hello.must_prove) return hello.sealed && contradicts(*hello.sealed);
    return same_secret(options_.cluster_key, hello.cluster_key) ||
           std::any_of(nodes_.begin(), nodes_.end(),
                       [&hello](const auto& node) { return is_of(hello, node.second.info); });
  }

  core::EpochLine::Standing standing(const AgentHello& hello) const {
    return options_.line.judge(known_to(hello), options_.last_commit());
  }
  static core::KnownHistory known_to(const AgentHello& hello) {
    return {hello.highest_epoch, hello.epoch_nonce, hello.highest_commit};
  }

  bool contradicts(const core::KnownHistory& known) const {
    using Standing = core::EpochLine::Standing;
    const Standing history = options_.line.judge(known, options_.last_commit());
    return history == Standing::older || history == Standing::diverged;
  }

  // What the agent knows that our data-dir does not, as a sentence; empty if nothing.
  std::string beyond_ours(const AgentHello& hello) const {
    if (contradicts(known_to(hello)))
      return "node " + hello.node + " has seen epoch " + std::to_string(hello.highest_epoch) +
             " and commit " + std::to_string(hello.highest_commit) +
             ", which this data-dir (epoch " + std::to_string(options_.line.last().epoch) +
             ", commit " + std::to_string(options_.last_commit()) + ") does not contain";
    if (!options_.next_job) return "";
    JobId end = *options_.next_job;
    for (const auto* pods : {&hello.running, &hello.waiting, &hello.ended})
      for (PodId pod : *pods)
        if (pod.job >= end)
          return "node " + hello.node + " has pods of job j" + std::to_string(pod.job) +
                 ", but this data-dir never assigned that id";
    return "";
  }

  void reconcile(const RegisterAgent& m, NodeId id, bool restored) {
    Reconcile ask{id, m.hello.link, {}, restored, nullptr};
    const std::vector<PodId>& strangers = nodes_[id].info.strangers;
    const std::set<PodId> known_strangers(strangers.begin(), strangers.end());
    for (const auto* pods : {&m.hello.running, &m.hello.waiting, &m.hello.ended})
      for (PodId pod : *pods)
        if (!known_strangers.contains(pod)) ask.known[pod.job].insert(pod.key());
    auto end = std::make_shared<std::vector<PodId>>();
    uint64_t number = ++last_registering_;
    registering_.emplace(number,
                         [this, id, end, restored, running = m.hello.running, done = m.done] {
                           if (restored) return spare(id, running, std::move(*end), done);
                           welcome({}, id, std::move(*end), done);
                         });
    ask.answered = [me = cluster_actor{this}, number, end](std::vector<PodId> pods) {
      *end = std::move(pods);
      caf::anon_send(me, sync_atom_v, number);
    };
    send(registry_(), std::move(ask));
  }

  // After a restore, a node may run a pod that is not open here because it started after the
  // backup. It may represent days of work, so it is left running and listed for an operator.
  void spare(NodeId id, const std::vector<PodId>& running, std::vector<PodId> end,
             const Reply<HelloAnswer>& done) {
    const std::set<PodId> runs(running.begin(), running.end());
    std::vector<PodId>& strangers = nodes_[id].info.strangers;
    const size_t before = strangers.size();
    std::erase_if(end, [&](PodId pod) {
      if (!runs.contains(pod)) return false;
      strangers.push_back(pod);
      log::warn(
          "node {} (n{}) is running {}, which the restored state does not contain; leaving it "
          "alone",
          nodes_[id].info.name, id, to_string(pod));
      return true;
    });
    std::vector<NodeInfo> changed;
    if (strangers.size() != before) changed.push_back(nodes_[id].info);
    welcome(std::move(changed), id, std::move(end), done);
  }

  void welcome(std::vector<NodeInfo> changed, NodeId id, std::vector<PodId> end,
               const Reply<HelloAnswer>& done) {
    later(std::move(changed), [id, end = std::move(end), done](const Durable& durable) {
      done(durable, {HelloAnswer::Kind::welcome, "", id, end});
    });
  }

  // ---- life of a node

  void link_up(const LinkUp& m) {
    Node* node = find(m.node);
    if (!node || node->info.gone)
      return gate_.after([node = m.node](const Durable& durable) { durable.link().drop(node); });
    node->link = m.link;
    node->lease.renew();
    node->info.heartbeat_ms = clock_();
    set_health(*node, NodeInfo::Health::ready);
    show(*node);  // it no longer drains
    send(registry_(), NodeReadyNow{m.node, m.link});
    place_soon();
  }

  void link_down(const LinkDown& m) {
    Node* node = find(m.node);
    if (!node || node->link != m.link) return;
    node->link.reset();
    if (!node->info.gone) set_health(*node, NodeInfo::Health::suspect);
  }

  void heartbeat(const Heartbeat& m) {
    Node* node = find(m.node);
    if (!node || node->link != m.link || node->info.gone) return;
    node->lease.renew();
    node->info.heartbeat_ms = clock_();
    const bool changed = node->info.trouble != m.trouble;
    if (!changed && node->info.health == NodeInfo::Health::ready) return;
    if (changed) set_trouble(*node, m.trouble);
    set_health(*node, NodeInfo::Health::ready);
    place_soon();
  }

  // The lease is still renewed: pods there keep running, and their ends are reported.
  void set_trouble(Node& node, const core::NodeTrouble& trouble) {
    if (trouble)
      log::warn("node {} (n{}) is unhealthy and gets no new pods: {}: {}", node.info.name,
                node.info.id, trouble.reason, trouble.message);
    else
      log::info("node {} (n{}) has recovered", node.info.name, node.info.id);
    node.info.trouble = trouble;
    node.info.changed_ms = clock_();
    show(node);
  }

  void leaves(const AgentLeaves& m) {
    Node* node = find(m.node);
    if (!node || node->link != m.link) return;
    log::info("node {} (n{}) is draining", node->info.name, m.node);
    node->info.draining = true;
    node->info.left_ms = clock_();
    show(*node);
    later({node->info}, [](const Durable&) {});
  }

  void beat() {
    delayed_send(this, tick(), beat_atom_v);
    bool some_healthy = false, some_expired = false;
    for (auto& [id, node] : nodes_) {
      if (node.info.gone) continue;
      node.lease.tick();
      if (node.lease.suspect() && node.info.health == NodeInfo::Health::ready)
        set_health(node, NodeInfo::Health::suspect);
      some_healthy |= node.info.health == NodeInfo::Health::ready;
      some_expired |= node.lease.expired();
    }
    if (some_expired && !some_healthy && !std::exchange(spares_, true))
      log::warn(
          "no node responds; until one does, none is lost, however long it has been silent: no "
          "node could take the pods");
    if (!some_healthy) return;
    spares_ = false;
    for (auto& [id, node] : nodes_)
      if (!node.info.gone && node.lease.expired() && node.info.health != NodeInfo::Health::ready)
        lose(id);
  }

  void lose(NodeId id) {
    log::warn(
        "node {} (n{}) is lost: it has not responded for {}s (--node-grace); its pods fail and are "
        "placed elsewhere",
        nodes_[id].info.name, id, static_cast<double>(options_.node_grace_ms) / 1000);
    std::vector<NodeInfo> changed{retire(id)};
    later(std::move(changed), [this, id](const Durable& durable) {
      durable.link().drop(id);
      send(registry_(),
           NodeIsLost{id, core::EndCause::node_lost, core::silence_ms(options_.node_grace_ms)});
    });
  }

  // This incarnation never gets pods again.
  NodeInfo retire(NodeId id) {
    Node& node = nodes_[id];
    node.info.gone = true;
    node.info.health = NodeInfo::Health::lost;
    node.info.changed_ms = clock_();
    node.link.reset();
    return_slots();
    slots_.remove_node(id);
    std::erase_if(actors_, [this](const auto& one) { return !slots_.knows(one.first); });
    if (auto named = by_name_.find(node.info.name); named != by_name_.end() && named->second == id)
      by_name_.erase(named);
    return node.info;
  }

  void set_health(Node& node, NodeInfo::Health health) {
    if (node.info.health == health) return;
    log::info("node {} (n{}) is {}", node.info.name, node.info.id,
              health == NodeInfo::Health::ready ? "ready" : "not responding");
    node.info.health = health;
    node.info.changed_ms = clock_();
    show(node);
  }

  // Called after every change in whether the node takes pods.
  void show(const Node& node) {
    return_slots();
    options_.show(core::health_of(node.info));
  }

  Node* find(NodeId id) {
    auto it = nodes_.find(id);
    return it == nodes_.end() ? nullptr : &it->second;
  }

  // ---- changes by people

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
      return gate_.reply<Status>(m.done, Error{Errc::conflict, "the node has been modified", {}});
    node.info.spec = m.spec;
    return_slots();
    if (!node.info.gone) slots_.set_node(node.info);
    log::info("node {} (n{}) changed{}", m.name, id, m.spec.unschedulable ? ": cordoned" : "");
    later({node.info}, [this, done = m.done](const Durable& durable) {
      done(durable, Nothing{});
      place_soon();
    });
  }

  void remove(const DeleteNode& m) {
    NodeId id = newest(m.name);
    if (id == kNoNode) return no_node(m.name, m.done);
    log::warn("node {} (n{}) was deleted; its pods fail as disrupted", m.name, id);
    retire(id);
    nodes_[id].info.deleted = true;
    later({nodes_[id].info}, [this, id, done = m.done](const Durable& durable) {
      durable.link().drop(id);
      send(registry_(), NodeIsLost{id, core::EndCause::node_deleted});
      done(durable, Nothing{});
    });
  }

  void no_node(const std::string& name, const Reply<Status>& done) {
    gate_.reply<Status>(done, Error{Errc::not_found, "nodes \"" + name + "\" not found", {}});
  }

  // ---- slots

  void want(const Want& m, const job_actor& actor) {
    slots_.want(m.job, m.pending, m.received, m.object);
    if (slots_.knows(m.job)) actors_[m.job] = actor;
    moved(m.job);
  }

  void moved(JobId job) {
    if (!slots_.knows(job)) {
      actors_.erase(job);
      keepers_.erase(job);
    }
    place_soon();
  }

  void place_soon() {
    if (place_due_) return;
    place_due_ = true;
    send(this, place_atom_v);
  }

  void place() {
    place_due_ = false;
    for (auto& [id, node] : nodes_)
      if (!node.info.gone) slots_.set_usable(id, node.link && core::is_ready(node.info));
    Millis now = uptime();
    core::Slots::Round round = slots_.place(now);
    for (JobId job : round.nowhere) send(actors_.at(job), HasNowhere{});
    const bool enough = !slots_.lacks();
    if (!enough) return_slots();
    for (const auto& [job, slots] : round.grants) {
      const bool keep = enough && slots_.may_keep(job);
      if (keep)
        keepers_.insert(job);
      else
        keepers_.erase(job);
      std::map<NodeId, uint64_t> links;
      for (auto [node, count] : slots) links[node] = nodes_.at(node).link.value();
      send(actors_.at(job), Granted{slots, std::move(links), keep});
    }
    for (const auto& [job, slots] : round.victims) {
      for (auto [node, count] : slots)
        log::info("j{} loses {} slots on n{} to a job of higher priority", job, count, node);
      send(actors_.at(job), Preempt{slots});
    }
    for (const auto& [job, left] : round.tainted) send(actors_.at(job), LeaveNodes{left});
    if (!round.again_ms || again_at_ > now) return;
    again_at_ = now + *round.again_ms;
    delayed_send(this, std::chrono::milliseconds(*round.again_ms), place_atom_v);
  }

  // While no job waits for slots, a job may give a slot that it frees to its next pod without
  // asking. This revokes that from all jobs until their next grants.
  void return_slots() {
    for (JobId job : std::exchange(keepers_, {})) send(actors_.at(job), ReturnSlots{});
  }

  // ---- the journal

  void later(std::vector<NodeInfo> changed, Gate::Effects then) {
    if (changed.empty()) return gate_.after(std::move(then));
    Append append;
    for (NodeInfo& info : changed) {
      append.rows.push_back(storage::node_row(info));
      // Health may have changed again by the time this is durable, so the read model keeps the
      // health it has.
      if (!info.gone) info.health = NodeInfo::Health::unknown;
    }
    append.nodes = std::move(changed);
    gate_.after(std::move(append), std::move(then));
  }

  std::function<registry_actor()> registry_;
  WallClock clock_;
  ClusterOptions options_;
  std::map<NodeId, Node> nodes_;
  std::map<std::string, NodeId> by_name_;  // living incarnations
  std::set<std::string> awaited_;  // nodes on record that have not registered since the start
  NodeId last_node_ = 0;
  core::Slots slots_;
  std::map<JobId, job_actor> actors_;  // of the jobs that wait for slots or hold some
  std::set<JobId> keepers_;            // those among them whose last grant had `keep`
  bool place_due_ = false;
  bool spares_ = false;  // nodes whose lease has expired, while no node is ready
  Millis again_at_ = 0;  // uptime of the next scheduled place()
  Seldom unproven_;
  uint64_t last_registering_ = 0;
  std::map<uint64_t, std::function<void()>> registering_;  // registrations the jobs are reconciling
};

}  // namespace

cluster_actor spawn_cluster(caf::actor_system& system, journal_actor journal,
                            std::function<registry_actor()> registry, SealedLink link,
                            WallClock clock, ClusterOptions options, std::vector<NodeInfo> nodes,
                            std::map<JobId, HeldSlots> holds) {
  return vital(cluster_actor{system.spawn<Cluster>(std::move(journal), std::move(registry), link,
                                                   std::move(clock), std::move(options),
                                                   std::move(nodes), std::move(holds))});
}

}  // namespace muster::actors
