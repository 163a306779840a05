// The life of a node between its registration and its end: its session, its lease, its agent's
// shutdown, and what clients do to it.
#include "core/cluster/rules/turn.hpp"

#include <cstdio>

namespace muster::core::cluster {

namespace {

using Health = NodeInfo::Health;

// The node whose session this is, and that is not gone; nullptr: there is none.
const Cluster::Node* with_session(const Turn& turn, NodeId id, uint64_t link) {
  const Cluster::Node* node = turn.cluster.node(id);
  return node && node->link == link && !node->info.gone ? node : nullptr;
}

// Applies a record after which the node is ready.
void make_ready(Turn& turn, NodeId id, Record record) {
  const bool was = turn.cluster.node(id)->info.health == Health::ready;
  turn.record(std::move(record));
  if (!was) turn.log(Log::Level::info, turn.named(id) + " is ready");
}

template <class R>
void make_suspect(Turn& turn, NodeId id) {
  const bool was = turn.cluster.node(id)->info.health == Health::suspect;
  turn.record(R{id, turn.now.wall_ms});
  if (was) return;
  turn.log(Log::Level::info, turn.named(id) + " is not responding");
  turn.show(id);
}

std::string seconds_text(Millis ms) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(ms) / 1000);
  return text;
}

void lose(Turn& turn, NodeId id) {
  const Millis grace_ms = turn.settings().node_grace_ms;
  turn.log(Log::Level::warn, turn.named(id) + " is lost: it has not responded for " +
                                 seconds_text(grace_ms) +
                                 "s (--node-grace); its pods fail and are placed elsewhere");
  turn.return_slots();
  turn.record(NodeLost{id, turn.now.wall_ms});
  turn.then(DropLink{id});
  turn.then(NodeIsLost{id, EndCause::node_lost, silence_ms(grace_ms)});
}

void take_check(Turn& turn, const Heartbeat& event) {
  const bool failed = turn.cluster.node(event.node)->info.check.fails();
  const bool fails = event.check.fails();
  if (fails && !failed)
    turn.log(Log::Level::warn,
             turn.named(event.node) +
                 " fails its health check and gets no new pods: " + event.check.failure);
  else if (failed && !fails)
    turn.log(Log::Level::info, turn.named(event.node) + " passes its health check");
  turn.record(HealthChecked{event.node, event.check, turn.now.wall_ms});
}

// A client that uncordons a node that is not cordoned changes nothing, except perhaps who manages
// which field.
bool uncordons(NodeSpec seen, const NodeSpec& spec) {
  if (spec.unschedulable || seen.unschedulable) return !spec.unschedulable;
  seen.managers = spec.managers;
  return seen == spec;
}

// No node responds: more likely the coordinator itself is cut off.
void hold_loss(Turn& turn, const std::vector<NodeId>& silent) {
  bool said = false;
  for (NodeId id : silent) said |= turn.cluster.node(id)->info.loss_held;
  for (NodeId id : silent) {
    if (turn.cluster.node(id)->info.loss_held) continue;
    turn.record(LossHeld{id});
    turn.show(id);
  }
  if (!said)
    turn.log(Log::Level::warn,
             "no node responds; until one does, none is lost, however long it has been silent");
}

}  // namespace

void Turn::take(const LinkUp& event) {
  const Cluster::Node* node = cluster.node(event.node);
  if (!node || node->info.gone) return then(DropLink{event.node});
  make_ready(*this, event.node, NodeConnected{event.node, event.link, now.wall_ms});
  show(event.node);  // it no longer drains
  at_once(NodeReadyNow{event.node, event.link});
  place_soon();
}

void Turn::take(const LinkDown& event) {
  if (with_session(*this, event.node, event.link))
    make_suspect<NodeDisconnected>(*this, event.node);
}

void Turn::take(const Heartbeat& event) {
  const Cluster::Node* node = with_session(*this, event.node, event.link);
  if (!node) return;
  const bool changed = node->info.trouble != event.trouble;
  const bool was_ready = node->info.health == Health::ready;
  const bool checked = node->info.check != event.check;
  // Only the words of the failure differ, perhaps by a time in them.
  const bool reworded = checked && node->info.check.fails() && event.check.fails();
  const auto started = node->starts.started;
  if (checked) take_check(*this, event);
  if (changed) {
    // The lease is renewed all the same: pods there keep running, and their ends are reported.
    if (event.trouble)
      log(Log::Level::warn, named(event.node) + " is unhealthy and gets no new pods: " +
                                event.trouble.reason + ": " + event.trouble.message);
    else
      log(Log::Level::info, named(event.node) + " has recovered");
    record(NodeTroubled{event.node, event.trouble, now.wall_ms});
  }
  make_ready(*this, event.node, NodeResponded{event.node, now.wall_ms, event.started});
  note_started(event.node, started, event.started);
  if (changed || (checked && !reworded) || !was_ready) {
    show(event.node);
    place_soon();
  } else if (reworded) {
    at_once(ShowHealth{health_of(node->info)});
  }
}

void Turn::take(const AgentLeaves& event) {
  if (!with_session(*this, event.node, event.link)) return;
  log(Log::Level::info, named(event.node) + " is draining");
  record(NodeLeft{event.node, now.wall_ms});
  show(event.node);
}

void Turn::take(const Tick&) {
  record(TickPassed{});
  note_uses();
  bool some_ready = false;
  std::vector<NodeId> late, silent;
  for (const auto& [id, node] : cluster.nodes()) {
    if (node.info.gone) continue;
    if (node.lease.suspect() && node.info.health == Health::ready)
      late.push_back(id);
    else
      some_ready |= node.info.health == Health::ready;
    if (node.lease.expired()) silent.push_back(id);
  }
  for (NodeId id : late) make_suspect<NodeSuspected>(*this, id);
  judge_starts();
  look_at_windows();
  if (silent.empty()) return;
  if (!some_ready) return hold_loss(*this, silent);
  for (NodeId id : silent) lose(*this, id);
}

// A window that begins or ends is a matter for placement. The wall clock may have jumped.
void Turn::look_at_windows() {
  const Millis before_ms = std::exchange(cluster.looked_at_windows_ms(), now.wall_ms);
  for (const auto& [id, node] : cluster.nodes()) {
    if (node.info.gone) continue;
    const NodeEnds ends{{}, windows_of(node.info.spec.annotations)};
    if (ends.any() && (before_ms > now.wall_ms || window_turns(ends, before_ms, now.wall_ms)))
      return place_soon();
  }
}

void Turn::take(const SpecRequest& event) {
  using Outcome = AnswerRequest::Outcome;
  const NodeId id = cluster.newest(event.name);
  if (id == kNoNode) return then(AnswerRequest{event.token, Outcome::not_found});
  if (cluster.node(id)->info.spec != event.seen)
    return then(AnswerRequest{event.token, Outcome::conflict});
  return_slots();
  const bool uncordoned = uncordons(event.seen, event.spec);
  if (event.seen != event.spec) {
    record(NodeSpecChanged{id, event.spec});
    log(Log::Level::info, named(id) + " changed" + (event.spec.unschedulable ? ": cordoned" : ""));
  }
  if (uncordoned) reopen(id, "it was uncordoned");
  then(AnswerRequest{event.token, Outcome::done});
  then(PlaceSoon{});
}

void Turn::take(const DeleteRequest& event) {
  using Outcome = AnswerRequest::Outcome;
  const NodeId id = cluster.newest(event.name);
  if (id == kNoNode) return then(AnswerRequest{event.token, Outcome::not_found});
  log(Log::Level::warn, named(id) + " was deleted; its pods fail as disrupted");
  return_slots();
  record(NodeDeleted{id, now.wall_ms});
  then(DropLink{id});
  then(NodeIsLost{id, EndCause::node_deleted});
  then(AnswerRequest{event.token, Outcome::done});
}

void Turn::take(const EndStrangersRequest& event) {
  using Outcome = AnswerRequest::Outcome;
  const NodeId id = cluster.newest(event.name);
  if (id == kNoNode) return then(AnswerRequest{event.token, Outcome::not_found});
  if (const size_t pods = cluster.node(id)->info.strangers.size(); pods > 0) {
    log(Log::Level::warn, named(id) + " is to end " + std::to_string(pods) +
                              (pods == 1 ? " pod" : " pods") +
                              " that the restored state does not contain");
    record(StrangersDropped{id});
    then(DropLink{id});
  }
  then(AnswerRequest{event.token, Outcome::done});
}

}  // namespace muster::core::cluster
