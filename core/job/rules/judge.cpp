// How an end counts (job-semantics 2.2, 5.5, 11.2, 11.3): judge() applies the failure policy
// (failure_policy.cpp) and the limit per index. The limit per job is in finish.cpp.
//
// An end because of a limit for which the job has a further step (muster.dev/retry-memory, -time)
// is ignored whatever the policy says, and the next pod of the index gets more (ADR 76).
//
// Each pod is judged once: here, before its end (deletion.cpp; finish.cpp, when its job is
// decided), or later (deferred: pods.cpp, when its replacement is created).
#include "core/job/rules/failure_policy.hpp"
#include "core/job/rules/sync.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/rules/retry_steps.hpp"
#include "core/spec/values/duration.hpp"
#include "core/spec/values/inputs.hpp"

#include <algorithm>
#include <string>

namespace muster::core {

namespace {

struct Verdict {
  Counted counted = Counted::not_yet;
  bool fails_index = false;
  FailureAction action = FailureAction::none;
  Counted if_not_deferred = Counted::failed;  // when counted is not_yet
  bool spared = false;                        // a failure that counts nowhere: its gang broke
  bool capped = false;                        // PolicyMatch::capped
  Steps raised{};                             // PodsEnded::One::raised
};

PolicyMatch policy_verdict(const Sync& sync, const Pod& pod, const PodEnd& end) {
  if (!sync.spec().pod_failure_policy || !sync.knobs.gates.pod_failure_policy) return {};
  Pod ended = pod;
  ended.ended = true;
  ended.end = end;
  return match_failure(sync.job, ended, sync.knobs.gates);
}

// Whether each index runs a program of its own: one that its input names.
bool input_names_program(const JobSpec& spec) {
  const std::string reference = "$(" + std::string(kInputVariable);
  return std::ranges::any_of(spec.pod.containers, [&](const Container& one) {
    const auto& words = one.command.empty() ? one.args : one.command;
    return !words.empty() && words.front().find(reference) != std::string::npos;
  });
}

// If the job's annotation says so, a failed start fails the job: a command that cannot be started
// now could not be started an hour later either, nor for another index.
bool start_failure_ends_job(const Sync& sync, const PodEnd& end) {
  return end.cause == EndCause::start_failed &&
         start_failure_fails_job(sync.job.object().meta.annotations) &&
         !input_names_program(sync.spec());
}

// "node a", "nodes a, b and 3 more".
std::string nodes_text(const Sync& sync, const std::vector<NodeId>& nodes) {
  constexpr size_t kNamed = 3;
  const size_t named = nodes.size() > kNamed + 1 ? kNamed : nodes.size();
  std::string text = nodes.size() == 1 ? "node " : "nodes ";
  for (size_t i = 0; i < named; ++i) {
    const auto name = sync.hearing.names.find(nodes[i]);
    text += i == 0 ? "" : i + 1 == nodes.size() ? " and " : ", ";
    text += name == sync.hearing.names.end() ? "n" + std::to_string(nodes[i]) : name->second;
  }
  if (named < nodes.size()) text += " and " + std::to_string(nodes.size() - named) + " more";
  return text;
}

// With what most nodes said, and these; of several such reasons, the one of `node`.
void fail_by_start(Sync& sync, NodeId node, const std::string& why, const std::string& more = "") {
  std::map<NodeId, std::string> said;
  for (const auto& [id, trouble] : sync.state().start_trouble) said[id] = trouble.why;
  for (const auto& [id, message] : sync.failed_starts) said[id] = message;
  said[node] = why;
  std::map<std::string, std::vector<NodeId>> by_reason;
  for (const auto& [id, message] : said) by_reason[message].push_back(id);
  const std::string* most = &why;  // of equals, the first
  for (const auto& [message, nodes] : by_reason)
    if (nodes.size() > by_reason.at(*most).size()) most = &message;
  sync.fail_job =
      "The command cannot be started: " + (most->empty() ? "its node gave no reason" : *most) +
      " (" + nodes_text(sync, by_reason.at(*most)) + more + ")";
  sync.fail_job_reason = ConditionReason::start_failure;
}

// Says in the end itself why a disruption counts this time.
void explain_cap(const Pod& pod, PodEnd& end) {
  const std::string key(kDisruptionsMaxKey);
  const std::string text =
      pod.disruptions == 0 ? "it counts as a failure (" + key + ": 0)"
                           : "it counts as a failure, because " + std::to_string(pod.disruptions) +
                                 (pod.disruptions == 1 ? " disruption of this index has"
                                                       : " disruptions of this index have") +
                                 " been ignored (" + key + ")";
  end.message += (end.message.empty() ? "" : "; ") + text;
}

// Whether this pod broke its gang. Such a pod is not deferred: the state passes on its counts.
bool broke_gang(const JobState& s, const Pod& pod) {
  return s.broken && s.broken->by == pod.key;
}

Verdict judge(Sync& sync, const Pod& pod, const PodEnd& end, const IndexSet& just_succeeded) {
  const Job& job = sync.job;
  const JobState& s = job.state();
  uint32_t index = pod.key.index;
  if (pod.counted != Counted::not_yet) return {};  // counted before its end
  bool valid = !job.indexed() || static_cast<int64_t>(index) < job.index_count();
  if (!valid) return {Counted::released};
  if (counts_as_success(job, pod, end)) {
    bool again = job.indexed() && (s.completed.contains(index) || just_succeeded.contains(index));
    return {again ? Counted::released : Counted::succeeded};
  }
  const Steps raised = raised_steps(sync, pod, end);
  if (pod.spared)
    return {.counted = Counted::released,
            .fails_index = leader_fails(sync, pod),
            .spared = true,
            .raised = raised};
  bool returned = end.cause == EndCause::returned;
  PolicyMatch match;
  if (raised.any())
    match.action = FailureAction::ignore;
  else if (!returned)
    match = policy_verdict(sync, pod, end);
  bool ignored = match.action == FailureAction::ignore;
  Verdict counts{Counted::failed, false, match.action};
  if (ignored) counts.counted = Counted::ignored;
  if (returned) counts.counted = Counted::released;  // its replacement inherits the failure counts
  counts.if_not_deferred = counts.counted;
  counts.capped = match.capped;
  counts.raised = raised;
  if (start_failure_ends_job(sync, end)) {
    counts.action = match.action = FailureAction::fail_job;
    if (sync.fail_job.empty()) fail_by_start(sync, pod.node, end.message);
  }
  if (match.action == FailureAction::fail_job && sync.fail_job.empty())
    sync.fail_job = match.message;
  if (!sync.per_index() || job.decided()) return counts;
  if (s.completed.contains(index) || s.failed_indexes.contains(index) ||
      just_succeeded.contains(index))
    return counts;
  if (s.cancelled_indexes.contains(index)) {  // it ended before it could be ended
    counts.fails_index = true;
    return counts;
  }
  bool broke = broke_gang(s, pod), pays = !broke || !s.broken->leader_pays;
  counts.fails_index = match.action == FailureAction::fail_index ||
                       (counts.counted == Counted::failed && pays &&
                        pod.failures >= *job.spec().backoff_limit_per_index);
  // Deferred until its replacement exists.
  if (!counts.fails_index && !broke) counts.counted = Counted::not_yet;
  return counts;
}

// Whether another pod of this index is active, so that this one need not pass on its failure count.
bool replaced(const Sync& sync, PodKey pod) {
  const auto& open = sync.state().open;
  for (auto it = open.lower_bound({pod.index, 0}); it != open.end() && it->first.index == pod.index;
       ++it)
    if (it->first != pod && it->second.active()) return true;
  return false;
}

// Notes how long the pod ran.
void note_run(Sync& sync, const Pod& pod, const PodsEnded::One& one) {
  const auto started_at =
      pod.started_at || !one.start ? pod.started_at : std::optional(one.start->at);
  if (!pod.bound() || one.end.cause != EndCause::exited || !started_at) return;
  const Millis ran_ms = std::max<Millis>(0, one.end.ended_at - *started_at);
  FreeSlots& freed = sync.freed[pod.steps];
  ++freed.ran.count;
  freed.ran.total_ms += ran_ms;
  if (ran_ms >= kQuickMs) return;
  QuickEnds& ends = freed.quick[pod.node];
  ++ends.count;
  ends.ran_ms += ran_ms;
}

}  // namespace

Steps raised_steps(const Sync& sync, const Pod& pod, const PodEnd& end) {
  const bool memory = end.cause == EndCause::out_of_memory;
  if (!memory && end.cause != EndCause::deadline) return {};
  const JobState& s = sync.state();
  const uint32_t index = pod.key.index;
  if (!sync.per_index() || sync.job.decided() || pod.stopping_at || s.completed.contains(index) ||
      s.failed_indexes.contains(index) || s.cancelled_indexes.contains(index))
    return {};
  const RetrySteps all = retry_steps(sync.job.object().meta.annotations);
  Steps next = pod.steps;
  if (memory) {
    if (next.memory >= all.memory.size()) return {};
    ++next.memory;
  } else {
    // A time limit that an operator has set replaces all of the job's.
    const bool given = s.overrides && s.overrides->overrides.time_limit_s;
    if (given || next.time >= all.time_s.size()) return {};
    ++next.time;
  }
  return next;
}

FailureAction failure_action(const Sync& sync, const Pod& pod, const PodEnd& end) {
  if (raised_steps(sync, pod, end).any()) return FailureAction::ignore;
  if (start_failure_ends_job(sync, end)) return FailureAction::fail_job;
  return end.cause == EndCause::returned ? FailureAction::none
                                         : policy_verdict(sync, pod, end).action;
}

void judge_again(Sync& sync, const Pod& pod) {
  if (!sync.fail_job.empty() || pod.action != FailureAction::fail_job) return;
  if (start_failure_ends_job(sync, pod.end))
    fail_by_start(sync, pod.node, pod.end.message);
  else
    sync.fail_job = match_failure(sync.job, pod, sync.knobs.gates).message;
}

// Its pods wait, since the nodes that it avoids cannot start them, and the others have no room.
void give_up_starting(Sync& sync) {
  const JobState& s = sync.state();
  if (s.start_trouble.empty() || !sync.fail_job.empty() || sync.job.decided() ||
      sync.wants_suspended() || sync.job.on_hold() || has_started(sync.job) ||
      !start_failure_fails_job(sync.job.object().meta.annotations) ||
      input_names_program(sync.spec()))
    return;
  if (std::ranges::any_of(s.open, [](const auto& one) { return one.second.bound(); })) return;
  const auto& [node, last] = *std::ranges::max_element(
      s.start_trouble, {}, [](const auto& one) { return one.second.at_ms; });
  const Millis wait_ms = s.start_trouble.size() > 1 ? kMoreTryMs : kOthersTryMs;
  if (sync.now < last.at_ms + wait_ms) return sync.wake(last.at_ms + wait_ms);
  fail_by_start(sync, node, last.why,
                "; no other node had room to try within " + duration_text(wait_ms));
}

void judge_ends(Sync& sync) {
  if (sync.ends.empty()) return;
  break_gang_by_ends(sync);
  PodsEnded record{sync.now, std::move(sync.ends), 0, 0};
  sync.ends.clear();
  IndexSet just_succeeded, just_deferred;
  for (auto& one : record.ends) {
    const Pod& pod = sync.state().open.at(one.pod);
    Verdict verdict = judge(sync, pod, one.end, just_succeeded);
    if (verdict.counted == Counted::succeeded && sync.job.indexed())
      just_succeeded.insert(one.pod.index);
    sync.new_successes = sync.new_successes || verdict.counted == Counted::succeeded;
    if (verdict.counted == Counted::not_yet && pod.counted == Counted::not_yet) {
      // At most one pod per index is deferred, and none if the index has another active pod.
      if (replaced(sync, one.pod) || sync.state().deferred.contains(one.pod.index) ||
          just_deferred.contains(one.pod.index))
        verdict.counted = verdict.if_not_deferred;
      else
        just_deferred.insert(one.pod.index);
    }
    if (verdict.spared) blame(sync, pod, one.end);
    if (verdict.capped) explain_cap(pod, one.end);
    one.counted = verdict.counted;
    one.fails_index = verdict.fails_index;
    one.action = verdict.action;
    one.raised = verdict.raised;
    if (pod.bound()) ++sync.freed[pod.steps].slots[pod.node];
    note_run(sync, pod, one);
    sync.closed.push_back(one.pod);
  }
  std::tie(record.backoff_failures, record.backoff_last_ms) = next_backoff(sync.job, record.ends);
  sync.emit(std::move(record));
}

}  // namespace muster::core
