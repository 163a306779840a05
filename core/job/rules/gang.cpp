// What happens to a gang when one of its pods fails (ADR 32), in MPI jobs (muster.dev/mpi), whose
// index 0 leads the others, and in jobs with muster.dev/restart: gang.
//
// One failure breaks the gang: every other open pod is then spared, so its end counts nowhere
// unless it succeeds. The whole gang, or only its leader, is ended and created again, which mends
// it. A broken gang does not break again, so only one failure is charged, whatever else ends
// because of it.
//
// A pod of a gang is never deferred: its counts are passed on in the state
// (JobState::inherited).
#include "core/job/facts/pod_conditions.hpp"
#include "core/job/rules/sync.hpp"

#include <algorithm>
#include <tuple>

namespace muster::core {

namespace {

constexpr uint32_t kLeader = 0;

// A pod that may have broken its gang, and how it ended; a pod that was deleted may still be open.
struct Suspect {
  const Pod* pod = nullptr;
  const PodEnd* end = nullptr;
  FailureAction action = FailureAction::none;
  bool raises = false;  // the next pods have more memory or time (raised_steps)

  bool charged() const {
    return action != FailureAction::ignore && !(end && end->cause == EndCause::returned);
  }
};

// The pod of index 0 that leads the others, unless it has been judged.
const Pod* leader_of(const Job& job) {
  const auto& open = job.state().open;
  for (auto it = open.lower_bound({kLeader, 0}); it != open.end() && it->first.index == kLeader;
       ++it)
    if (it->second.bound() && it->second.counted == Counted::not_yet) return &it->second;
  return nullptr;
}

bool in_range(const Job& job, PodKey pod) {
  return static_cast<int64_t>(pod.index) < job.index_count();
}

bool may_break(const Sync& sync) {
  const JobState& s = sync.state();
  return sync.job.gang().breaks() && !s.broken && !s.deleted_at && !sync.job.decided();
}

std::string_view cause_text(EndCause cause) {
  switch (cause) {
    case EndCause::never_started:
      return "it never started";
    case EndCause::keeper_lost:
      return "its keeper was lost";
    case EndCause::agent_stopped:
      return "its agent was shut down";
    case EndCause::deadline:
      return "it exceeded its deadline";
    case EndCause::out_of_memory:
      return "it ran out of memory";
    case EndCause::node_lost:
      return "its node was lost";
    case EndCause::node_deleted:
      return "its node was deleted";
    case EndCause::evicted:
      return "its node was short of memory";
    case EndCause::returned:
      return "its node returned it before it started";
    case EndCause::exited:
    case EndCause::killed:
    case EndCause::start_failed:
    case EndCause::fenced:
    case EndCause::worker_unreachable:
      break;
  }
  return {};
}

// "index 3 (attempt 1) failed with exit code 137: its node was lost".
std::string why(const Suspect& suspect) {
  const Pod& pod = *suspect.pod;
  std::string text = "index " + std::to_string(pod.key.index) + " (attempt " +
                     std::to_string(pod.key.attempt) + ")";
  auto because = [&text](std::string_view reason) {
    if (!reason.empty()) text += ": " + std::string(reason);
  };
  if (pod.stopping_at) {
    text += " was deleted";
    for (const PodCondition& condition : pod.conditions)
      if (condition.type == kDisruptionTarget) because(condition.message);
    return text;
  }
  const PodEnd& end = *suspect.end;
  if (end.cause == EndCause::returned) {
    text += " did not start";
  } else if (end.exit_code == 0) {
    text += " was ended";
  } else {
    text += " failed with exit code " + std::to_string(end.exit_code);
  }
  because(end.message.empty() ? cause_text(end.cause) : std::string_view(end.message));
  return text;
}

// Ranks the suspects; the lowest broke the gang. A failure that fails the job comes before all
// others, then an end for which all get more memory or time, a worker before the leader (which
// fails when it loses one), then one that fails its index, one that is charged, and the earliest.
auto rank(const GangRules& rules, const Suspect& suspect) {
  return std::make_tuple(suspect.action != FailureAction::fail_job, !suspect.raises,
                         rules.leads && suspect.pod->key.index == kLeader,
                         suspect.action != FailureAction::fail_index, !suspect.charged(),
                         suspect.end ? suspect.end->ended_at : suspect.pod->stopping_at.value_or(0),
                         suspect.pod->key);
}

void emit_break(Sync& sync, const Suspect& by, bool leader_succeeds) {
  const GangRules& rules = sync.job.gang();
  const Pod* leader = rules.leads && !leader_succeeds ? leader_of(sync.job) : nullptr;
  bool worker = rules.leads && by.pod->key.index != kLeader;
  GangBroken broken{sync.now, {by.pod->key, rules.whole, false, why(by)}};
  if (worker && rules.whole && leader && leader->active() && sync.per_index() && by.charged() &&
      by.action != FailureAction::fail_index) {
    broken.how.leader_pays = true;
  }
  sync.emit(std::move(broken));
}

}  // namespace

bool counts_as_success(const Job& job, const Pod& pod, const PodEnd& end) {
  if (!end.succeeded()) return false;
  // Workers run until they are ordered to end, so such an end is no success before the leader's.
  bool worker = job.gang().leads && pod.key.index != kLeader;
  return !worker || end.cause == EndCause::exited || job.state().completed.contains(kLeader);
}

bool may_blame_worker(const Sync& sync, const Pod& pod, const PodEnd& end) {
  const bool by_itself = end.cause == EndCause::exited || end.cause == EndCause::worker_unreachable;
  return may_break(sync) && sync.job.gang().leads && pod.key.index == kLeader && pod.active() &&
         by_itself && !counts_as_success(sync.job, pod, end);
}

bool awaits_workers(Sync& sync, const std::set<PodKey>& ending) {
  const Job& job = sync.job;
  if (!may_break(sync)) return false;
  auto is_worker = [&job](PodKey key) { return key.index != kLeader && in_range(job, key); };
  for (const PodsEnded::One& one : sync.ends) {
    const Pod& pod = sync.state().open.at(one.pod);
    if (is_worker(one.pod) && pod.counted == Counted::not_yet &&
        !counts_as_success(job, pod, one.end))
      return false;
  }
  if (std::any_of(job.unjudged().begin(), job.unjudged().end(), is_worker)) return false;
  return !sync.knows_ends(nodes_of_active(job), ending);
}

void break_gang_by_ends(Sync& sync) {
  if (!may_break(sync)) return;
  const Job& job = sync.job;
  const GangRules& rules = job.gang();
  std::set<PodKey> ending;
  std::optional<Suspect> first;
  bool leader_succeeds = false;
  for (const PodsEnded::One& one : sync.ends) {
    const Pod& pod = sync.state().open.at(one.pod);
    ending.insert(one.pod);
    if (pod.counted != Counted::not_yet || !in_range(job, one.pod)) continue;
    if (counts_as_success(job, pod, one.end)) {
      leader_succeeds = leader_succeeds || one.pod.index == kLeader;
      continue;
    }
    Suspect suspect{&pod, &one.end, failure_action(sync, pod, one.end),
                    raised_steps(sync, pod, one.end).any()};
    if (!first || rank(rules, suspect) < rank(rules, *first)) first = suspect;
  }
  if (!first) return;
  // A pod that was deleted earlier and has not ended is the cause of this failure.
  if (first->action != FailureAction::fail_job && !first->pod->stopping_at) {
    std::optional<Suspect> deleted;
    for (PodKey key : job.unjudged()) {
      if (ending.contains(key) || !in_range(job, key) || (rules.leads && key.index == kLeader))
        continue;
      const Pod& pod = sync.state().open.at(key);
      Suspect suspect{&pod, nullptr, failure_action(sync, pod, {})};
      if (!deleted || rank(rules, suspect) < rank(rules, *deleted)) deleted = suspect;
    }
    if (deleted) first = deleted;
  }
  // Workers that fail while no leader runs are replaced like any other pod.
  bool worker = first->pod->key.index != kLeader;
  if (!rules.whole && worker && (leader_succeeds || !leader_of(job))) return;
  emit_break(sync, *first, leader_succeeds);
}

void break_gang_by_deletions(Sync& sync, const std::vector<PodKey>& deleted) {
  if (!may_break(sync)) return;
  const Job& job = sync.job;
  std::optional<Suspect> first;
  for (PodKey key : deleted) {
    const Pod& pod = sync.state().open.at(key);
    if (!in_range(job, key)) continue;
    Suspect suspect{&pod, nullptr, FailureAction::none};
    if (!first || rank(job.gang(), suspect) < rank(job.gang(), *first)) first = suspect;
  }
  if (!first) return;
  bool worker = first->pod->key.index != kLeader;
  if (!job.gang().whole && worker && !leader_of(job)) return;
  emit_break(sync, *first, false);
}

bool leader_fails(const Sync& sync, const Pod& pod) {
  const JobState& s = sync.state();
  return sync.per_index() && s.broken && s.broken->leader_pays && pod.spared &&
         pod.key.index == kLeader && !s.completed.contains(kLeader) &&
         pod.failures >= *sync.spec().backoff_limit_per_index;
}

void blame(Sync& sync, const Pod& pod, const PodEnd& end) {
  Pod ended = pod;
  ended.ended = true;
  ended.end = end;
  for (const PodCondition& condition : pod_conditions(ended))
    if (condition.type == kDisruptionTarget) return;
  const GangBreak& broken = *sync.state().broken;
  bool by_worker = sync.job.gang().leads && pod.key.index == kLeader && broken.by.index != kLeader;
  DisruptionReason reason =
      by_worker ? DisruptionReason::worker_failed : DisruptionReason::gang_member_failed;
  sync.emit(PodConditionSet{
      sync.now,
      pod.key,
      {kDisruptionTarget, "True", sync.now, std::string(name(reason)), broken.why}});
}

void blame_spared(Sync& sync) {
  const JobState& s = sync.state();
  for (const auto& [key, pod] : s.open)
    if (pod.active() && pod.bound() && pod.spared && (s.broken->whole || key.index == kLeader))
      blame(sync, pod, {});
}

bool end_broken_gang(Sync& sync) {
  const JobState& s = sync.state();
  if (!s.broken) return false;
  std::vector<PodsStopping::One> waiting, bound;
  std::set<NodeId> nodes;
  for (const auto& [key, pod] : s.open) {
    if (!pod.active() || !pod.spared || !(s.broken->whole || key.index == kLeader)) continue;
    const bool fails = leader_fails(sync, pod);
    if (fails) sync.wake(sync.now);  // the job fails with it
    (pod.bound() ? bound : waiting).push_back({key, Counted::released, fails, std::nullopt});
    if (pod.bound()) nodes.insert(pod.node);
  }
  stop_pods(sync, std::move(waiting));
  if (bound.empty()) return false;
  // A pod that has ended on its own counts if it succeeded.
  if (!sync.knows_ends(nodes)) return true;
  blame_spared(sync);
  sync.out.action = SyncAction::pods_deleted;
  stop_pods(sync, std::move(bound));
  return false;
}

bool gang_still_ends(const Job& job) {
  const JobState& s = job.state();
  if (s.broken && s.broken->whole) return !s.open.empty();
  return job.gang().whole && job.terminating() > 0;
}

bool leader_waits(Sync& sync, uint32_t index) {
  const Job& job = sync.job;
  if (!job.gang().leads || index != kLeader) return false;
  const auto& open = sync.state().open;
  auto it = open.lower_bound({kLeader, 0});
  if (it != open.end() && it->first.index == kLeader) return true;
  // A worker that ended unseen before belongs to the same failure.
  return sync.state().broken && !sync.knows_ends(nodes_of_active(job));
}

}  // namespace muster::core
