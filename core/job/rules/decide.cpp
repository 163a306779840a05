// The order of a sync (job-semantics 14); each rule has its own file.
#include "core/job/rules/decide.hpp"

#include "core/job/rules/sync.hpp"
#include "core/spec/values/well_known.hpp"

#include <set>

namespace muster::core {

namespace {

// Drops launches of pods that this sync stopped or ended later, and adds the desired effects for
// nodes that became ready.
void settle_launches(Sync& sync) {
  const auto& open = sync.state().open;
  for (Effect& effect : sync.out.effects)
    if (auto* launch = std::get_if<LaunchPods>(&effect))
      std::erase_if(launch->pods, [&open](const LaunchPods::One& one) {
        auto it = open.find(one.pod);
        return it == open.end() || !it->second.to_launch();
      });
  std::erase_if(sync.out.effects, [](const Effect& effect) {
    auto* launch = std::get_if<LaunchPods>(&effect);
    return launch && launch->pods.empty();
  });
  for (const NodeReady& ready : sync.ready)
    for (Effect& effect : sync.job.desired_effects(ready.node, ready.known, ready.registration))
      sync.order(std::move(effect));
}

// The pods of an MPI job that are to be ended now; workers wait for their leader.
std::set<PodKey> ending_pods(const Job& job) {
  std::set<PodKey> ending;
  if (!job.gang().leads) return ending;
  for (const Effect& effect : job.desired_effects(kNoNode))
    if (const auto* kill = std::get_if<KillPods>(&effect))
      for (const KillPods::One& one : kill->pods)
        if (!job.pod(one.pod)->ended) ending.insert(one.pod);
  return ending;
}

// Ends the workers that have waited for their leader. `before`: those that were ordered to end
// earlier.
void end_workers(Sync& sync, const std::set<PodKey>& before) {
  std::set<PodKey> ending = ending_pods(sync.job);
  for (const PodKey key : before) ending.erase(key);
  for (const Effect& effect : sync.out.effects)
    if (const auto* kill = std::get_if<KillPods>(&effect))
      for (const KillPods::One& one : kill->pods) ending.erase(one.pod);
  kill_pods(sync, {ending.begin(), ending.end()});
}

std::optional<bool> end_of(const Job& job) {
  if (!job.finished()) return std::nullopt;
  return job.condition(ConditionType::complete) != nullptr;
}

void settle_pods(Sync& sync) {
  judge_ends(sync);
  delete_pods(sync);
  judge_deleted(sync);
}

// Treats everything as new if a decision had to wait or the job was just recovered.
void look_again(Sync& sync) {
  if (!sync.hearing.look_again()) return;
  sync.new_successes = sync.new_cancellations = true;
  for (const auto& [index, pod] : sync.state().deferred) judge_again(sync, pod);
  for (const Pod& pod : sync.state().finished) judge_again(sync, pod);
}

void run_job(Sync& sync) {
  look_again(sync);
  if (sync.state().deletion_waits) {  // it can still finish, but gets no pods (10.4)
    if (!decide_finish(sync)) decide_completion(sync);
    return;
  }
  if (sync.state().deleted_at) return;
  end_cancelled(sync);
  give_up_starting(sync);
  bool managed = !decide_finish(sync);
  if (managed)
    manage_pods(sync);
  else
    sync.out.action = SyncAction::reconciling;
  bool ended = decide_completion(sync);
  // While a decision waits, the job may be resumed (it has its startTime) but not suspended.
  bool settled = managed && !ended;
  if (sync.waits) settled = !sync.job.decided() && !sync.wants_suspended();
  if (settled) keep_suspended(sync);
}

}  // namespace

// A job that names another controller is only stored.
bool managed(const Sync& sync) {
  const auto& by = sync.spec().managed_by;
  return !by || *by == kReservedManager || !sync.knobs.gates.managed_by;
}

Decision decide(Job& job, const std::vector<Event>& events, Millis now, const Knobs& knobs) {
  Hearing hearing = Hearing::all_known();
  return decide(job, events, now, knobs, hearing);
}

Decision decide(Job& job, const std::vector<Event>& events, Millis now, const Knobs& knobs,
                Hearing& hearing) {
  Sync sync{job, std::max(now, job.state().last_record_ms), knobs, hearing};
  const AskSlots wanted_before = job.slots_wanted();
  const std::set<PodKey> ending = ending_pods(job);
  ingest(sync, events);
  bool deleted = job.state().deleted_at.has_value();
  if (managed(sync) && (!deleted || job.state().deletion_waits) && !job.finished()) {
    fail_unmet(sync);
    // A job that fails before it could start has a startTime, too.
    if (!deleted && job.state().started_at == std::nullopt && !sync.wants_suspended() &&
        (!sync.waits_to_start() || !sync.fail_job.empty() || job.state().cancelled))
      sync.emit(JobStarted{sync.now});
    if (job.per_index() && sync.per_index() == job.state().index_limits_off)
      sync.emit(IndexLimitsSet{sync.now, sync.per_index()});
    settle_pods(sync);
    delete_job(sync);
    run_job(sync);
  } else {
    settle_pods(sync);
    delete_job(sync);
  }
  finish_when_empty(sync);
  check_status(job);
  end_workers(sync, ending);
  settle_launches(sync);
  if (auto ask = hearing.settle(sync.waits); !ask.empty()) {
    // Ask before any kill, so that the answers do not include pods that the kill ends.
    sync.out.effects.insert(sync.out.effects.begin(), AskNodes{std::move(ask)});
  }

  if (!sync.closed.empty()) sync.order(PodsClosed{std::move(sync.closed)});
  for (auto& [steps, freed] : sync.freed) {
    if (freed.slots.empty()) continue;
    freed.steps = steps;
    sync.order(std::move(freed));
  }
  if (AskSlots wanted = job.slots_wanted(); sync.granted || wanted != wanted_before)
    sync.order(std::move(wanted));
  if (sync.wake_ms) sync.order(WakeAt{*sync.wake_ms});
  bool over = job.finished() || job.state().orphaned;
  if (job.state().forgotten || (over && job.state().open.empty()))
    sync.order(JobOver{job.state().forgotten,
                       job.state().forgotten ? std::nullopt : expires_at(job), end_of(job)});
  return std::move(sync.out);
}

}  // namespace muster::core
