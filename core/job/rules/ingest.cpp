// Turns events into starts, ends and bindings, and decides whose fault it is that a pod could not
// be started (ADR 81). A report about a pod that is not open, or not bound to the reporting node,
// changes nothing, since the pod has been judged; it is still acknowledged.
#include "base/exec_exit.hpp"
#include "core/job/rules/sync.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace muster::core {

namespace {

// Whether the node found what it was asked to execute, and could not: no permission, say. This is
// the command's own fault, unless the same command has started elsewhere.
bool is_unfit(const PodEnd& end) {
  return end.exit_code == kExitCannotStart && end.message.starts_with("exec ");
}

// Whether the node has no such working directory, which a file server may bring back.
bool lacks_directory(const PodEnd& end) {
  return end.exit_code == kExitNotHere && end.message.starts_with("cwd ");
}

// How long a leader's failure may wait for the workers' nodes, some of which may be cut off or
// frozen. A healthy node answers within milliseconds.
constexpr Millis kHoldMs = 5'000;

// Converts a reported age to an instant: never before the pod was bound, never after now.
Millis instant(const Sync& sync, const Pod& pod, Age age) {
  return std::clamp(sync.now - age.ms, std::min(pod.bound_ms, sync.now), sync.now);
}

// Whether a report says nothing new. Its times are ages, so each report has others.
bool same_phases(const std::vector<ContainerNow>& known,
                 const std::vector<ContainerNowOf<Age>>& said) {
  return std::equal(
      known.begin(), known.end(), said.begin(), said.end(), [](const auto& a, const auto& b) {
        return a.phase == b.phase && a.restarts == b.restarts &&
               a.last.has_value() == b.last.has_value() &&
               (!a.last ||
                (a.last->exit_code == b.last->exit_code && a.last->signal == b.last->signal));
      });
}

void end_pod(Sync& sync, const Pod& pod, PodEnd end) {
  PodsEnded::One one;
  one.pod = pod.key;
  one.end = std::move(end);
  sync.ends.push_back(std::move(one));
}

struct Ingest {
  Sync& sync;
  std::set<PodKey> ended{};  // in this sync
  // Nodes where a pod may start yet, or fail to; absent: not looked at since the last event.
  std::optional<std::set<NodeId>> trying{};

  const Pod* open_on(PodKey key, NodeId node) const {
    auto it = sync.state().open.find(key);
    return it == sync.state().open.end() || it->second.node != node ? nullptr : &it->second;
  }

  bool held(PodKey key) const {
    const auto& all = sync.hearing.held;
    return std::any_of(all.begin(), all.end(),
                       [key](const Hearing::HeldEnd& end) { return end.one.pod == key; });
  }

  // Nothing follows JobForgotten: later requests are answered with "not found".
  bool gone(uint64_t token) const {
    if (!sync.state().forgotten) return false;
    sync.order(Answer{token, Answer::Outcome::not_found});
    return true;
  }

  void operator()(const SlotsGranted& e) {
    sync.granted = true;
    PodsBound bound{sync.now, {}};
    LaunchPods launch;
    FreeSlots back;
    back.steps = e.steps;
    size_t slots = 0;
    for (const auto& [node, count] : e.slots) slots += count;
    // A job with scheduling gates, or one that is on hold, binds nothing.
    const bool may = !sync.job.gated() && !sync.job.on_hold();
    const std::vector<PodKey> pods = sync.job.pending_with(e.steps, may ? slots : 0);
    auto next = pods.begin();
    for (auto [node, count] : e.slots) {
      auto under = e.registrations.find(node);
      uint64_t registration = under == e.registrations.end() ? 0 : under->second;
      for (; count > 0 && next != pods.end(); --count, ++next) {
        bound.bindings.push_back({*next, node});
        launch.pods.push_back({*next, node, registration});
      }
      if (count > 0) back.slots[node] += count;
    }
    if (!bound.bindings.empty()) {
      sync.emit(std::move(bound));
      sync.order(std::move(launch));
    }
    if (!back.slots.empty()) sync.order(std::move(back));
  }

  // Whether another node may still show how the job's pods start.
  bool others_try(NodeId node) {
    if (!trying) {
      trying.emplace();
      for (const auto& [key, pod] : sync.state().open)
        if (pod.bound() && !pod.started_at && !ended.contains(key)) trying->insert(pod.node);
    }
    return std::ranges::any_of(*trying, [&](NodeId other) {
      return other != node && !sync.failed_starts.contains(other);
    });
  }

  bool others_agree(NodeId node) const {
    const auto is_other = [node](const auto& one) { return one.first != node; };
    return std::ranges::any_of(sync.state().start_trouble, is_other) ||
           std::ranges::any_of(sync.failed_starts, is_other);
  }

  // Whether it is the job's fault, not the node's, that its pod could not be started there.
  bool is_own_fault(NodeId node, const PodEnd& end) {
    if (const auto since = sync.hearing.nowhere_else)
      return !lacks_directory(end) || others_agree(node) ||
             sync.now >= *since + sync.knobs.start_patience_ms;
    const bool started =
        has_started(sync.job) || !sync.starts.empty() ||
        std::ranges::any_of(sync.ends, [](const auto& one) { return one.start.has_value(); });
    return !started && is_unfit(end) && !others_try(node);
  }

  // What this node cannot start, another one may: it lacks memory, or a directory that others have.
  // The pod is returned, unless the job is to blame.
  void look_elsewhere(const Pod& pod, NodeId node, PodEnd& end) {
    if (end.cause != EndCause::start_failed) return;
    if (end.message.empty())
      end.message = "it ended with exit code " + std::to_string(end.exit_code);
    const bool own_fault = is_own_fault(node, end);
    sync.failed_starts.try_emplace(node, end.message);
    if (own_fault) {
      if (end.exit_code == kExitNotHere) end.exit_code = kExitCannotStart;
      for (ContainerEnd& one : end.containers)
        if (one.exit_code == kExitNotHere) one.exit_code = kExitCannotStart;
      return;
    }
    end.cause = EndCause::returned;
    if (end.exit_code == kExitNotHere) end.exit_code = kExitCannotStart;
    end.containers.clear();
    if (!pod.active()) return;
    auto& avoid = sync.freed[pod.steps].avoid;
    ++avoid.try_emplace(node, FailedStarts{0, end.message}).first->second.pods;
  }

  void operator()(const PodsReported& e) {
    std::map<PodKey, const PodsReported::Start*> unrecorded;
    bool holds = false;
    const bool starts =
        !e.starts.empty() || std::any_of(e.ends.begin(), e.ends.end(),
                                         [](const auto& end) { return end.start.has_value(); });
    if (starts) sync.hearing.nowhere_else.reset();
    trying.reset();
    if (!e.node_name.empty()) sync.hearing.names[e.node] = e.node_name;
    for (const auto& start : e.starts)
      if (open_on(start.pod, e.node)) unrecorded[start.pod] = &start;
    for (const auto& end : e.ends) {
      const Pod* pod = open_on(end.pod, e.node);
      if (!pod || (!ended.insert(end.pod).second && !held(end.pod))) continue;
      PodsEnded::One one;
      one.pod = end.pod;
      one.end = with_times<Millis>(end, [this, pod](Age age) { return instant(sync, *pod, age); });
      if (!end.start) look_elsewhere(*pod, e.node, one.end);
      // It was being deleted, so it ends as a pod killed before it started.
      if (one.end.cause == EndCause::returned && !pod->active())
        one.end.cause = EndCause::never_started;
      if (end.start) {
        const Millis at = std::min(instant(sync, *pod, end.start->at), one.end.ended_at);
        one.start = {end.start->pid, pod->started_at.value_or(at)};
        one.restarts = end.restarts;
        for (const auto& run : end.runs)
          one.runs.push_back(
              with_times<Millis>(run, [this, pod](Age age) { return instant(sync, *pod, age); }));
      }
      if (held(end.pod) || may_blame_worker(sync, *pod, one.end)) {
        sync.hearing.held.push_back({e.node, e.token, sync.now, std::move(one)});
        holds = true;
      } else {
        sync.ends.push_back(std::move(one));
      }
      unrecorded.erase(end.pod);  // start and end that arrive together are one record
    }
    for (const auto& [key, start] : unrecorded) {
      const Pod* pod = open_on(key, e.node);
      if (pod->started_at && pod->pid == start->pid && pod->restarts == start->restarts &&
          pod->readiness == start->readiness && pod->cpus == start->cpus &&
          same_phases(pod->containers, start->containers))
        continue;
      std::vector<ContainerNow> containers;
      for (const auto& one : start->containers)
        containers.push_back(
            with_times<Millis>(one, [this, pod](Age age) { return instant(sync, *pod, age); }));
      // A repeated report may be older than what is recorded.
      sync.starts.push_back({key, start->pid, std::max(pod->restarts, start->restarts),
                             instant(sync, *pod, start->age), start->readiness,
                             std::move(containers), start->cpus});
    }
    if (!holds) sync.order(AckReport{e.token});
  }

  // Passes on the held ends to be judged, or keeps holding them.
  void release() {
    std::vector<Hearing::HeldEnd>& all = sync.hearing.held;
    if (all.empty()) return;
    std::set<PodKey> ending = ended;
    Millis until = all.front().since + kHoldMs;
    for (const Hearing::HeldEnd& end : all) ending.insert(end.one.pod);
    if (sync.now < until && awaits_workers(sync, ending)) return sync.wake(until);
    std::set<PodKey> released;
    for (Hearing::HeldEnd& end : std::exchange(all, {})) {
      if (open_on(end.one.pod, end.node) && released.insert(end.one.pod).second)
        sync.ends.push_back(std::move(end.one));
      sync.order(AckReport{end.token});
    }
  }

  void operator()(const NodeLost& e) {
    for (const auto& [key, pod] : sync.state().open)
      if (pod.node == e.node && !held(key) && ended.insert(key).second)
        end_pod(sync, pod, {e.cause, 137, 0, sync.now, ""});
  }

  // ARCHITECTURE.md, "Registration": pods that the agent knows but that are not open here must end;
  // pods that were started but that the agent does not know are lost; pods that are bound and never
  // started are launched again by NodeReady. After a restore it is unknown whether a pod that the
  // agent does not know ran or how it ended: it counts nowhere and is replaced.
  void operator()(const NodeRegistered& e) {
    AnswerReconcile answer{e.node, {}};
    for (PodKey key : e.known)
      if (!open_on(key, e.node)) answer.end.push_back(key);
    for (const auto& [key, pod] : sync.state().open)
      if (pod.node == e.node && (pod.started_at.has_value() || e.restored) &&
          !e.known.contains(key) && !held(key) && ended.insert(key).second)
        end_pod(sync, pod,
                {e.restored && pod.active() ? EndCause::returned : EndCause::node_lost, 137, 0,
                 sync.now, "the node no longer knows this pod"});
    sync.order(std::move(answer));
  }

  void operator()(const NodeReady& e) {
    sync.hearing.reconnected(e.node);
    sync.ready.push_back(e);
  }
  void operator()(const NodeHeard& e) { sync.hearing.answered(e); }
  void operator()(const NowhereElse&) {
    if (!sync.hearing.nowhere_else) sync.hearing.nowhere_else = sync.now;
  }

  void operator()(const TimePassed&) {}

  void operator()(const JobDeletion& e) { sync.deletions.push_back(e); }
  void operator()(const OwnerUpdate& e) { take_update(sync, e); }
  void operator()(const PodsDeletion& e) {
    if (!gone(e.token)) sync.pod_deletions.push_back(e);
  }
  void operator()(const Preempted& e) { choose_victims(sync, e); }
  void operator()(const Tainted& e) { leave_nodes(sync, e); }
  void operator()(const PodConditionsWrite& e) {
    if (!gone(e.token)) take_conditions(sync, e);
  }
  void operator()(const StatusWrite& e) { take_status(sync, e); }
  void operator()(const HoldChange& e) { take_hold(sync, e); }
  void operator()(const OverridesChange& e) { take_overrides(sync, e); }
  void operator()(const Cancellation& e) { take_cancellation(sync, e); }
  void operator()(const DependencyHasEnded& e) { take_dependency(sync, e); }
  void operator()(const DependencyHasAdvanced& e) { take_progress(sync, e); }
};

}  // namespace

// Jobs of earlier versions have no record of their first start.
bool has_started(const Job& job) {
  return job.state().usage.first_start || job.state().usage.ran_ms > 0;
}

void ingest(Sync& sync, const std::vector<Event>& events) {
  Ingest ingest{sync};
  for (const Event& event : events) std::visit(ingest, event);
  ingest.release();
  // A pod whose end arrived in another report of this sync needs no separate start.
  std::erase_if(sync.starts, [&ingest](const auto& s) { return ingest.ended.contains(s.pod); });
  if (!sync.starts.empty()) sync.emit(PodsStarted{sync.now, std::move(sync.starts)});
}

}  // namespace muster::core
