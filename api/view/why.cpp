#include "api/view/why.hpp"

#include "api/view/tables.hpp"
#include "core/cluster/free_node.hpp"
#include "core/job/pod_conditions.hpp"
#include "core/job/text.hpp"
#include "core/job/waiting.hpp"
#include "core/spec/owner.hpp"
#include "core/spec/well_known.hpp"

#include <map>
#include <optional>
#include <set>

namespace muster::api {
namespace {

std::string count(uint64_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

constexpr Millis kRoundUpMs = 999;  // waiting times are shown in whole seconds, rounded up

std::string attempt_name(PodKey key) {
  return "attempt " + std::to_string(key.attempt);
}

// "exit 1", "signal 9 (exit 137), DeletionByTaintManager: …".
std::string end_text(const core::Pod& pod) {
  const core::PodEnd& end = pod.end;
  std::string text = end.signal != 0 ? "signal " + std::to_string(end.signal) + " (exit " +
                                           std::to_string(end.exit_code) + ")"
                                     : "exit " + std::to_string(end.exit_code);
  if (end.cause == core::EndCause::out_of_memory) text += ", OOMKilled";
  for (const core::PodCondition& c : core::pod_conditions(pod))
    if (c.type == core::kDisruptionTarget && c.status == "True") text += ", " + c.reason;
  if (!end.message.empty()) text += ": " + end.message;
  return text;
}

std::string counted_text(const core::Pod& pod) {
  switch (pod.action) {
    case core::FailureAction::ignore:
      return "ignored by the pod failure policy";
    case core::FailureAction::fail_index:
      return "the pod failure policy says FailIndex";
    case core::FailureAction::fail_job:
      return pod.end.cause == core::EndCause::start_failed
                 ? "a command that cannot be started ends this job"
                 : "the pod failure policy says FailJob";
    default:
      break;
  }
  switch (pod.counted) {
    case core::Counted::succeeded:
      return "counted as a success";
    case core::Counted::failed:
      return "counted as a failure";
    case core::Counted::ignored:
      return "not counted: ignored by the pod failure policy";
    case core::Counted::released:
      return "not counted: it was removed";
    case core::Counted::not_yet:
      return "counted once its replacement exists";
  }
  return {};
}

// Why a node does not take one more such pod now; "" if it would.
std::string refusal(const core::NodeInfo& node, uint32_t used, const core::Amounts& taken,
                    const core::Demand& demand) {
  if (node.health != core::NodeInfo::Health::ready) return "not ready";
  if (node.draining) return "its agent is leaving";
  if (node.trouble) return node.trouble.reason + ": " + node.trouble.message;
  if (node.spec.unschedulable) return "cordoned";
  if (!core::enforces(node, demand))
    return "it does not enforce the pod's limits (--require-limits)";
  if (!core::admits(node, core::labels_of(node), demand))
    return demand.node_selector.empty() ? "it has taints that the job does not tolerate"
                                        : "its labels or taints do not fit the job";
  core::Amounts room = core::capacity_of(node);
  if (!demand.amounts.none() && core::times_in(room, demand.amounts, 1) == 0)
    return "too small for what the pod requests";
  if (used >= node.slots) return "all " + count(node.slots, "slot") + " are in use";
  room.add(taken, -1);
  if (!demand.amounts.none() && core::times_in(room, demand.amounts, 1) == 0)
    return "not enough of what the pod requests is free";
  return {};
}

// Explains why a pod without a node does not get one.
void explain_place(const View& view, const core::Job& job, uint64_t user_pods_max,
                   Explanation& out) {
  const auto owner = core::owner_uid(job.object().meta.annotations);
  uint64_t of_owner = 0;
  std::map<NodeId, uint32_t> used;
  std::map<NodeId, core::Amounts> taken;
  view.jobs().each_active([&](const core::Job& other) {
    const core::Demand demand = core::demand_of(other.object());
    const bool same = owner && core::owner_uid(other.object().meta.annotations) == owner;
    for (const auto& [key, pod] : other.state().open) {
      if (!pod.bound()) continue;
      if (same) ++of_owner;
      ++used[pod.node];
      taken[pod.node].add(demand.amounts, 1);
    }
  });
  const core::Demand demand = core::demand_of(job.object());
  const uint64_t wanted = demand.gang ? job.pending().size() : 1;
  if (owner && user_pods_max > 0 && of_owner + wanted > user_pods_max) {
    out.summary += ": its owner has " + count(of_owner, "pod") + " on nodes, and may have " +
                   std::to_string(user_pods_max) + " (--user-pods-max)";
    if (demand.gang)
      out.details.push_back("a gang of " + std::to_string(wanted) +
                            ": its pods start together or not at all");
    return;
  }
  std::map<std::string, std::vector<std::string>> reasons;
  size_t nodes = 0;
  view.each(Kind::node, "", nullptr, [&](const Shown& shown) {
    ++nodes;
    const core::NodeInfo& node = *shown.node;
    std::string why = refusal(node, used[node.id], taken[node.id], demand);
    if (why.empty()) why = "it is about to get it, or it is kept for a job that goes first";
    reasons[why].push_back(node.name);
  });
  out.summary += nodes == 0 ? ": there is no node (start an agent)"
                            : ": none of " + count(nodes, "node") + " takes it now";
  for (const auto& [why, names] : reasons) {
    std::string line = count(names.size(), "node") + ": " + why + " (";
    for (size_t i = 0; i < names.size() && i < 5; ++i) line += (i ? ", " : "") + names[i];
    if (names.size() > 5) line += ", …";
    out.details.push_back(line + ")");
  }
  if (demand.gang) out.details.push_back("a gang: its pods start together or not at all");
}

const core::Condition* terminal(const core::Job& job) {
  const core::Condition* found = job.condition(core::ConditionType::complete);
  return found ? found : job.condition(core::ConditionType::failed);
}

// Explains what holds for all indexes alike. True if nothing of this job can start.
bool explain_whole(const core::Job& job, Millis now, const core::Knobs& knobs, Explanation& out) {
  const core::JobState& s = job.state();
  if (const core::Condition* damage = job.condition(core::ConditionType::damaged)) {
    out.state = "Damaged";
    out.summary = "the job is quarantined, since its state can't be read: " + damage->message;
    return true;
  }
  if (const core::Condition* end = terminal(job)) {
    out.state = end->type == core::ConditionType::complete ? "Succeeded" : "Failed";
    out.summary = "the job is " + std::string(name(end->type)) + ": " +
                  std::string(name(end->reason)) + ": " + end->message;
    return true;
  }
  if (s.deleted_at) {
    out.state = "Deleted";
    std::string held_by;
    for (const std::string& name : job.object().meta.finalizers)
      held_by += (held_by.empty() ? "" : ", ") + name;
    if (s.orphaned || s.deletion_waits)
      out.summary = "the job is deleted but has finalizers (" + held_by + "); its pods run on" +
                    (s.orphaned ? "" : " until these are removed");
    else
      out.summary = "the job is being deleted; " + count(s.open.size(), "pod") + " must end first";
    return true;
  }
  if (const auto& by = job.spec().managed_by; by && *by != core::kReservedManager) {
    out.state = "External";
    out.summary = "spec.managedBy names " + *by + ", so muster only keeps the job";
    return true;
  }
  const core::Condition* decided = job.condition(core::ConditionType::failure_target);
  if (!decided) decided = job.condition(core::ConditionType::success_criteria_met);
  if (decided) {
    out.state = "Stopping";
    out.summary = "the job's end is decided (" + std::string(name(decided->reason)) + ": " +
                  decided->message + "); " + count(s.open.size(), "pod") + " must end first";
    return true;
  }
  if (job.spec().suspend.value_or(false)) {
    out.state = "Suspended";
    out.summary = "the job is suspended; go on with: muster resume job/" + job.object().meta.name;
    return true;
  }
  if (job.gated() && job.active() == job.pending().size()) {
    std::string names;
    for (const std::string& gate : job.spec().pod.scheduling_gates)
      names += (names.empty() ? "" : ", ") + gate;
    out.state = "SchedulingGated";
    out.summary = "its pods have scheduling gates (" + names +
                  ") and are not bound; suspend the job, remove spec.template.spec."
                  "schedulingGates and resume it";
    return true;
  }
  if (Millis due = core::job_due(job, knobs); due > now) {
    out.state = "Backoff";
    out.until_ms = due;
    out.summary = "new pods wait " + span_text(due - now + kRoundUpMs) + " more after " +
                  count(s.backoff_failures, "failure") + " in a row (until " +
                  core::instant_text(due) + ")";
    return true;
  }
  return false;
}

std::string running_text(const View& view, const core::Pod& pod, Millis now) {
  std::string text = attempt_name(pod.key);
  if (pod.stopping_at)
    return text + " was told to stop " + span_text(now - *pod.stopping_at) + " ago, on node " +
           view.node_name(pod.node);
  if (pod.started_at)
    return text + " runs on node " + view.node_name(pod.node) + " for " +
           span_text(now - *pod.started_at);
  return text + " is on its way to node " + view.node_name(pod.node);
}

// Reports trouble of nodes that run pods of the job or, if given, of this index.
void tell_trouble(const View& view, const core::Job& job, std::optional<uint32_t> index,
                  Explanation& out) {
  std::set<NodeId> told;
  for (const auto& [key, pod] : job.state().open) {
    if (!pod.bound() || (index && key.index != *index) || !told.insert(pod.node).second) continue;
    const auto shown = view.node(view.node_name(pod.node));
    if (!shown || shown->node->id != pod.node || !shown->node->trouble) continue;
    const core::NodeTrouble& trouble = shown->node->trouble;
    out.details.push_back("node " + shown->node->name + " is not ready: " + trouble.reason + ": " +
                          trouble.message);
  }
}

}  // namespace

Explanation why_job(const View& view, const core::Job& job, Millis now,
                    const core::Knobs& coordinator, uint64_t user_pods_max) {
  const core::Knobs knobs = core::knobs_of(coordinator, job.object());
  const core::JobState& s = job.state();
  Explanation out;
  const bool whole = explain_whole(job, now, knobs, out);
  const size_t pending = job.pending().size();
  uint64_t delayed = 0;
  Millis next = 0;
  for (const auto& [index, pod] : s.deferred) {
    const Millis due = core::index_due(job, knobs, index);
    if (due <= now) continue;
    ++delayed;
    next = next == 0 ? due : std::min(next, due);
  }
  if (!whole && job.active() > pending) {
    out.state = "Running";
    out.summary = count(job.active() - pending, "pod") + " of at most " +
                  std::to_string(s.parallelism) + " run";
  } else if (!whole && pending > 0) {
    out.state = "Pending";
    out.summary = count(pending, "pod") + " wait for a place";
    explain_place(view, job, user_pods_max, out);
  } else if (!whole && delayed > 0) {
    out.state = "Backoff";
    out.until_ms = next;
    out.summary = (delayed == 1 ? "1 index waits" : std::to_string(delayed) + " indexes wait") +
                  " after a failure, the next one " + span_text(next - now + kRoundUpMs) + " more";
  } else if (!whole) {
    out.state = "Waiting";
    out.summary = s.parallelism == 0 ? "spec.parallelism is 0: no pod may run"
                                     : "its pods are about to be created";
  }
  if (out.state == "Running" && pending > 0)
    out.details.push_back(count(pending, "pod") + " wait for a place on a node");
  tell_trouble(view, job, std::nullopt, out);
  if (delayed > 0 && out.state != "Backoff")
    out.details.push_back("waiting after a failure: " + std::to_string(delayed) +
                          " (the next one " + span_text(next - now + kRoundUpMs) + " more)");
  if (!s.failed_indexes.empty())
    out.details.push_back("failed indexes: " + s.failed_indexes.text());
  return out;
}

Explanation why_index(const View& view, const core::Job& job, uint32_t index,
                      const std::optional<core::Pod>& last, Millis now,
                      const core::Knobs& coordinator, uint64_t user_pods_max) {
  const core::Knobs knobs = core::knobs_of(coordinator, job.object());
  const core::JobState& s = job.state();
  Explanation out;
  auto tell_last = [&] {
    if (!last) return;
    out.details.push_back(attempt_name(last->key) + " on node " + view.node_name(last->node) +
                          " ended " + span_text(std::max<Millis>(0, now - last->end.ended_at)) +
                          " ago: " + end_text(*last) + "; " + counted_text(*last));
  };
  if (s.completed.contains(index)) {
    out.state = "Succeeded";
    out.summary = "the index has succeeded";
    tell_last();
    return out;
  }
  if (s.failed_indexes.contains(index)) {
    out.state = "Failed";
    const bool by_rule = last && last->action == core::FailureAction::fail_index;
    out.summary = by_rule
                      ? "the index has failed: a FailIndex rule of the pod failure policy matched"
                      : "the index has failed: its failures exceed backoffLimitPerIndex (" +
                            std::to_string(job.spec().backoff_limit_per_index.value_or(0)) + ")";
    tell_last();
    return out;
  }
  const core::Pod* open = nullptr;
  for (auto it = s.open.lower_bound({index, 0}); it != s.open.end() && it->first.index == index;
       ++it)
    if (!open || it->second.active()) open = &it->second;
  if (open && open->bound()) {
    out.state = open->terminating() ? "Stopping" : "Running";
    out.summary = running_text(view, *open, now);
    tell_trouble(view, job, index, out);
    tell_last();
    return out;
  }
  if (explain_whole(job, now, knobs, out)) {
    if (terminal(job)) out.summary = "the index never succeeded, and " + out.summary;
    tell_last();
    return out;
  }
  if (open) {
    out.state = "Pending";
    out.summary = attempt_name(open->key) + " waits for a place";
    explain_place(view, job, user_pods_max, out);
    tell_last();
    return out;
  }
  if (Millis due = core::index_due(job, knobs, index); due > now) {
    out.state = "Backoff";
    out.until_ms = due;
    out.summary = attempt_name({index, job.next_attempt(index)}) + " may start in " +
                  span_text(due - now + kRoundUpMs) + " (" + core::instant_text(due) + ")";
    if (auto deferred = s.deferred.find(index); deferred != s.deferred.end())
      out.details.push_back(attempt_name(deferred->second.key) + ": " + end_text(deferred->second) +
                            "; " + counted_text(deferred->second));
    return out;
  }
  out.state = "Waiting";
  out.summary = s.parallelism == 0
                    ? "spec.parallelism is 0: no pod may run"
                    : "it waits for its turn: " + std::to_string(job.active()) + " of at most " +
                          std::to_string(s.parallelism) + " pods are there, lower indexes go first";
  tell_last();
  return out;
}

}  // namespace muster::api
