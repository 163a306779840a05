#include "drill/proof/canary.hpp"

#include "core/spec/fields/annotations.hpp"
#include "core/spec/values/duration.hpp"

namespace muster::cli::drill {

uint64_t mixed(uint64_t seed, uint64_t number) {
  uint64_t z = (seed + 1) * 0x9e3779b97f4a7c15u + number * 0xd1342543de82ef95u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint32_t failing_attempts(const Canary& canary, uint32_t index) {
  constexpr uint32_t kAlways = kCanaryRetries + 1;
  if (index == canary.seed % canary.indexes) return kAlways;  // at least one
  const uint64_t chance = mixed(canary.seed, index) % 100;
  return chance < 4 ? kAlways : chance < 14 ? 2 : chance < 34 ? 1 : 0;
}

Work work_of(const Canary& canary, PodKey pod) {
  const uint64_t number = mixed(canary.seed ^ 0x5eed, uint64_t{pod.index} << 20 | pod.attempt);
  Work work;
  const bool one_long = pod.index == (canary.seed + 1) % canary.indexes;  // at least one
  const bool is_long = one_long || (mixed(canary.seed, pod.index) >> 32) % 20 == 0;
  work.span_ms = is_long ? canary.long_ms
                         : canary.short_ms / 2 +
                               static_cast<Millis>(number % static_cast<uint64_t>(canary.short_ms));
  if (pod.attempt < failing_attempts(canary, pod.index))
    work.code = static_cast<int32_t>(3 + (number >> 32) % 50);
  else if (failing_attempts(canary, pod.index) > kCanaryRetries)
    work.code = 2;  // including attempts beyond the retries, which disruptions may add
  return work;
}

uint32_t expected_ends(const Canary& canary) {
  uint32_t ends = 0;
  for (uint32_t i = 0; i < canary.indexes; ++i) {
    const uint32_t failing = failing_attempts(canary, i);
    ends += failing > kCanaryRetries ? kCanaryRetries + 1 : failing + 1;
  }
  return ends;
}

std::string begin_text(PodKey pod, const std::string& uid) {
  return "canary " + to_string(pod) + " begins as " + uid + "\n";
}

std::string end_text(PodKey pod, int32_t code) {
  return "canary " + to_string(pod) + " ends with " + std::to_string(code) + "\n";
}

core::JobSpec canary_spec(const Canary& canary) {
  core::JobSpec spec;
  spec.completion_mode = "Indexed";
  spec.completions = static_cast<int32_t>(canary.indexes);
  spec.parallelism = static_cast<int32_t>(canary.parallelism);
  spec.backoff_limit_per_index = kCanaryRetries;
  core::FailureRule rule;
  rule.action = "Ignore";
  rule.on_pod_conditions = {{"DisruptionTarget", "True"}};
  spec.pod_failure_policy = core::FailurePolicy{{rule}};
  spec.pod.restart_policy = "Never";
  spec.pod.termination_grace_s = 1;
  spec.pod.containers.resize(1);
  spec.pod.containers[0].name = "main";
  return spec;
}

Json manifest(const Canary& canary, const CanaryJob& job) {
  const core::JobSpec spec = canary_spec(canary);
  Json pattern = {{"type", "DisruptionTarget"}, {"status", "True"}};
  Json rule = {{"action", spec.pod_failure_policy->rules[0].action},
               {"onPodConditions", Json::array({pattern})}};
  Json pod = {
      {"restartPolicy", spec.pod.restart_policy},
      {"terminationGracePeriodSeconds", *spec.pod.termination_grace_s},
      {"containers",
       Json::array({Json{{"name", spec.pod.containers[0].name}, {"command", job.command}}})}};
  for (const auto& [key, value] : job.nodes) pod["nodeSelector"][key] = value;
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata",
           {{"name", job.name},
            {"namespace", job.ns},
            {"annotations",
             {{core::kBackoffBaseKey, core::duration_text(kCanaryBackoffBase)},
              {core::kBackoffMaxKey, core::duration_text(kCanaryBackoffMax)}}}}},
          {"spec",
           {{"completionMode", spec.completion_mode},
            {"completions", *spec.completions},
            {"parallelism", *spec.parallelism},
            {"backoffLimitPerIndex", *spec.backoff_limit_per_index},
            {"podFailurePolicy", {{"rules", Json::array({rule})}}},
            {"template", {{"spec", pod}}}}}};
}

}  // namespace muster::cli::drill
