// Deletion of pods by their owner, eviction, taints or preemption (job-semantics 0, 2.2, 4.5, 6.5),
// and of those of cancelled indexes (ADR 74).
//
// Outside replace-only-failed mode, such a pod fails at once, whatever its process does later; in
// that mode, it is judged by its end. With a limit per index, it is deferred like any other failure
// until its replacement exists.
#include "core/job/rules/sync.hpp"

#include <set>

namespace muster::core {

namespace {

PodCondition disruption(PodsDeletion::Why why, Millis now) {
  auto target = [now](DisruptionReason reason, const char* message) -> PodCondition {
    return {kDisruptionTarget, "True", now, std::string(name(reason)), message};
  };
  if (why == PodsDeletion::Why::eviction)
    return target(DisruptionReason::eviction_by_eviction_api, "Eviction API: evicting");
  if (why == PodsDeletion::Why::taint)
    return target(DisruptionReason::deletion_by_taint_manager,
                  "Taint manager: deleting due to NoExecute taint");
  return target(DisruptionReason::preemption_by_scheduler,
                "preempted by the scheduler to make room for a pod of higher priority");
}

// A second deletion may only shorten the grace.
bool shortens(const Sync& sync, const Pod& pod, const std::optional<Millis>& grace_ms) {
  Millis template_ms = sync.spec().pod.termination_grace_s.value_or(30) * 1000;
  return grace_ms && *grace_ms < pod.grace_ms.value_or(template_ms);
}

struct Deleter {
  Sync& sync;
  PodsStopping stopping{sync.now, {}, false, 0, 0};
  PodsRemoved removed{sync.now, {}};
  std::vector<PodKey> kill{};
  std::set<PodKey> seen{};

  bool take(PodKey key, const PodsDeletion& deletion) {
    const Pod* pod = sync.job.pod(key);
    if (!pod) return false;
    bool again = !seen.insert(key).second;
    if (again) return true;
    if (pod->ended && pod->counted != Counted::not_yet) {
      removed.pods.push_back(key);
      return true;
    }
    bool first = !pod->stopping_at;
    if (!first && (pod->ended || !shortens(sync, *pod, deletion.grace_ms))) return true;
    if (first && deletion.why != PodsDeletion::Why::owner)
      sync.emit(PodConditionSet{sync.now, key, disruption(deletion.why, sync.now)});
    stopping.pods.push_back({key, Counted::not_yet, false, deletion.grace_ms});
    if (pod->ended) return true;
    if (pod->bound()) {
      kill.push_back(key);
    } else if (first && pod->counted == Counted::not_yet) {
      PodsEnded::One end;
      end.pod = key;
      end.end = {EndCause::never_started, 137, 0, sync.now, "", {}};
      sync.ends.push_back(std::move(end));
    }
    return true;
  }
};

bool has_active(const JobState& s, uint32_t index) {
  for (auto it = s.open.lower_bound({index, 0}); it != s.open.end() && it->first.index == index;
       ++it)
    if (it->second.active()) return true;
  return false;
}

}  // namespace

void choose_victims(Sync& sync, const Preempted& preempted) {
  PodsDeletion deletion;
  deletion.why = PodsDeletion::Why::preemption;
  for (auto [node, number] : preempted.slots)
    for (PodKey key : removal_order(sync.job, number, node, preempted.steps))
      deletion.pods.push_back(key);
  if (!deletion.pods.empty()) sync.pod_deletions.push_back(std::move(deletion));
}

void leave_nodes(Sync& sync, const Tainted& tainted) {
  PodsDeletion deletion;
  deletion.why = PodsDeletion::Why::taint;
  for (const auto& [key, pod] : sync.state().open)
    if (pod.active() && pod.steps == tainted.steps &&
        std::find(tainted.nodes.begin(), tainted.nodes.end(), pod.node) != tainted.nodes.end())
      deletion.pods.push_back(key);
  if (!deletion.pods.empty()) sync.pod_deletions.push_back(std::move(deletion));
}

void delete_pods(Sync& sync) {
  if (sync.pod_deletions.empty()) return;
  Deleter deleter{sync};
  for (const PodsDeletion& deletion : sync.pod_deletions) {
    bool found = false;
    for (PodKey key : deletion.pods) found = deleter.take(key, deletion) || found;
    if (deletion.token != 0)
      sync.order(
          Answer{deletion.token, found ? Answer::Outcome::done : Answer::Outcome::not_found});
  }
  if (!deleter.removed.pods.empty()) sync.emit(std::move(deleter.removed));
  if (deleter.stopping.pods.empty()) return;
  deleter.stopping.backoff_failures = sync.state().backoff_failures;
  deleter.stopping.backoff_last_ms = sync.state().backoff_last_ms;
  sync.emit(std::move(deleter.stopping));
  kill_pods(sync, deleter.kill);
  judge_ends(sync);  // pods that were never bound
}

void judge_deleted(Sync& sync) {
  const Job& job = sync.job;
  const JobState& s = sync.state();
  if (job.unjudged().empty() || sync.spec().replace_only_failed()) return;
  PodsStopping judged{sync.now, {}, false, s.backoff_failures, s.backoff_last_ms};
  std::vector<PodKey> deleted;
  for (PodKey key : job.unjudged()) {
    const Pod& pod = s.open.at(key);
    // It may have ended before the deletion; then it counts by how it ended.
    if (!pod.bound() || sync.knows_ends({pod.node})) deleted.push_back(key);
  }
  break_gang_by_deletions(sync, deleted);
  for (PodKey key : deleted) {
    const Pod& pod = s.open.at(key);
    const bool broke = s.broken && s.broken->by == key;
    PodsStopping::One one{key, Counted::failed, false, std::nullopt};
    if (job.indexed() && static_cast<int64_t>(key.index) >= job.index_count()) {
      one.counted = Counted::released;
    } else if (pod.spared) {
      one.counted = Counted::released;
      one.fails_index = leader_fails(sync, pod);
    } else if (sync.per_index()) {
      bool settled = s.completed.contains(key.index) || s.failed_indexes.contains(key.index);
      bool pays = !broke || !s.broken->leader_pays;
      one.fails_index =
          !settled && (s.cancelled_indexes.contains(key.index) ||
                       (pays && pod.failures >= *sync.spec().backoff_limit_per_index));
      if (!settled && !one.fails_index && !broke && !has_active(s, key.index))
        continue;  // deferred
    }
    if (one.counted == Counted::failed) {
      ++judged.backoff_failures;
      judged.backoff_last_ms = std::max(judged.backoff_last_ms, *pod.stopping_at);
    }
    judged.pods.push_back(one);
  }
  if (!judged.pods.empty()) sync.emit(std::move(judged));
}

// Once an index is cancelled, it gets no new pods (Job::taken), so this looks only at what is new,
// or at everything if it had to wait. A pod that has ended on its own counts by how it ended.
void end_cancelled(Sync& sync) {
  const Job& job = sync.job;
  const JobState& s = sync.state();
  if (!sync.new_cancellations || s.cancelled_indexes.empty() || job.decided()) return;
  std::vector<PodKey> active;
  std::set<NodeId> nodes;
  IndexSet busy;  // not known yet how they end
  for (const auto& [key, pod] : s.open) {
    if (!s.cancelled_indexes.contains(key.index) || pod.counted != Counted::not_yet) continue;
    busy.insert(key.index);
    if (!pod.active()) continue;
    active.push_back(key);
    if (pod.bound()) nodes.insert(pod.node);
  }
  if (sync.per_index()) {
    IndexSet idle = s.cancelled_indexes.without(s.failed_indexes).without(busy);
    if (!idle.empty()) sync.emit(IndexesFailed{sync.now, std::move(idle)});
  }
  if (active.empty() || !sync.knows_ends(nodes)) return;
  std::vector<PodsStopping::One> stopping;
  for (const PodKey key : active)
    stopping.push_back({key, Counted::cancelled, sync.per_index(), std::nullopt});
  stop_pods(sync, std::move(stopping));
}

}  // namespace muster::core
