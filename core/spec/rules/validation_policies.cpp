// Rules of podFailurePolicy and successPolicy (job-semantics 1.6, rows 25 to 49).
#include "core/index_set.hpp"
#include "core/spec/rules/validation.hpp"
#include "core/spec/values/names.hpp"

#include <algorithm>
#include <set>

namespace muster::core {
namespace {

constexpr size_t kRulesMax = 20;
constexpr size_t kExitCodesMax = 255;
constexpr size_t kPodConditionsMax = 20;
constexpr size_t kSucceededIndexesMax = 65536;  // bytes

// Rows 26 to 28.
void validate_action(const std::string& path, const JobSpec& spec, const FailureRule& rule,
                     Violations& found) {
  if (rule.action.empty()) {
    found.required(path, "valid values: \"Count\", \"FailIndex\", \"FailJob\", \"Ignore\"");
  } else if (rule.action == "FailIndex") {
    if (!spec.backoff_limit_per_index)
      found.invalid(path, rule.action, "requires the backoffLimitPerIndex to be set");
  } else if (rule.action != "Count" && rule.action != "FailJob" && rule.action != "Ignore") {
    found.not_supported(path, rule.action, {"Count", "FailIndex", "FailJob", "Ignore"});
  }
}

using Names = std::set<std::string_view>;

Names container_names(const PodTemplate& pod) {
  Names names;
  for (const auto* list : {&pod.containers, &pod.init_containers})
    for (const Container& container : *list) names.insert(container.name);
  return names;
}

// Rows 29 to 35.
void validate_exit_codes(const std::string& path, const Names& containers, const OnExitCodes& codes,
                         Violations& found) {
  if (codes.op.empty()) {
    found.required(path + ".operator", "valid values: \"In\", \"NotIn\"");
  } else if (codes.op != "In" && codes.op != "NotIn") {
    found.not_supported(path + ".operator", codes.op, {"In", "NotIn"});
  }
  if (codes.container_name && !containers.contains(*codes.container_name))
    found.invalid(path + ".containerName", std::string_view(*codes.container_name),
                  "must be one of the container or initContainer names in the pod template");
  const std::string values = path + ".values";
  if (codes.values.empty()) {
    found.invalid_object(values, "at least one value is required");
  } else if (codes.values.size() > kExitCodesMax) {
    found.too_many(values, codes.values.size(), kExitCodesMax);
  }
  std::set<int32_t> seen;
  for (size_t i = 0; i < codes.values.size(); ++i) {
    int32_t code = codes.values[i];
    if (code == 0 && codes.op == "In")
      found.invalid(item(values, i), code, "must not be 0 for the In operator");
    if (!seen.insert(code).second) found.duplicate(item(values, i), code);
  }
  if (!std::is_sorted(codes.values.begin(), codes.values.end()))
    found.invalid_object(values, "must be ordered");
}

// Rows 36 to 38.
void validate_conditions(const std::string& path, const std::vector<PodConditionPattern>& patterns,
                         Violations& found) {
  if (patterns.size() > kPodConditionsMax) found.too_many(path, patterns.size(), kPodConditionsMax);
  for (size_t i = 0; i < patterns.size(); ++i) {
    const auto& [type, status] = patterns[i];
    for (std::string& reason : qualified_name_errors(type))
      found.invalid(item(path, i) + ".type", type, std::move(reason));
    if (status.empty()) {
      found.required(item(path, i) + ".status", "valid values: \"False\", \"True\", \"Unknown\"");
    } else if (status != "False" && status != "True" && status != "Unknown") {
      found.not_supported(item(path, i) + ".status", status, {"False", "True", "Unknown"});
    }
  }
}

// Rows 44 to 49.
void validate_success_rule(const std::string& path, const JobSpec& spec, const SuccessRule& rule,
                           Violations& found) {
  if (!rule.succeeded_indexes && !rule.succeeded_count) {
    found.required(path, "at least one of succeededCount or succeededIndexes must be specified");
    return;
  }
  uint64_t named = 0;
  if (const auto& text = rule.succeeded_indexes) {
    const std::string at = path + ".succeededIndexes";
    if (text->size() > kSucceededIndexesMax) found.too_long(at, kSucceededIndexesMax);
    // Without completions, which row 16 reports, no index is out of range.
    auto set = IndexSet::parse_strict(*text, spec.completions.value_or(INT32_MAX));
    if (set) {
      named = set->size();
    } else {
      found.invalid(at, *text, "error parsing succeededIndexes: " + set.error().message);
    }
  }
  if (!rule.succeeded_count) return;
  int32_t count = *rule.succeeded_count;
  const std::string at = path + ".succeededCount";
  found.nonnegative(at, count);
  if (spec.completions && count > *spec.completions)
    found.invalid(at, count,
                  "must be less than or equal to " + std::to_string(*spec.completions) +
                      " (the number of specified completions)");
  if (rule.succeeded_indexes && count > 0 && static_cast<uint64_t>(count) > named)
    found.invalid(at, count,
                  "must be less than or equal to " + std::to_string(named) +
                      " (the number of indexes in the specified succeededIndexes field)");
}

}  // namespace

void validate_failure_policy(const JobSpec& spec, Violations& found) {
  if (!spec.pod_failure_policy) return;
  const std::string rules = "spec.podFailurePolicy.rules";
  const auto& list = spec.pod_failure_policy->rules;
  if (list.size() > kRulesMax) found.too_many(rules, list.size(), kRulesMax);
  const Names containers = container_names(spec.pod);
  for (size_t i = 0; i < list.size(); ++i) {
    const FailureRule& rule = list[i];
    const std::string path = item(rules, i);
    validate_action(path + ".action", spec, rule, found);
    if (rule.on_exit_codes)
      validate_exit_codes(path + ".onExitCodes", containers, *rule.on_exit_codes, found);
    validate_conditions(path + ".onPodConditions", rule.on_pod_conditions, found);
    if (rule.on_exit_codes && !rule.on_pod_conditions.empty())
      found.invalid_object(path,
                           "specifying both OnExitCodes and OnPodConditions is not supported");
    if (!rule.on_exit_codes && rule.on_pod_conditions.empty())
      found.invalid_object(path, "specifying one of OnExitCodes and OnPodConditions is required");
  }
}

void validate_success_policy(const JobSpec& spec, Violations& found) {
  if (!spec.success_policy) return;
  if (!spec.indexed()) {
    found.invalid_object("spec.successPolicy", "requires indexed completion mode");
    return;
  }
  const std::string rules = "spec.successPolicy.rules";
  const auto& list = spec.success_policy->rules;
  if (list.empty())
    found.required(rules,
                   "at least one rules must be specified when the successPolicy is specified");
  if (list.size() > kRulesMax) found.too_many(rules, list.size(), kRulesMax);
  for (size_t i = 0; i < list.size(); ++i)
    validate_success_rule(item(rules, i), spec, list[i], found);
}

}  // namespace muster::core
