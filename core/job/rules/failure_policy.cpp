#include "core/job/rules/failure_policy.hpp"

#include "core/job/facts/pod_conditions.hpp"
#include "core/pod_name.hpp"
#include "core/spec/fields/annotations.hpp"

#include <algorithm>
#include <optional>

namespace muster::core {

namespace {

struct Exit {
  const std::string* container;
  int32_t code;
};

// The known exits of a pod's containers: app containers first, then init containers. None if the
// node was lost or deleted, or if the pod never ran.
std::vector<Exit> exits_of(const JobSpec& spec, const Pod& pod) {
  std::vector<Exit> exits;
  const auto& init = spec.pod.init_containers;
  const auto& apps = spec.pod.containers;
  const auto& ends = pod.end.containers;
  if (!pod.ended) return exits;
  if (ends.empty()) {
    bool known = pod.end.cause != EndCause::node_lost && pod.end.cause != EndCause::node_deleted &&
                 pod.end.cause != EndCause::never_started;
    if (known && !apps.empty()) exits.push_back({&apps.front().name, pod.end.exit_code});
    return exits;
  }
  auto add = [&exits](const Container& container, const ContainerEnd& end) {
    if (end.has_exit_code()) exits.push_back({&container.name, end.exit_code});
  };
  for (size_t i = 0; i < apps.size() && init.size() + i < ends.size(); ++i)
    add(apps[i], ends[init.size() + i]);
  for (size_t i = 0; i < init.size() && i < ends.size(); ++i) add(init[i], ends[i]);
  return exits;
}

const Exit* matching(const OnExitCodes& rule, const std::vector<Exit>& exits) {
  // New jobs cannot have an empty name; in one that the journal has, it means any.
  const std::string_view wanted = rule.container_name ? *rule.container_name : std::string_view();
  for (const Exit& exit : exits) {
    if (exit.code == 0) continue;
    if (!wanted.empty() && wanted != *exit.container) continue;
    bool listed = std::find(rule.values.begin(), rule.values.end(), exit.code) != rule.values.end();
    if ((rule.op == "In" && listed) || (rule.op == "NotIn" && !listed)) return &exit;
  }
  return nullptr;
}

const PodCondition* matching(const std::vector<PodConditionPattern>& patterns,
                             const std::vector<PodCondition>& conditions) {
  for (const PodCondition& condition : conditions)
    for (const PodConditionPattern& pattern : patterns)
      if (pattern.type == condition.type && pattern.status == condition.status) return &condition;
  return nullptr;
}

// none: unknown action; its rule is skipped.
FailureAction action_of(const std::string& text) {
  if (text == "Count") return FailureAction::count;
  if (text == "Ignore") return FailureAction::ignore;
  if (text == "FailIndex") return FailureAction::fail_index;
  if (text == "FailJob") return FailureAction::fail_job;
  return FailureAction::none;
}

bool disrupted_enough(const Job& job, const Pod& pod) {
  const auto most = disruptions_max(job.object().meta.annotations);
  return most && job.per_index() && pod.disruptions >= *most && is_disrupted(pod);
}

}  // namespace

PolicyMatch match_failure(const Job& job, const Pod& pod, const Gates& gates) {
  const auto& policy = job.spec().pod_failure_policy;
  if (!policy) return {};
  const JobMeta& meta = job.object().meta;
  std::vector<Exit> exits = exits_of(job.spec(), pod);
  std::vector<PodCondition> conditions =
      pod_conditions(pod, job.gated(), job.spec().pod.init_containers);
  for (size_t i = 0; i < policy->rules.size(); ++i) {
    const FailureRule& rule = policy->rules[i];
    FailureAction action = action_of(rule.action);
    if (action == FailureAction::none) continue;
    if (action == FailureAction::fail_index && !gates.backoff_limit_per_index) continue;
    std::string found;
    if (rule.on_exit_codes) {
      const Exit* exit = matching(*rule.on_exit_codes, exits);
      if (!exit) continue;
      found = "Container " + *exit->container + " for pod " + meta.ns + "/" +
              pod_name(meta.name, meta.uid, job.indexed(), pod.key) + " failed with exit code " +
              std::to_string(exit->code);
    } else {
      const PodCondition* condition = matching(rule.on_pod_conditions, conditions);
      if (!condition) continue;
      found = "Pod " + meta.ns + "/" + pod_name(meta.name, meta.uid, job.indexed(), pod.key) +
              " has condition " + condition->type;
    }
    if (action == FailureAction::ignore && disrupted_enough(job, pod))
      return {.action = FailureAction::count, .message = "", .capped = true};
    return {action, found + " matching FailJob rule at index " + std::to_string(i)};
  }
  return {};
}

}  // namespace muster::core
