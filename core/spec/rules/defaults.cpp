#include "core/spec/rules/defaults.hpp"

#include "core/spec/values/well_known.hpp"

#include <limits>

namespace muster::core {

void apply_defaults(JobMeta& meta, JobSpec& spec) {
  if (!spec.completions && !spec.parallelism) spec.completions = 1;
  if (!spec.parallelism) spec.parallelism = 1;
  if (!spec.backoff_limit)
    spec.backoff_limit =
        spec.backoff_limit_per_index ? std::numeric_limits<int32_t>::max() : int32_t{6};
  if (meta.labels.empty()) meta.labels = spec.pod.labels;
  if (spec.completion_mode.empty()) spec.completion_mode = "NonIndexed";
  if (!spec.suspend) spec.suspend = false;
  if (spec.pod_failure_policy)
    for (FailureRule& rule : spec.pod_failure_policy->rules)
      for (PodConditionPattern& pattern : rule.on_pod_conditions)
        if (pattern.status.empty()) pattern.status = "True";
  if (spec.pod_replacement_policy.empty())
    spec.pod_replacement_policy = spec.pod_failure_policy ? "Failed" : "TerminatingOrFailed";
  if (!spec.manual_selector) spec.manual_selector = false;
  if (spec.pod.restart_policy.empty()) spec.pod.restart_policy = "Always";  // refused by validation
  if (!spec.pod.termination_grace_s) spec.pod.termination_grace_s = 30;
}

void generate_selector(const JobMeta& meta, JobSpec& spec) {
  if (spec.manual_selector.value_or(false)) return;
  spec.pod.labels.try_emplace(std::string(kJobNameLabel), meta.name);
  spec.pod.labels.try_emplace(std::string(kLegacyJobNameLabel), meta.name);
  spec.pod.labels.try_emplace(std::string(kControllerUidLabel), meta.uid);
  spec.pod.labels.try_emplace(std::string(kLegacyControllerUidLabel), meta.uid);
  if (!spec.selector) spec.selector.emplace();
  spec.selector->match_labels.try_emplace(std::string(kControllerUidLabel), meta.uid);
}

}  // namespace muster::core
