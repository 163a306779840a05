#include "api/view/render/why.hpp"

#include "api/view/query/object_json.hpp"
#include "api/view/query/pod_configs.hpp"
#include "api/view/render/misfits.hpp"
#include "api/view/render/pod_runs.hpp"
#include "api/view/render/repairs.hpp"
#include "api/view/render/tables.hpp"
#include "base/text/exit_text.hpp"
#include "core/cluster/nodes/demand.hpp"
#include "core/job/facts/pod_conditions.hpp"
#include "core/job/fold/text.hpp"
#include "core/job/rules/backoff.hpp"
#include "core/job/rules/held.hpp"
#include "core/job/shown/hold_text.hpp"
#include "core/pod_name.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/rules/retry_steps.hpp"
#include "core/spec/values/duration.hpp"
#include "core/spec/values/quantity.hpp"
#include "core/spec/values/well_known.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace muster::api {
namespace {

// "1 pod is", "3 pods are".
std::string count_of(uint64_t n, const std::string& what) {
  return count(n, what) + (n == 1 ? " is" : " are");
}

// "3 pods are waiting on their node for a slot there".
std::string parked_text(uint64_t n) {
  return count_of(n, "pod") + " waiting on " + (n == 1 ? "its" : "their") +
         " node for a slot there";
}

constexpr Millis kRoundUpMs = 999;  // waiting times are shown in whole seconds, rounded up

std::string attempt_name(PodKey key) {
  return "attempt " + std::to_string(key.attempt);
}

// "exit 1", "SIGKILL (exit 137), DeletionByTaintManager: …".
std::string end_text(const core::Pod& pod) {
  const core::PodEnd& end = pod.end;
  std::string text = exit_text(end.exit_code, end.signal);
  if (end.cause == core::EndCause::out_of_memory) text += ", OOMKilled";
  if (end.cause == core::EndCause::deadline) text += ", DeadlineExceeded";
  for (const core::PodCondition& c : core::pod_conditions(pod))
    if (c.type == core::kDisruptionTarget && c.status == "True") text += ", " + c.reason;
  if (!end.message.empty()) text += ": " + end.message;
  return text;
}

// "16Gi of memory and a time limit of 8h": what its pods with these steps have, of what the job
// raises; empty: it raises nothing.
std::string has_text(const core::Job& job, core::Steps steps) {
  const core::RetrySteps all = core::retry_steps(job.object().meta.annotations);
  std::string text;
  if (const auto memory = core::memory_of(job.object(), steps); memory && !all.memory.empty())
    text = *memory + " of memory";
  if (const auto time_s = core::time_limit_of(job.object(), steps); time_s && !all.time_s.empty())
    text += std::string(text.empty() ? "" : " and ") + "a time limit of " +
            core::duration_text(*time_s * 1000);
  return text;
}

// Whether the end was ignored because the next pods have more (ADR 76).
bool was_raised(const core::Job& job, const core::Pod& pod) {
  const core::RetrySteps all = core::retry_steps(job.object().meta.annotations);
  return pod.action == core::FailureAction::ignore &&
         ((pod.end.cause == core::EndCause::out_of_memory &&
           pod.steps.memory < all.memory.size()) ||
          (pod.end.cause == core::EndCause::deadline && pod.steps.time < all.time_s.size()));
}

std::string counted_text(const core::Job& job, const core::Pod& pod) {
  if (was_raised(job, pod)) {
    const bool memory = pod.end.cause == core::EndCause::out_of_memory;
    return std::string("not counted: the next attempt has more ") + (memory ? "memory" : "time") +
           " (" + std::string(memory ? core::kRetryMemoryKey : core::kRetryTimeKey) + ")";
  }
  switch (pod.action) {
    case core::FailureAction::ignore:
      return "ignored by the pod failure policy";
    case core::FailureAction::fail_index:
      return "a FailIndex rule of the pod failure policy matched";
    case core::FailureAction::fail_job:
      return pod.end.cause == core::EndCause::start_failed
                 ? "a command that cannot be started fails this job"
                 : "a FailJob rule of the pod failure policy matched";
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
    case core::Counted::cancelled:
      return "not counted: it was cancelled";
    case core::Counted::not_yet:
      return "counted once its replacement exists";
  }
  return {};
}

std::string percent(double part) {
  char text[16];
  std::snprintf(text, sizeof text, part < 0.1 ? "%.1f" : "%.0f", part * 100);
  return std::string(text) + "%";
}

// Its place in the line, and when it is likely to start, if that is known.
void explain_line(const core::cluster::ShowShares& shares, const core::Job& job, Millis now,
                  Explanation& out) {
  const auto found = shares.line.find(job.id());
  if (found == shares.line.end()) return;
  const core::Expectation& one = found->second;
  const bool known = one.start_ms && *one.start_ms > now;
  if (one.ahead == 0 && !known) return;
  std::string text = one.ahead == 0   ? "next in line"
                     : one.ahead == 1 ? "1 waiting job goes first"
                                      : std::to_string(one.ahead) + " waiting jobs go first";
  if (known) text += "; expected to start in about " + span_text(*one.start_ms - now + kRoundUpMs);
  out.details.push_back(std::move(text));
}

// Less recent use than this, a part of the cluster, is not worth a word.
constexpr double kLeastUse = 0.001;

// How the user stands among those in the queue, of `users` in the cluster. `queues`: there are
// users in others.
std::string standing_text(const std::vector<core::Slots::Standing>& standings,
                          const core::Slots::Standing& own, size_t users, bool queues) {
  size_t all = 0, ahead = 0;
  for (const core::Slots::Standing& one : standings) {
    if (one.queue != own.queue) continue;
    ++all;
    ahead += one.waiting > 0 && one.level() < own.level();
  }
  const std::string where = queues ? " in queue " + own.queue : "";
  std::string text = (ahead == 0 ? "no other user" + where + " is ahead: "
                                 : std::to_string(ahead) + " of " + std::to_string(all) + " users" +
                                       where + (ahead == 1 ? " is ahead: " : " are ahead: ")) +
                     (own.name.empty() ? "its owner" : own.name) + " holds " + percent(own.held) +
                     " of the cluster" + (queues ? " there" : "");
  if (own.use >= kLeastUse) {
    char times[16];
    std::snprintf(times, sizeof times, "%.1f", own.use * static_cast<double>(users));
    text += ", and lately had " + percent(own.use) + (queues ? " in all queues, " : ", ") + times +
            " times an equal share";
  }
  return text;
}

// How the job's owner stands among those who want slots, and what is kept for the job.
void explain_share(const View& view, const core::Job& job, Millis now, Explanation& out) {
  const core::cluster::ShowShares& shares = view.shares();
  if (shares.kept_for == job.id())
    out.details.push_back(
        "places are being kept for it; all of them are expected to be free in about " +
        span_text(std::max<Millis>(0, shares.expected_ms - now) + kRoundUpMs));
  else
    explain_line(shares, job, now, out);
  const auto owner = core::owner_uid(job.object().meta.annotations);
  const std::string queue = core::queue_of(core::placed_object(job)->meta.annotations);
  const core::Slots::Standing* own = nullptr;
  std::set<core::UserId> users;
  std::set<std::string> queues;
  for (const core::Slots::Standing& one : shares.standings) {
    if (one.queue.empty()) continue;
    if (owner == one.user && one.queue == queue) own = &one;
    users.insert(one.user);
    queues.insert(one.queue);
  }
  if (!own || users.size() < 2) return;
  out.details.push_back(standing_text(shares.standings, *own, users.size(), queues.size() > 1));
  std::set<std::string> first;
  for (const core::Slots::Standing& one : shares.standings)
    if (one.waiting > 0 && !one.queue.empty() && one.queue_level < own->queue_level)
      first.insert(one.queue);
  if (first.empty()) return;
  std::string names;
  for (const std::string& name : first) names += (names.empty() ? "" : ", ") + name;
  out.details.push_back((first.size() == 1 ? "a queue that holds less for its weight goes first: "
                                           : "queues that hold less for their weights go first: ") +
                        names);
}

// What operators have set for its pods instead of what its object says.
void tell_overrides(const core::Job& job, Explanation& out) {
  if (const auto& set = job.state().overrides)
    out.details.push_back(
        core::overrides_text(*set) + " (" + core::instant_text(set->at_ms) + ")" +
        (set->overrides.priority
             ? "; the template says priority " + std::to_string(job.spec().pod.priority.value_or(0))
             : ""));
}

// " (gpu=a100, rack=7)": the nodes that a queue selects.
std::string labels_text(const Json& queue_spec) {
  std::string text;
  const Json selector = queue_spec.value("nodeSelector", Json::object());
  for (const auto& [label, value] : selector.items())
    text += (text.empty() ? " (" : ", ") + label + "=" +
            (value.is_string() ? value.get<std::string>() : value.dump());
  return text.empty() ? "" : text + ")";
}

// Why the job's queue lets nothing of it start.
std::string queue_wait_text(const View& view, const core::Job& job,
                            const core::Slots::QueueWait& wait) {
  using Why = core::Slots::QueueWait::Why;
  const std::string queue = "queue " + wait.queue;
  const auto spec = [&] {
    const auto stored = view.kept(core::KeptKind::queue, "", wait.queue);
    const Json object = stored ? Json::parse(stored->kept->kept->json) : Json::object();
    return object.value("spec", Json::object());
  };
  switch (wait.why) {
    case Why::no_queue:
      return queue + " does not exist (muster get queues)";
    case Why::not_open:
      return queue + " is not open to its owner; an operator may change that";
    case Why::time_limit: {
      const auto limit_s = core::placed_object(job)->spec.pod.active_deadline_s;
      return queue + " allows " +
             spec().value(Json::json_pointer("/timeLimit/max"), "only shorter time limits") +
             ", and the job's pods " +
             (limit_s ? "may run " + core::duration_text(*limit_s * 1000) : "have no time limit") +
             "; an operator may raise its limit or set the job's (muster set job/" +
             job.object().meta.name + " --time)";
    }
    case Why::no_node:
      return "no node has the labels of " + queue + labels_text(spec());
    case Why::limit:
      break;
  }
  if (!wait.shortage) return queue + " is at a limit";
  using core::limit_text;
  const auto& [resource, most, held, wanted, kept, never] = *wait.shortage;
  if (never > 0)
    return "it can never start: it takes at least " + limit_text(resource, never) + " " + resource +
           " at once, and " + queue + " allows " + (wait.per_user ? "each user " : "") +
           limit_text(resource, most) + "; an operator may raise the limit";
  const std::string of_others =
      kept > 0 ? " (" + limit_text(resource, kept) + " kept for a job that goes first)" : "";
  if (resource == "jobs")
    return (wait.per_user ? "its owner already has pods of " : "there are already pods of ") +
           count(static_cast<uint64_t>(held), "job") + of_others + " in " + queue +
           ", which allows " + limit_text(resource, most) + "; an operator may raise the limit";
  return (wait.per_user ? "its owner's pods in " : "the pods in ") + queue + " have " +
         limit_text(resource, held) + of_others + " of at most " + limit_text(resource, most) +
         " " + resource + ", and the job wants " + limit_text(resource, wanted) +
         " more; an operator may raise the limit";
}

// "1 of 4 nodes fits (2 full, 1 cordoned)"
std::string fit_text(const Misfits& found) {
  std::string list;
  for (const auto& [brief, n] : found.briefs)
    list += (list.empty() ? " (" : ", ") + std::to_string(n) + " " + brief;
  return std::to_string(found.fit) + " of " + std::to_string(found.all) +
         (found.fit == 1 ? " nodes fits" : " nodes fit") + list + (list.empty() ? "" : ")");
}

// The pods without a node that have more than the template says.
void tell_raised(const View& view, const core::Job& job, Millis now, Explanation& out) {
  if (job.raised().empty() || job.on_hold()) return;
  const Taken taken = taken_now(view);
  for (const auto& [steps, pods] : job.raised()) {
    const Misfits found = misfits(view, demand_now(job, steps, now), taken, now);
    std::string text = count_of(pods.size(), "pod") + " waiting for a slot with " +
                       has_text(job, steps) + ": " + fit_text(found);
    for (const auto& [reason, nodes] : found.reasons)
      if (reason.first == "too small")
        text += "; " + reason_text(reason.first, reason.second, nodes);
    out.details.push_back(std::move(text));
  }
}

// "2 nodes: cordoned by olga: replace DIMM (c1, c2)"
std::string nodes_text(const std::pair<std::string, std::string>& reason,
                       const Misfits::Nodes& nodes) {
  constexpr size_t kNamesMax = 5;
  std::string line = count(nodes.names.size(), "node") + ": " +
                     reason_text(reason.first, reason.second, nodes) + " (";
  for (size_t i = 0; i < nodes.names.size() && i < kNamesMax; ++i)
    line += (i ? ", " : "") + nodes.names[i];
  return line + (nodes.names.size() > kNamesMax ? ", …)" : ")");
}

// Why a gang could not start on the nodes that there are, were these empty; empty: it could.
std::string too_large_text(const View& view, const core::Demand& demand, uint64_t wanted) {
  if (!demand.gang || wanted < 2) return "";
  const auto [places, slots] = places_of(view, demand);
  if (places >= wanted) return "";
  return "a gang of " + std::to_string(wanted) + " needs " + count(wanted, "slot") +
         " at once, and the nodes that it may use have " + std::to_string(slots) + " in all" +
         (places < slots ? ", " + std::to_string(places) + " of which have what its pods request"
                         : "");
}

// Explains why a pod without a node does not get one.
void explain_place(const View& view, const core::Job& job, core::Steps steps,
                   uint64_t user_pods_max, Millis now, Explanation& out) {
  tell_overrides(job, out);
  if (steps.any()) out.details.push_back("it has " + has_text(job, steps));
  const auto owner = core::owner_uid(job.object().meta.annotations);
  const Taken taken = taken_now(view);
  const auto of = owner ? taken.pods_of.find(*owner) : taken.pods_of.end();
  const uint64_t of_owner = of == taken.pods_of.end() ? 0 : of->second;
  const core::Demand demand = demand_now(job, steps, now);
  const uint64_t wanted = demand.gang ? job.pending().size() : 1;
  if (owner && user_pods_max > 0 && of_owner + wanted > user_pods_max) {
    out.summary += ": its owner has " + count(of_owner, "pod") +
                   " on nodes, and --user-pods-max is " + std::to_string(user_pods_max);
    if (demand.gang)
      out.details.push_back("a gang of " + std::to_string(wanted) +
                            ": its pods start together or not at all");
    return;
  }
  if (const auto* wait = view.queue_wait(job.id())) {
    out.summary += ": " + queue_wait_text(view, job, *wait);
    return;
  }
  const Misfits found = misfits(view, demand, taken, now);
  const uint64_t all = found.all;
  const std::string too_large = too_large_text(view, demand, wanted);
  if (!too_large.empty()) {
    out.summary += ": " + too_large;
  } else if (all == 0 && !demand.node_name.empty()) {
    out.summary += ": spec.nodeName is " + demand.node_name + ", and there is no such node";
  } else if (all == 0) {
    out.summary += ": there are no nodes (start one with `muster agent`)";
  } else {
    out.summary += ": " + fit_text(found);
  }
  for (const auto& [reason, nodes] : found.reasons)
    if (too_large.empty() || !reason.first.empty())  // else it fits one pod
      out.details.push_back(nodes_text(reason, nodes));
  if (!demand.node_name.empty() && all > 0)
    out.details.push_back("spec.nodeName is " + demand.node_name +
                          ": its pods run on no other node");
  if (demand.gang) out.details.push_back("a gang: its pods start together or not at all");
  if (!too_large.empty()) return;
  explain_share(view, job, now, out);
}

// Who or what keeps the whole job from starting pods. False: nobody and nothing.
bool explain_hold(const core::Job& job, Millis now, Explanation& out) {
  const std::string begins = begins_text(job, now);
  if (const auto begin = job.begins_after(now)) out.until_ms = *begin;
  if (const auto& hold = job.state().hold) {
    out.state = "Held";
    out.summary = core::hold_text(*hold) + " (since " + core::instant_text(hold->at_ms) +
                  "; muster release job/" + job.object().meta.name + ")";
    const uint64_t on_nodes = job.active() - job.pending().size();
    if (on_nodes > 0)
      out.details.push_back(count(on_nodes, "pod") +
                            (on_nodes == 1 ? " keeps running" : " keep running"));
    if (!begins.empty()) out.details.push_back("the job " + begins);
    return true;
  }
  if (job.held()) {
    out.state = "Held";
    out.summary = "the job is waiting for " + core::awaited_text(job) + " (" +
                  std::string(core::kAfterKey) + ")";
    if (!begins.empty()) out.details.push_back("the job " + begins);
    return true;
  }
  if (begins.empty()) return false;
  out.state = "Held";
  out.summary = "the job " + begins + ", in " +
                span_text(*job.begins_after(now) - now + kRoundUpMs) + " (" +
                std::string(core::kBeginKey) + ")";
  return true;
}

// Explains what applies to all indexes. True if nothing of this job can start.
bool explain_whole(const core::Job& job, Millis now, const core::Knobs& knobs, Explanation& out) {
  const core::JobState& s = job.state();
  if (const core::Condition* damage = job.condition(core::ConditionType::damaged)) {
    out.state = "Damaged";
    out.summary = "the job is quarantined because its state cannot be read: " + damage->message;
    return true;
  }
  if (const core::Condition* end = job.terminal()) {
    out.state = end->type == core::ConditionType::complete ? "Succeeded" : "Failed";
    out.summary = "the job is " + std::string(name(end->type)) + ": " +
                  std::string(name(end->reason)) + ": " + end->message;
    if (const auto& by = s.cancelled) out.summary += " (" + core::instant_text(by->at_ms) + ")";
    return true;
  }
  if (s.deleted_at) {
    out.state = "Deleted";
    std::string held_by;
    for (const std::string& name : job.object().meta.finalizers)
      held_by += (held_by.empty() ? "" : ", ") + name;
    if (s.orphaned || s.deletion_waits)
      out.summary = "the job is being deleted but has finalizers (" + held_by +
                    "); its pods keep running" + (s.orphaned ? "" : " until they are removed");
    else
      out.summary =
          "the job is being deleted; waiting for " + count(s.open.size(), "pod") + " to end";
    return true;
  }
  if (const auto& by = job.spec().managed_by; by && *by != core::kReservedManager) {
    out.state = "External";
    out.summary = "spec.managedBy is " + *by + ", so muster only stores the job";
    return true;
  }
  const core::Condition* decided = job.condition(core::ConditionType::failure_target);
  if (!decided) decided = job.condition(core::ConditionType::success_criteria_met);
  if (decided) {
    out.state = "Stopping";
    out.summary = "the job's outcome is decided (" + std::string(name(decided->reason)) + ": " +
                  decided->message + "); waiting for " + count(s.open.size(), "pod") + " to end";
    return true;
  }
  if (job.spec().suspend.value_or(false)) {
    out.state = "Suspended";
    out.summary =
        "the job is suspended; resume it with: muster resume job/" + job.object().meta.name;
    return true;
  }
  if (explain_hold(job, now, out)) return true;
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
  if (s.broken && s.broken->whole && !s.open.empty()) {
    out.state = "Stopping";
    out.summary = "its gang restarts, because " + s.broken->why + "; " +
                  count_of(s.open.size(), "pod") + " still ending";
    return true;
  }
  if (Millis due = core::job_due(job, knobs); due > now) {
    out.state = "Backoff";
    out.until_ms = due;
    out.summary = "the next pods start in " + span_text(due - now + kRoundUpMs) + ", after " +
                  count(s.backoff_failures, "failure") + " in a row (" + core::instant_text(due) +
                  ")";
    return true;
  }
  return false;
}

// What the containers of a running pod wait for; empty: they all run, or nothing is known.
std::string container_text(const core::Job& job, const core::Pod& pod) {
  const core::PodTemplate& pod_template = job.spec().pod;
  const size_t inits = pod_template.init_containers.size();
  for (size_t i = 0; i < pod.containers.size(); ++i) {
    const core::ContainerNow& now = pod.containers[i];
    const auto& list = i < inits ? pod_template.init_containers : pod_template.containers;
    const size_t at = i < inits ? i : i - inits;
    if (at >= list.size()) break;
    const std::string name = (i < inits ? "init container " : "container ") + list[at].name;
    if (now.phase == core::ContainerPhase::waiting && now.last)
      return name + " waits to be restarted, after " +
             exit_text(now.last->exit_code, now.last->signal) + " (" +
             count(static_cast<uint64_t>(now.restarts), "restart") + " so far)";
    if (i < inits && now.phase == core::ContainerPhase::running && !list[at].sidecar)
      return name + " is running, " + std::to_string(i + 1) + " of " + std::to_string(inits);
  }
  return "";
}

std::string running_text(const View& view, const core::Job& job, const core::Pod& pod, Millis now) {
  std::string text = attempt_name(pod.key);
  const std::string node = "node " + view.node_name(pod.node);
  if (pod.stopping_at)
    return text + " has been terminating on " + node + " for " + span_text(now - *pod.stopping_at);
  if (const std::string waits = container_text(job, pod); !waits.empty())
    return text + " is on " + node + "; " + waits;
  const std::string has = has_text(job, pod.steps);
  if (pod.started_at)
    return text + " has been running on " + node + " for " + span_text(now - *pod.started_at) +
           (has.empty() ? "" : ", with " + has);
  return text + " is starting on " + node;
}

// Of the indexes of a job that have no pods and wait for their retry, how many, and until when.
struct Delayed {
  uint64_t indexes = 0;
  Millis next = 0;
  bool counted = true;  // the ends of all of them count as failures
};

std::string backoff_text(const Delayed& delayed, Millis now) {
  const uint64_t n = delayed.indexes;
  return (n == 1 ? "1 index is" : std::to_string(n) + " indexes are") + " backing off after " +
         (delayed.counted ? "a failure"
          : n == 1        ? "an end that does not count"
                          : "failures or ends that do not count") +
         "; the next retry is in " + span_text(delayed.next - now + kRoundUpMs);
}

// The indexes that wait for those of other jobs; empty: none does.
std::string awaiting_text(const core::Job& job) {
  const core::IndexSet waiting = core::awaiting_indexes(job);
  if (waiting.empty()) return "";
  return (waiting.size() == 1 ? "1 index is" : std::to_string(waiting.size()) + " indexes are") +
         " waiting for " + core::awaited_text(job) + " (" + std::string(core::kAfterKey) +
         "): " + waiting.text();
}

// The newest open pod of an index; an active one if there is one.
const core::Pod* open_pod(const core::JobState& s, uint32_t index) {
  const core::Pod* open = nullptr;
  for (auto it = s.open.lower_bound({index, 0}); it != s.open.end() && it->first.index == index;
       ++it)
    if (!open || it->second.active()) open = &it->second;
  return open;
}

// "olga cancelled the index (2026-11-28T08:00:00.000Z)".
std::string cancelled_text(const core::JobState& s, uint32_t index) {
  for (const core::IndexesCancelled& one : s.cancellations)
    if (one.indexes.contains(index))
      return one.by + " cancelled the index (" + core::instant_text(one.at_ms) + ")";
  return "the index was cancelled";
}

// Pods of this job that are bound to a node and wait for a slot there, because it runs as many pods
// as it has slots (prefetch).
std::set<PodKey> parked_pods(const View& view, const core::Job& job) {
  std::map<NodeId, std::vector<PodKey>> waiting;
  for (const auto& [key, pod] : job.state().open)
    if (pod.bound() && pod.active() && !pod.started_at) waiting[pod.node].push_back(key);
  std::set<PodKey> parked;
  if (waiting.empty()) return parked;
  std::map<NodeId, uint32_t> running;
  view.jobs().each_active([&](const core::Job& one) {
    for (const auto& [key, pod] : one.state().open)
      if (pod.bound() && pod.started_at) ++running[pod.node];
  });
  for (const auto& [node, keys] : waiting) {
    const core::NodeInfo* const info = view.node_info(node);
    if (info == nullptr) continue;
    const uint32_t free = info->slots - std::min(info->slots, running[node]);
    if (keys.size() > free) parked.insert(keys.begin() + free, keys.end());
  }
  return parked;
}

// Nodes that could not start the job's pods, which are tried elsewhere (ADR 55).
void tell_failed_starts(const View& view, const core::Job& job, Explanation& out) {
  for (const auto& [node, trouble] : job.state().start_trouble)
    out.details.push_back("pods could not be started on node " + view.node_name(node) + " (" +
                          std::string(name(core::ConditionReason::start_failure)) + ": " +
                          trouble.why + "); other nodes are tried");
}

// "the index failed 2 times, more than spec.backoffLimitPerIndex (1) allows".
std::string per_index_text(const core::Job& job, const std::optional<core::Pod>& last) {
  std::string text = "the index failed ";
  if (last && last->counted == core::Counted::failed)
    text += count(static_cast<uint64_t>(last->failures) + 1, "time") + ", ";
  return text + "more than spec.backoffLimitPerIndex (" +
         std::to_string(job.spec().backoff_limit_per_index.value_or(0)) + ") allows";
}

void tell_runs(const core::Job& job, const core::Pod& pod, Explanation& out) {
  const core::JobMeta& meta = job.object().meta;
  if (const std::string runs = runs_text(job.spec().pod, pod); !runs.empty())
    out.details.push_back((job.indexed()
                               ? attempt_name(pod.key)
                               : "pod " + core::pod_name(meta.name, meta.uid, false, pod.key)) +
                          " was restarted in place after: " + runs);
}

void tell_end(const View& view, const core::Job& job, const core::Pod& pod, Millis now,
              Explanation& out) {
  const std::string counted = counted_text(job, pod), had = has_text(job, pod.steps);
  out.details.push_back(attempt_name(pod.key) + " on node " + view.node_name(pod.node) +
                        (had.empty() ? "" : ", with " + had + ",") + " ended " +
                        span_text(std::max<Millis>(0, now - pod.end.ended_at)) +
                        " ago: " + end_text(pod) + (counted == out.summary ? "" : "; " + counted));
  tell_runs(job, pod, out);
}

// Of the pod that was restarted most often.
void tell_most_runs(const core::Job& job, Explanation& out) {
  const core::Pod* most = nullptr;
  for (const auto& [key, pod] : job.state().open)
    if (!pod.runs.empty() && (most == nullptr || pod.restarts > most->restarts)) most = &pod;
  if (most != nullptr) tell_runs(job, *most, out);
}

// Reports missing configuration of the job's bound pods, or only of this index's, trouble on their
// nodes, and nodes of an MPI job that do not reach each other: then any of its indexes may hang.
void tell_trouble(const View& view, const core::Job& job, std::optional<uint32_t> index,
                  Explanation& out) {
  std::set<NodeId> seen;
  bool configs = !core::config_needs(job.spec().pod).empty();
  for (const auto& [key, pod] : job.state().open) {
    if (!pod.bound() || (index && key.index != *index)) continue;
    if (std::string missing = configs ? missing_config(view, job, pod) : ""; !missing.empty()) {
      out.details.push_back("pods are waiting for their configuration: " + missing);
      configs = false;
    }
    if (!seen.insert(pod.node).second) continue;
    const auto shown = view.node(view.node_name(pod.node));
    if (!shown || shown->node->id != pod.node || core::is_ready(*shown->node)) continue;
    const ReadyCondition why = ready_condition(*shown->node);
    out.details.push_back("node " + shown->node->name + " is not ready: " + why.reason + ": " +
                          why.message);
  }
  if (const auto pairs = view.unreached().find(job.id()); pairs != view.unreached().end())
    for (std::string& line : core::reach_lines(pairs->second))
      out.details.push_back(std::move(line));
}

void tell_lost_indexes(const core::JobState& s, Explanation& out) {
  if (const auto failed = s.failed_indexes.without(s.cancelled_indexes); !failed.empty())
    out.details.push_back("failed indexes: " + failed.text());
  if (!s.cancelled_indexes.empty())
    out.details.push_back("cancelled indexes: " + s.cancelled_indexes.text());
}

Delayed delayed_indexes(const core::Job& job, Millis now, const core::Knobs& knobs) {
  Delayed delayed;
  const auto wait_for = [&](uint32_t index) {
    const Millis due = core::index_due(job, knobs, index);
    if (due <= now) return;
    ++delayed.indexes;
    delayed.next = delayed.next == 0 ? due : std::min(delayed.next, due);
  };
  for (const auto& [index, pod] : job.state().deferred) {
    const uint64_t before = delayed.indexes;
    wait_for(index);
    if (delayed.indexes > before && pod.counts_when_replaced() != core::Counted::failed)
      delayed.counted = false;
  }
  for (const auto& [index, counts] : job.state().inherited) wait_for(index);
  return delayed;
}

// Explains an index that has completed or failed, or is cancelled; false: it is none of these.
bool explain_settled(const View& view, const core::Job& job, uint32_t index,
                     const std::optional<core::Pod>& last, Millis now, Explanation& out) {
  const core::JobState& s = job.state();
  if (s.completed.contains(index)) {
    out.state = "Succeeded";
    out.summary = "the index has succeeded";
    return true;
  }
  if (s.cancelled_indexes.contains(index)) {
    const core::Pod* const open = open_pod(s, index);
    out.state = open ? "Stopping" : "Failed";
    out.summary = cancelled_text(s, index);
    if (open) out.details.push_back(running_text(view, job, *open, now));
    return true;
  }
  if (!s.failed_indexes.contains(index)) return false;
  out.state = "Failed";
  const std::string why = last ? "" : core::never_runs_text(job, index);
  out.summary = !why.empty() ? "the index never ran, because " + why
                : last && last->action == core::FailureAction::fail_index
                    ? "a FailIndex rule of the pod failure policy matched"
                    : per_index_text(job, last);
  return true;
}

}  // namespace

Explanation why_job(const View& view, const core::Job& job, Millis now,
                    const core::Knobs& coordinator, uint64_t user_pods_max) {
  const core::Knobs knobs = core::knobs_of(coordinator, job.object());
  const core::JobState& s = job.state();
  Explanation out;
  const bool whole = explain_whole(job, now, knobs, out);
  const size_t pending = job.pending().size();
  const std::string awaiting = whole ? "" : awaiting_text(job);
  const Delayed delayed = delayed_indexes(job, now, knobs);
  if (!whole) out.next_retry_ms = delayed.next;
  const auto running = static_cast<uint64_t>(std::ranges::count_if(
      s.open, [](const auto& one) { return one.second.active() && one.second.started_at; }));
  // Bound pods that their node has not started: they wait for a slot there, or it is slow, starts
  // nothing, or has not answered.
  const uint64_t parked = whole ? 0 : parked_pods(view, job).size();
  const uint64_t starting = job.active() - pending - running - parked;
  const std::string not_started =
      count_of(starting, "pod") + " bound to a node, but not started yet";
  if (!whole && running > 0) {
    out.state = "Running";
    out.summary = std::to_string(running) + " of at most " +
                  count_of(static_cast<uint64_t>(s.parallelism), "pod") + " running";
    if (starting > 0) out.details.push_back(not_started);
    if (!job.indexed()) tell_most_runs(job, out);
  } else if (!whole && starting > 0) {
    out.state = "Starting";
    out.summary = not_started;
  } else if (parked > 0) {
    out.state = "Pending";
    out.summary = parked_text(parked);
    if (pending > 0) out.details.push_back(count_of(pending, "pod") + " waiting for a slot");
  } else if (!whole && pending > 0) {
    out.state = "Pending";
    out.summary = count_of(pending, "pod") + " waiting for a slot";
    const bool all_raised = job.slots_wanted().wanted == 0 && !job.raised().empty();
    const core::Steps steps = all_raised ? job.raised().begin()->first : core::Steps{};
    explain_place(view, job, steps, user_pods_max, now, out);
    if (!all_raised || job.raised().size() > 1) tell_raised(view, job, now, out);
  } else if (!whole && delayed.indexes > 0) {
    out.state = "Backoff";
    out.until_ms = delayed.next;
    out.summary = backoff_text(delayed, now);
  } else if (!awaiting.empty()) {
    out.state = "Held";
    out.summary = awaiting;
  } else if (!whole) {
    out.state = "Waiting";
    out.summary = s.parallelism == 0 ? "spec.parallelism is 0: no pod may run"
                                     : "its pods are about to be created";
  }
  if ((out.state == "Running" || out.state == "Starting") && parked > 0)
    out.details.push_back(parked_text(parked));
  if ((out.state == "Running" || out.state == "Starting") && pending > 0) {
    const auto* const wait = view.queue_wait(job.id());
    const Misfits found =
        wait ? Misfits{} : misfits(view, demand_now(job, {}, now), taken_now(view), now);
    out.details.push_back(count_of(pending, "pod") + " waiting for a slot: " +
                          (wait ? queue_wait_text(view, job, *wait) : fit_text(found)));
    for (const auto& [reason, nodes] : found.reasons)
      if (!reason.first.empty() && reason.first != "full")
        out.details.push_back(nodes_text(reason, nodes));
    if (!wait) explain_share(view, job, now, out);
    tell_raised(view, job, now, out);
  }
  if (out.state != "Pending") tell_overrides(job, out);
  if (!whole) tell_failed_starts(view, job, out);
  tell_trouble(view, job, std::nullopt, out);
  if (delayed.indexes > 0 && out.state != "Backoff")
    out.details.push_back(backoff_text(delayed, now));
  if (!awaiting.empty() && out.state != "Held") out.details.push_back(awaiting);
  tell_lost_indexes(s, out);
  for (std::string& one : repairs_needed(view, job, std::nullopt))
    out.details.push_back(std::move(one));
  return out;
}

Explanation why_index(const View& view, const core::Job& job, uint32_t index,
                      const std::optional<core::Pod>& last, Millis now,
                      const core::Knobs& coordinator, uint64_t user_pods_max) {
  const core::Knobs knobs = core::knobs_of(coordinator, job.object());
  const core::JobState& s = job.state();
  Explanation out;
  auto tell_last = [&] {
    if (last) tell_end(view, job, *last, now, out);
  };
  if (explain_settled(view, job, index, last, now, out)) {
    tell_last();
    if (!last && out.state == "Failed")
      for (std::string& one : repairs_needed(view, job, index))
        out.details.push_back(std::move(one));
    return out;
  }
  const core::Pod* const open = open_pod(s, index);
  if (open && parked_pods(view, job).contains(open->key)) {
    out.state = "Pending";
    out.summary = attempt_name(open->key) + " is waiting on node " + view.node_name(open->node) +
                  " for a slot there";
    tell_trouble(view, job, index, out);
    tell_last();
    return out;
  }
  if (open && open->bound()) {
    out.state = open->terminating() ? "Stopping" : "Running";
    out.summary = running_text(view, job, *open, now);
    tell_runs(job, *open, out);
    tell_trouble(view, job, index, out);
    tell_last();
    return out;
  }
  const bool whole = explain_whole(job, now, knobs, out);
  if (const std::string by = core::awaited_by(job, index);
      !by.empty() && (!whole || out.state == "Held")) {
    if (whole) out.details.push_back(out.summary);
    out.state = "Held";
    out.summary = "the index is waiting for index " + std::to_string(index) + " of job " + by +
                  " to succeed (" + std::string(core::kAfterKey) + ")";
    return out;
  }
  if (whole) {
    if (job.terminal()) out.summary = "the index never succeeded, and " + out.summary;
    tell_last();
    return out;
  }
  if (open) {
    out.state = "Pending";
    out.summary = attempt_name(open->key) + " is waiting for a slot";
    explain_place(view, job, open->steps, user_pods_max, now, out);
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
                            "; " + counted_text(job, deferred->second));
    return out;
  }
  out.state = "Waiting";
  out.summary = s.parallelism == 0 ? "spec.parallelism is 0: no pod may run"
                                   : "it is waiting for its turn: " + std::to_string(job.active()) +
                                         " of at most " + std::to_string(s.parallelism) +
                                         " pods are active, and lower indexes go first";
  tell_last();
  return out;
}

}  // namespace muster::api
