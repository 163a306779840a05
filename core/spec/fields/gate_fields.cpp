#include "core/spec/fields/gate_fields.hpp"

namespace muster::core {

std::vector<std::string> drop_gated(const Gates& gates, JobSpec& spec, const JobSpec* old) {
  std::vector<std::string> dropped;
  auto drop = [&dropped](bool on, auto& field, bool in_use, const char* name) {
    if (on || in_use || !field) return;
    field.reset();
    dropped.emplace_back(name);
  };
  drop(gates.backoff_limit_per_index, spec.backoff_limit_per_index,
       old && old->backoff_limit_per_index, "backoffLimitPerIndex");
  drop(gates.backoff_limit_per_index, spec.max_failed_indexes, old && old->max_failed_indexes,
       "maxFailedIndexes");
  // Rules with FailIndex are dropped too. An existing job's policy is immutable and stays.
  if (!gates.backoff_limit_per_index && !old && spec.pod_failure_policy) {
    auto& rules = spec.pod_failure_policy->rules;
    if (std::erase_if(rules, [](const FailureRule& rule) { return rule.action == "FailIndex"; }))
      dropped.emplace_back(kFailIndexRules);
  }
  drop(gates.success_policy, spec.success_policy, old && old->success_policy, "successPolicy");
  drop(gates.pod_failure_policy, spec.pod_failure_policy, old && old->pod_failure_policy,
       "podFailurePolicy");
  drop(gates.managed_by, spec.managed_by, old && old->managed_by, "managedBy");
  if (!gates.pod_replacement_policy && !spec.pod_replacement_policy.empty() &&
      (!old || old->pod_replacement_policy.empty())) {
    spec.pod_replacement_policy.clear();
    dropped.emplace_back("podReplacementPolicy");
  }
  return dropped;
}

}  // namespace muster::core
