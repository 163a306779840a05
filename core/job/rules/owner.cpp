// Writes by clients: the object, conditions and metadata of pods, the status of a job that another
// controller manages, holds, priorities and cancellations.
#include "core/job/rules/sync.hpp"

#include <algorithm>

namespace muster::core {

namespace {

bool unchanged(const Sync& sync, const JobObjectPtr& seen) {
  return seen == sync.job.object_ptr() || seen->json == sync.job.object().json;
}

void put(Sync& sync, const JobObjectPtr& object) {
  if (object->json == sync.job.object().json) return;
  sync.emit(JobSpecChanged{sync.now, object->meta.generation, object->spec.parallelism.value_or(1),
                           object->spec.completions, object});
  if (!object->meta.annotations.contains(std::string(kAfterKey))) waive_dependencies(sync);
  sync.new_successes = true;
}

// Whether the request was answered, because there is no such job or nothing of it can start.
bool answered(Sync& sync, uint64_t token) {
  if (sync.job.hidden())
    sync.order(Answer{token, Answer::Outcome::not_found});
  else if (sync.job.finished())
    sync.order(Answer{token, Answer::Outcome::conflict});
  else
    return false;
  return true;
}

}  // namespace

void take_update(Sync& sync, const OwnerUpdate& update) {
  if (sync.job.hidden()) return sync.order(Answer{update.token, Answer::Outcome::not_found});
  if (!unchanged(sync, update.seen))
    return sync.order(Answer{update.token, Answer::Outcome::conflict});
  sync.order(Answer{update.token});
  put(sync, update.object);
}

void take_status(Sync& sync, const StatusWrite& write) {
  if (sync.job.hidden()) return sync.order(Answer{write.token, Answer::Outcome::not_found});
  const std::string& now =
      write.conditions ? sync.state().own_conditions : sync.state().external_status;
  if (write.seen && (!unchanged(sync, write.seen) || write.seen_json != now))
    return sync.order(Answer{write.token, Answer::Outcome::conflict});
  if (write.json != now) {
    if (write.conditions)
      sync.emit(ConditionsWritten{sync.now, write.json});
    else
      sync.emit(StatusWritten{sync.now, write.json});
  }
  if (write.object) put(sync, write.object);
  sync.order(Answer{write.token});
}

void take_conditions(Sync& sync, const PodConditionsWrite& write) {
  if (!sync.job.pod(write.pod)) return sync.order(Answer{write.token, Answer::Outcome::not_found});
  for (PodCondition condition : write.conditions) {
    const auto& there = sync.job.pod(write.pod)->conditions;
    auto old = std::find_if(there.begin(), there.end(), [&condition](const PodCondition& c) {
      return c.type == condition.type;
    });
    bool turned = old == there.end() || old->status != condition.status;
    condition.at_ms = turned ? sync.now : old->at_ms;
    if (old == there.end() || *old != condition)
      sync.emit(PodConditionSet{sync.now, write.pod, std::move(condition)});
  }
  PodMetaSet set{sync.now, write.pod, {}};
  const auto& there = sync.job.pod(write.pod)->meta;
  for (const PodMetaChange& change : write.meta)
    if (std::find(there.begin(), there.end(), change) == there.end()) set.changes.push_back(change);
  if (!set.changes.empty()) sync.emit(std::move(set));
  sync.order(Answer{write.token});
}

// A job on hold creates and binds no pods (pods.cpp, ingest.cpp); nothing that has a node is ended.
// Neither a hold nor an override is part of the owner's object, so no write to that changes them.
void take_hold(Sync& sync, const HoldChange& change) {
  if (answered(sync, change.token)) return;
  const auto& now = sync.state().hold;
  if (now && now->by_operator && !change.by_operator)
    return sync.order(Answer{change.token, Answer::Outcome::conflict});
  sync.order(Answer{change.token});
  if (!change.hold) {
    if (!now) return;
    std::optional<JobHeld> own = change.by_operator ? sync.state().owner_hold : std::nullopt;
    sync.emit(JobReleased{sync.now, change.by});
    if (!own) return;
    own->at_ms = sync.now;
    return sync.emit(*own);
  }
  // Whoever holds it first is named, unless an operator holds what its owner does: then the owner's
  // hold is back once the operator's is released.
  if (now && now->by_operator == change.by_operator && now->reason == change.reason) return;
  sync.emit(JobHeld{sync.now, change.by, change.by_operator, change.reason});
}

void take_cancellation(Sync& sync, const Cancellation& cancellation) {
  if (sync.job.hidden()) return sync.order(Answer{cancellation.token, Answer::Outcome::not_found});
  const JobState& s = sync.state();
  const bool whole = !cancellation.indexes;
  if (whole && s.cancelled) return sync.order(Answer{cancellation.token});
  const GangRules& gang = sync.job.gang();
  const bool apart = sync.job.indexed() && !gang.together && !gang.breaks() && !gang.ranks;
  if (sync.job.decided() || s.deleted_at || !managed(sync) || (!whole && !apart))
    return sync.order(Answer{cancellation.token, Answer::Outcome::conflict});
  sync.order(Answer{cancellation.token});
  if (whole) return sync.emit(JobCancelled{sync.now, cancellation.by});
  const IndexSet own = sync.job.own_indexes();
  IndexSet open = own.without(own.without(*cancellation.indexes));
  open = open.without(s.completed).without(s.failed_indexes).without(s.cancelled_indexes);
  if (open.empty()) return;
  sync.emit(IndexesCancelled{sync.now, cancellation.by, std::move(open)});
  sync.new_cancellations = true;
}

void take_overrides(Sync& sync, const OverridesChange& change) {
  if (answered(sync, change.token)) return;
  const auto& now = sync.state().overrides;
  if ((now ? now->overrides : Overrides{}) != change.seen)
    return sync.order(Answer{change.token, Answer::Outcome::conflict});
  sync.order(Answer{change.token});
  if (change.next == change.seen) return;
  sync.emit(OverridesSet{sync.now, change.next, change.by});
  if (change.next.time_limit_s == change.seen.time_limit_s) return;
  if (LimitPods limits = sync.job.limits_since_override(); !limits.pods.empty())
    sync.order(std::move(limits));
}

}  // namespace muster::core
