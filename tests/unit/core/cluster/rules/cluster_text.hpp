// Prints records and effects of the cluster on one line each, for transcripts and tests: nodes as
// n1, jobs as j1, pods as j7/1#0. Values are omitted in the usual case.
#pragma once

#include "core/cluster/fold/decision.hpp"

#include <cmath>
#include <string>

namespace muster::core::cluster {

namespace shown {

inline std::string n(NodeId node) {
  return "n" + std::to_string(node);
}
inline std::string j(JobId job) {
  return "j" + std::to_string(job);
}
inline std::string pods_text(const std::vector<PodId>& pods) {
  std::string text;
  for (PodId pod : pods) text += (text.empty() ? "" : ",") + to_string(pod);
  return text;
}
template <class Map>
inline std::string counts_text(const Map& slots) {
  std::string text;
  for (const auto& [node, count] : slots) text += " " + n(node) + "=" + std::to_string(count);
  return text;
}
inline std::string trouble_text(const NodeTrouble& trouble) {
  return trouble ? " " + trouble.reason : " none";
}
inline std::string check_text(const HealthCheck& check) {
  if (!check.runs) return " none";
  return check.fails() ? " fails: " + check.failure : " passes";
}
inline std::string_view health_text(NodeInfo::Health health) {
  switch (health) {
    case NodeInfo::Health::unknown:
      return "unknown";
    case NodeInfo::Health::ready:
      return "ready";
    case NodeInfo::Health::suspect:
      return "suspect";
    case NodeInfo::Health::lost:
      return "lost";
  }
  return "";
}
inline std::string spec_text(const NodeSpec& spec) {
  std::string text = spec.unschedulable ? " cordoned" : "";
  for (const Taint& taint : spec.taints) text += " taint=" + taint.key + ":" + taint.effect;
  for (const auto& [key, value] : spec.labels) text += " label=" + key + "=" + value;
  return text;
}

struct RecordText {
  std::string operator()(const NodeRegistered& r) const {
    std::string text = "NodeRegistered " + n(r.node.id) + " " + r.node.name +
                       " boot=" + r.node.boot_id + " slots=" + std::to_string(r.node.slots);
    for (const auto& [key, value] : r.node.labels) text += " agent-label=" + key + "=" + value;
    text += spec_text(r.node.spec);
    if (!r.node.strangers.empty()) text += " strangers=" + pods_text(r.node.strangers);
    return text;
  }
  std::string operator()(const NodeReplaced& r) const { return "NodeReplaced " + n(r.node); }
  std::string operator()(const NodeLost& r) const { return "NodeLost " + n(r.node); }
  std::string operator()(const NodeDeleted& r) const { return "NodeDeleted " + n(r.node); }
  std::string operator()(const NodeSpecChanged& r) const {
    return "NodeSpecChanged " + n(r.node) + spec_text(r.spec);
  }
  std::string operator()(const NodeLeft& r) const { return "NodeLeft " + n(r.node); }
  std::string operator()(const StrangersFound& r) const {
    return "StrangersFound " + n(r.node) + " " + pods_text(r.pods);
  }
  std::string operator()(const StrangersDropped& r) const {
    return "StrangersDropped " + n(r.node);
  }
  std::string operator()(const UsesNoted& r) const {
    std::string text = "UsesNoted";
    for (const auto& [user, use] : r.noted.uses)
      text += " u" + std::to_string(user) + "=" + std::to_string(use);
    return text;
  }
  std::string operator()(const NodeConnected& r) const {
    return "NodeConnected " + n(r.node) + " link=" + std::to_string(r.link);
  }
  std::string operator()(const NodeDisconnected& r) const {
    return "NodeDisconnected " + n(r.node);
  }
  std::string operator()(const NodeResponded& r) const { return "NodeResponded " + n(r.node); }
  std::string operator()(const NodeTroubled& r) const {
    return "NodeTroubled " + n(r.node) + trouble_text(r.trouble);
  }
  std::string operator()(const NodeSuspected& r) const { return "NodeSuspected " + n(r.node); }
  std::string operator()(const LossHeld& r) const { return "LossHeld " + n(r.node); }
  std::string operator()(const TickPassed&) const { return "TickPassed"; }
  std::string operator()(const HealthChecked& r) const {
    return "HealthChecked " + n(r.node) + check_text(r.check);
  }
  std::string operator()(const StartsFailed& r) const {
    return "StartsFailed " + n(r.node) + " " + j(r.job) + " pods=" + std::to_string(r.pods) +
           (r.user ? " user=" + std::to_string(*r.user) : "") + ": " + r.why;
  }
  std::string operator()(const StartsForgiven& r) const {
    return "StartsForgiven " + n(r.node) + " " + j(r.job);
  }
  std::string operator()(const NodeClosed& r) const {
    return "NodeClosed " + n(r.node) + ": " + r.why;
  }
  std::string operator()(const ProbeSent& r) const {
    return "ProbeSent " + n(r.node) + " wait=" + std::to_string(r.wait_ms / 1000) + "s";
  }
  std::string operator()(const StartsCleared& r) const { return "StartsCleared " + n(r.node); }
};

struct EffectText {
  std::string operator()(const AnswerHello& e) const {
    using Kind = HelloAnswer::Kind;
    if (e.answer.kind == Kind::welcome)
      return "AnswerHello welcome " + n(e.answer.node) +
             (e.answer.end.empty() ? "" : " end=" + pods_text(e.answer.end));
    return std::string("AnswerHello ") +
           (e.answer.kind == Kind::name_taken ? "name-taken" : "other-cluster") + ": " +
           e.answer.message;
  }
  std::string operator()(const AnswerRequest& e) const {
    using Outcome = AnswerRequest::Outcome;
    return std::string("AnswerRequest ") + (e.outcome == Outcome::done       ? "done"
                                            : e.outcome == Outcome::conflict ? "conflict"
                                                                             : "not-found");
  }
  std::string operator()(const AskJobs& e) const {
    return "AskJobs " + n(e.node) + " link=" + std::to_string(e.link) +
           (e.known.empty() ? "" : " known=" + pods_text(e.known)) +
           (e.restored ? " restored" : "");
  }
  std::string operator()(const NodeIsLost& e) const {
    return "NodeIsLost " + n(e.node) + (e.cause == EndCause::node_deleted ? " deleted" : "") +
           (e.silent_ms > 0 ? " silent=" + std::to_string(e.silent_ms) + "ms" : "");
  }
  std::string operator()(const DropLink& e) const { return "DropLink " + n(e.node); }
  std::string operator()(const PlaceSoon&) const { return "PlaceSoon"; }
  std::string operator()(const TakeEnds& e) const { return "TakeEnds " + n(e.node); }
  std::string operator()(const StopOutdated& e) const { return "StopOutdated: " + e.why; }
  std::string operator()(const AllRegistered&) const { return "AllRegistered"; }
  std::string operator()(const NodeReadyNow& e) const {
    return "NodeReadyNow " + n(e.node) + " link=" + std::to_string(e.link);
  }
  std::string operator()(const ShowShares& e) const {
    std::string text = "ShowShares";
    for (const Slots::Standing& one : e.standings)
      text += " u" + std::to_string(one.user) +
              (one.queue.empty() || one.queue == kDefaultQueue ? "" : "/" + one.queue) + "=" +
              std::to_string(std::lround(one.held * 100)) + "%";
    if (e.kept_for) text += " for " + j(*e.kept_for);
    for (const auto& [job, wait] : e.queue_waits) text += " " + j(job) + " waits in " + wait.queue;
    return text;
  }
  std::string operator()(const ShowHealth& e) const {
    return "ShowHealth " + n(e.health.id) + " " + std::string(health_text(e.health.health)) +
           (e.health.draining ? " draining" : "") + (e.health.loss_held ? " loss-held" : "") +
           (e.health.trouble ? trouble_text(e.health.trouble) : "") +
           (e.health.check.fails() ? " check-fails" : "") +
           (e.health.starts_failing.empty() ? "" : " starts-failing");
  }
  std::string operator()(const TakeKept& e) const { return "TakeKept " + j(e.job); }
  std::string operator()(const Grant& e) const {
    return "Grant " + j(e.job) + counts_text(e.slots) + (e.keep ? " keep" : "");
  }
  std::string operator()(const TakeBack& e) const {
    return "TakeBack " + j(e.job) + counts_text(e.slots);
  }
  std::string operator()(const TellLeave& e) const {
    std::string text = "TellLeave " + j(e.job);
    for (NodeId node : e.nodes) text += " " + n(node);
    return text;
  }
  std::string operator()(const TellNowhere& e) const { return "TellNowhere " + j(e.job); }
  std::string operator()(const PlaceAfter& e) const {
    return "PlaceAfter " + std::to_string(e.ms) + "ms";
  }
  std::string operator()(const Log& e) const {
    using Level = Log::Level;
    return std::string("log ") +
           (e.level == Level::info   ? "info"
            : e.level == Level::warn ? "warn"
                                     : "error") +
           ": " + e.text;
  }
};

}  // namespace shown

inline std::string to_text(const Record& record) {
  return std::visit(shown::RecordText{}, record);
}
inline std::string to_text(const Effect& effect) {
  return std::visit(shown::EffectText{}, effect);
}
inline std::string to_text(const AtOnce& effect) {
  return std::visit(shown::EffectText{}, effect);
}

}  // namespace muster::core::cluster
