// What the owner changes: the object, conditions of pods, the status of a job that another
// controller manages.
#include "core/job/sync.hpp"

#include <algorithm>

namespace muster::core {

void take_update(Sync& sync, const OwnerUpdate& update) {
  const JobObject& now = sync.job.object();
  if (sync.job.hidden()) return sync.order(Answer{update.token, Answer::Outcome::not_found});
  bool same = update.seen == sync.job.object_ptr() || update.seen->json == now.json;
  if (!same) return sync.order(Answer{update.token, Answer::Outcome::conflict});
  sync.order(Answer{update.token});
  const JobObjectPtr& object = update.object;
  if (object->json == now.json) return;
  sync.emit(JobSpecChanged{sync.now, object->meta.generation, object->spec.parallelism.value_or(1),
                           object->spec.completions.value_or(-1), object});
  sync.new_successes = true;
}

void take_status(Sync& sync, const StatusWrite& write) {
  if (sync.job.hidden()) return sync.order(Answer{write.token, Answer::Outcome::not_found});
  if (write.json != sync.state().external_status) sync.emit(StatusWritten{sync.now, write.json});
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
  sync.order(Answer{write.token});
}

}  // namespace muster::core
