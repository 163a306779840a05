// Registration: whether an agent is welcome, as which incarnation, and what it must end.
//
// In order: its pods must be of this cluster; what it has seen must be part of our history; its
// name must be free or its own; ends that it holds of an incarnation that a reboot has ended are
// taken first. Then it is recorded, the jobs are asked about its pods, and it is answered.
#include "base/secret.hpp"
#include "core/cluster/nodes/claims.hpp"
#include "core/cluster/nodes/hollow.hpp"
#include "core/cluster/rules/turn.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace muster::core::cluster {

namespace {

using Kind = HelloAnswer::Kind;
using Standing = EpochLine::Standing;

constexpr size_t kBeyondMax = 500;  // characters of a node's claims that are logged

// Whether the agent uses the work-dir of this node. A row written by an earlier version has no
// secret and accepts the first one presented.
bool is_of(const Hello& hello, const NodeInfo& info) {
  return info.work_dir_id == hello.work_dir_id &&
         (info.secret.empty() || same_secret(info.secret, hello.secret));
}

std::vector<PodId> all_pods(const Hello& hello) {
  std::vector<PodId> pods = hello.running;
  pods.insert(pods.end(), hello.waiting.begin(), hello.waiting.end());
  pods.insert(pods.end(), hello.ended.begin(), hello.ended.end());
  return pods;
}

struct Registration {
  Turn& turn;
  const AgentRegisters& event;
  const Hello& hello = event.hello;
  const Cluster& cluster = turn.cluster;
  std::vector<PodId> pods = all_pods(hello);

  void decide();

 private:
  void refuse(Kind kind, std::string why) const {
    turn.then(AnswerHello{event.token, {kind, std::move(why), kNoNode, {}}});
  }
  Standing judge(const KnownHistory& known) const {
    return turn.settings().line.judge(known, turn.now.last_commit);
  }
  Standing standing() const {
    return judge({hello.highest_epoch, hello.epoch_nonce, hello.highest_commit});
  }
  static bool contradicts(Standing history) {
    return history == Standing::older || history == Standing::diverged;
  }
  std::string beyond_ours() const;
  bool proves_later() const;
  void answer_later_history(const std::string& beyond) const;
  Offer offered(NodeId known) const;
  NodeInfo next_info(NodeId old, bool same, NodeId known) const;
};

// What the agent knows that our data-dir does not, as a sentence; empty if nothing.
std::string Registration::beyond_ours() const {
  if (contradicts(standing()))
    return "node " + hello.node + " has seen epoch " + std::to_string(hello.highest_epoch) +
           " and commit " + std::to_string(hello.highest_commit) + ", which this data-dir (epoch " +
           std::to_string(turn.settings().line.last().epoch) + ", commit " +
           std::to_string(turn.now.last_commit) + ") does not contain";
  if (!turn.now.next_job) return "";
  for (PodId pod : pods)
    if (pod.job >= *turn.now.next_job)
      return "node " + hello.node + " has pods of job j" + std::to_string(pod.job) +
             ", but this data-dir never assigned that id";
  return "";
}

// Whether to believe the agent that our data-dir is outdated, which stops the coordinator. An agent
// of another machine must present history that we sealed and that our data-dir does not contain. An
// agent of this machine and user is believed if it has served this cluster: an old copy of the
// data-dir lacks newer nodes, but it has the cluster's keys.
bool Registration::proves_later() const {
  if (hello.must_prove) return hello.sealed && contradicts(judge(*hello.sealed));
  return same_secret(turn.settings().cluster_key, hello.cluster_key) ||
         std::any_of(cluster.nodes().begin(), cluster.nodes().end(),
                     [this](const auto& node) { return is_of(hello, node.second.info); });
}

void Registration::answer_later_history(const std::string& beyond) const {
  if (proves_later()) return turn.at_once(StopOutdated{event.token, beyond});
  turn.at_once(Log{
      Log::Level::error,
      beyond + "; rejecting it, because it cannot prove " +
          (hello.must_prove ? "this by a coordinator's seal" : "that it has served this cluster"),
      true});
  refuse(Kind::other_cluster,
         hello.must_prove
             ? "it claims to have seen later state than this coordinator, but has no seal of a "
               "coordinator of this cluster that proves it: use another --work-dir"
             : "it has seen later state than this coordinator, but cannot prove that it belongs to "
               "this cluster: use another --work-dir");
}

// What the agent's node has: what it says, as far as it may.
Offer Registration::offered(NodeId known) const {
  Offer offer{hello.slots, hello.resources, hello.labels};
  std::optional<NodeClaims> claims = hello.claims;
  if (hello.as_registered && known == kNoNode) claims.emplace();
  if (hello.as_registered && known != kNoNode) {
    const NodeInfo& before = cluster.node(known)->info;
    claims = claims_of({before.slots, before.resources, before.labels});
  }
  if (!claims) return offer;
  if (const std::string beyond = hold(offer, *claims); !beyond.empty())
    turn.log(Log::Level::warn, "node " + hello.node + " claims " + beyond.substr(0, kBeyondMax) +
                                   ", which it may not; `muster node claims " + hello.node +
                                   "` shows and changes what it may");
  return offer;
}

// `old`: the living incarnation; `same`: the agent continues it. `known`: the newest one.
NodeInfo Registration::next_info(NodeId old, bool same, NodeId known) const {
  const NodeInfo* before = known == kNoNode ? nullptr : &cluster.node(known)->info;
  const bool was_hollow = before && before->labels.contains(std::string(kHollowKey));
  Offer offer = offered(known);
  NodeInfo info;
  if (same) {
    info = cluster.node(old)->info;
  } else {
    info.id = cluster.next_id();
    info.name = hello.node;
    info.created_ms = info.changed_ms = turn.now.wall_ms;
    if (before && before->work_dir_id == hello.work_dir_id) info.strangers = before->strangers;
    // The spec that users set belongs to the name, not to an incarnation.
    if (before) info.spec = before->spec;
  }
  info.work_dir_id = hello.work_dir_id;
  info.secret = hello.secret;
  info.boot_id = hello.boot_id;
  info.slots = offer.slots;
  info.cpu_millis = hello.cpu_millis;
  info.memory_bytes = hello.memory_bytes;
  info.resources = std::move(offer.resources);
  take_labels(info, offer.labels, was_hollow);
  info.address = hello.address;
  info.ip = hello.ip;
  info.limits = hello.limits;
  info.agent_version = hello.agent_version;
  info.keeper_version = hello.keeper_version;
  info.until_ms.reset();
  if (hello.lives_ms) info.until_ms = turn.now.wall_ms + *hello.lives_ms;
  info.limits.required = turn.settings().require_limits;
  info.draining = false;
  info.left_ms = 0;
  std::erase_if(info.strangers, [this](PodId pod) {
    return std::find(hello.running.begin(), hello.running.end(), pod) == hello.running.end();
  });
  return info;
}

void Registration::decide() {
  const bool ours = hello.cluster_id == turn.settings().cluster_id;
  if (!ours && !pods.empty())
    return refuse(Kind::other_cluster,
                  "its work-dir has pods of " +
                      (hello.cluster_id.empty() ? "no cluster" : "cluster " + hello.cluster_id) +
                      ", but this is cluster " + turn.settings().cluster_id +
                      ": use another --work-dir, or end those pods first");
  const bool restored = ours && standing() == Standing::restored;
  if (std::string beyond = ours && !restored ? beyond_ours() : ""; !beyond.empty())
    return answer_later_history(beyond);

  const NodeId old = cluster.living(hello.node);
  const Cluster::Node* living = cluster.node(old);
  const bool same_dir = living && is_of(hello, living->info);
  if (living && !same_dir && !living->lease.expired())
    return refuse(Kind::name_taken,
                  "the name " + hello.node +
                      " belongs to another agent that responded within --node-grace: choose "
                      "another --name, or use that agent's --work-dir");
  const bool same = same_dir && living->info.boot_id == hello.boot_id;
  if (same_dir && !same && event.has_earlier_ends) return turn.at_once(TakeEnds{event.token, old});

  const NodeInfo info = next_info(old, same, cluster.newest(hello.node));
  turn.return_slots();
  if (living && !same) {
    turn.record(NodeReplaced{old, turn.now.wall_ms});
    turn.then(DropLink{old});  // its agent may only have been frozen
    turn.then(NodeIsLost{old, EndCause::node_lost});
  }
  const bool last = cluster.awaited().size() == 1 && cluster.awaited().contains(hello.node);
  const bool was_held = same && living->info.loss_held;
  turn.record(NodeRegistered{info});
  if (was_held) turn.show(info.id);
  turn.log(Log::Level::info, "node " + hello.node + " registered (n" + std::to_string(info.id) +
                                 ", " + std::to_string(info.slots) + " slots, " +
                                 std::to_string(hello.running.size()) + " running, " +
                                 std::to_string(hello.waiting.size()) + " waiting, " +
                                 std::to_string(hello.ended.size()) + " ended)");
  if (last) turn.at_once(AllRegistered{});
  const std::set<PodId> strangers(info.strangers.begin(), info.strangers.end());
  std::erase_if(pods, [&strangers](PodId pod) { return strangers.contains(pod); });
  turn.then(AskJobs{event.token, info.id, hello.link, std::move(pods), restored, info.strangers});
}

}  // namespace

void Turn::take(const AgentRegisters& event) {
  Registration{*this, event}.decide();
}

// After a restore, a node may run a pod that is not open here because it started after the backup.
// It may represent days of work, so it is left running and listed for an operator.
void Turn::take(const JobsAnswered& event) {
  std::vector<PodId> end = event.end, spared;
  // Those that an operator wants to end by now.
  const auto& left_alone = cluster.node(event.node)->info.strangers;
  for (const PodId pod : event.spared)
    if (std::find(left_alone.begin(), left_alone.end(), pod) == left_alone.end())
      end.push_back(pod);
  if (event.restored) {
    const std::set<PodId> runs(event.running.begin(), event.running.end());
    const auto& strangers = cluster.node(event.node)->info.strangers;
    const std::set<PodId> known(strangers.begin(), strangers.end());
    std::erase_if(end, [&](PodId pod) {
      if (!runs.contains(pod)) return false;
      if (known.contains(pod)) return true;
      spared.push_back(pod);
      log(Log::Level::warn, named(event.node) + " is running " + to_string(pod) +
                                ", which the restored state does not contain; leaving it alone");
      return true;
    });
  }
  if (!spared.empty()) record(StrangersFound{event.node, std::move(spared)});
  then(AnswerHello{event.token, {Kind::welcome, "", event.node, std::move(end)}});
}

}  // namespace muster::core::cluster
