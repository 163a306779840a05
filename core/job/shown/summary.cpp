#include "core/job/shown/summary.hpp"

#include "core/job/rules/decide.hpp"
#include "core/job/rules/held.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/values/well_known.hpp"

namespace muster::core {
namespace {

bool named_pods(const JobObject& object) {
  auto has = [&object](std::string_view key, const std::string& value) {
    auto it = object.spec.pod.labels.find(std::string(key));
    return it != object.spec.pod.labels.end() && it->second == value;
  };
  return has(kJobNameLabel, object.meta.name) && has(kLegacyJobNameLabel, object.meta.name) &&
         has(kControllerUidLabel, object.meta.uid) &&
         has(kLegacyControllerUidLabel, object.meta.uid);
}

}  // namespace

JobSummary summary_of(const Job& job) {
  const JobMeta& meta = job.object().meta;
  const Condition* const end = job.terminal();
  return {job.id(),
          meta.ns,
          meta.name,
          meta.uid,
          end ? end->at_ms : 1,
          expires_at(job),
          end && end->type == ConditionType::complete,
          named_pods(job.object()) && !job.relabeled(),
          meta.owners.size() <= kSummaryOwnersMax ? meta.owners : std::vector<OwnerRef>(),
          notice_due(job)};
}

JobObject brief(const JobObject& object) {
  JobObject out;
  out.meta.name = object.meta.name;
  out.meta.ns = object.meta.ns;
  out.meta.uid = object.meta.uid;
  out.meta.labels = object.meta.labels;
  out.meta.generation = object.meta.generation;
  out.meta.created_ms = object.meta.created_ms;
  const auto keep = [&](std::string_view key) {
    if (auto it = object.meta.annotations.find(std::string(key));
        it != object.meta.annotations.end())
      out.meta.annotations.insert(*it);
  };
  for (const std::string_view key : {kIndexesKey, kOwnerKey, kOwnerUidKey}) keep(key);
  out.spec.completion_mode = object.spec.completion_mode;
  out.spec.backoff_limit_per_index = object.spec.backoff_limit_per_index;
  if (object.spec.selector)
    out.spec.selector = LabelSelector{object.spec.selector->match_labels, {}};
  for (const Container& container : object.spec.pod.containers) {
    Container& c = out.spec.pod.containers.emplace_back();
    c.name = container.name;
    c.image = container.image;
  }
  return out;
}

JobState brief(const JobState& state) {
  JobState out;
  out.generation = state.generation;
  out.parallelism = state.parallelism;
  out.completions = state.completions;
  out.admitted_ms = state.admitted_ms;
  out.started_at = state.started_at;
  out.completed_at = state.completed_at;
  out.last_record_ms = state.last_record_ms;
  out.synced = state.synced;
  out.index_limits_off = state.index_limits_off;
  out.conditions = state.conditions;
  out.completed = state.completed;
  out.failed_indexes = state.failed_indexes;
  out.cancelled_indexes = cancelled_for_good(state);
  out.succeeded = state.succeeded;
  out.failed = state.failed;
  out.external_status = state.external_status;
  out.own_conditions = state.own_conditions;
  out.usage = state.usage;
  return out;
}

}  // namespace muster::core
