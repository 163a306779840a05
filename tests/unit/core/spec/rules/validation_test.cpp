// One case for each row of job-semantics 1.6, in its order, and for the template rules of 1.7.
#include "core/spec/rules/validation.hpp"

#include "core/spec/fields/annotations.hpp"
#include "tests/unit/core/sample_job.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace muster::core {
namespace {

using Found = std::multiset<std::string>;
using Edit = std::function<void(SampleJob&)>;

struct Row {
  const char* rule;
  bool indexed;
  Edit edit;  // applied to the user's input
  Found expected;
};

FailureRule on_codes(std::string action, std::string op, std::vector<int32_t> values) {
  return {std::move(action), OnExitCodes{{}, std::move(op), std::move(values)}, {}};
}
FailureRule on_conditions(std::vector<PodConditionPattern> patterns) {
  return {"Ignore", {}, std::move(patterns)};
}
Edit rules(std::vector<FailureRule> list) {
  return [list](SampleJob& j) { j.spec.pod_failure_policy = FailurePolicy{list}; };
}
Edit success(std::vector<SuccessRule> list) {
  return [list](SampleJob& j) { j.spec.success_policy = SuccessPolicy{list}; };
}
std::string many_indexes(uint32_t last) {
  std::string text = "0";
  for (uint32_t i = 2; i <= last; i += 2) text += "," + std::to_string(i);
  return text;
}

const std::string kRule = "spec.podFailurePolicy.rules[0]";
const std::string kSuccess = "spec.successPolicy.rules[0]";
const std::string kMain = "spec.template.spec.containers[0]";

std::vector<Row> rows() {
  const bool N = false, I = true;
  using J = SampleJob;
  return {
      {"1 no name", N, [](J& j) { j.meta.name = ""; }, {"metadata.name Required"}},
      {"1 bad name", N, [](J& j) { j.meta.name = "A_b"; }, {"metadata.name Invalid"}},
      {"2", N, [](J& j) { j.meta.uid = ""; }, {"metadata.uid Required"}},
      {"3 other value",
       N,
       [](J& j) { j.spec.pod.labels["job-name"] = "other"; },
       {"spec.template.metadata.labels[job-name] Invalid"}},
      {"4",
       N,
       [](J& j) {
         j.spec.selector.emplace().match_labels["a"] = "b";
         j.spec.pod.labels["a"] = "b";
       },
       {"spec.selector Invalid"}},
      {"5", N, [](J& j) { j.spec.parallelism = -1; }, {"spec.parallelism Invalid"}},
      {"6", N, [](J& j) { j.spec.completions = -1; }, {"spec.completions Invalid"}},
      {"7", N, [](J& j) { j.spec.active_deadline_s = -1; }, {"spec.activeDeadlineSeconds Invalid"}},
      {"7 zero", N, [](J& j) { j.spec.active_deadline_s = 0; }, {}},
      {"8", N, [](J& j) { j.spec.backoff_limit = -1; }, {"spec.backoffLimit Invalid"}},
      {"9", N, [](J& j) { j.spec.ttl_s = -1; }, {"spec.ttlSecondsAfterFinished Invalid"}},
      {"10",
       I,
       [](J& j) { j.spec.backoff_limit_per_index = -1; },
       {"spec.backoffLimitPerIndex Invalid"}},
      {"11",
       I,
       [](J& j) {
         j.spec.backoff_limit_per_index = 1;
         j.spec.max_failed_indexes = -1;
       },
       {"spec.maxFailedIndexes Invalid"}},
      {"12",
       I,
       [](J& j) { j.spec.max_failed_indexes = 1; },
       {"spec.backoffLimitPerIndex Required"}},
      {"13 empty", N, [](J& j) { j.spec.managed_by = ""; }, {"spec.managedBy Required"}},
      {"13 no slash",
       N,
       [](J& j) { j.spec.managed_by = "invalid custom controller name"; },
       {"spec.managedBy Invalid"}},
      {"13 bad domain", N, [](J& j) { j.spec.managed_by = "A/b"; }, {"spec.managedBy Invalid"}},
      {"13 bad path", N, [](J& j) { j.spec.managed_by = "a/b c"; }, {"spec.managedBy Invalid"}},
      {"13 fine", N, [](J& j) { j.spec.managed_by = "a.io/b/c%20"; }, {}},
      {"14",
       N,
       [](J& j) { j.spec.managed_by = "a.io/" + std::string(59, 'x'); },
       {"spec.managedBy TooLong"}},
      {"15",
       N,
       [](J& j) { j.spec.completion_mode = "Ordered"; },
       {"spec.completionMode NotSupported"}},
      {"15 hides 23",
       N,
       [](J& j) {
         j.spec.completion_mode = "Ordered";
         j.spec.backoff_limit_per_index = 1;
       },
       {"spec.completionMode NotSupported"}},
      {"16", I, [](J& j) { j.spec.completions.reset(); }, {"spec.completions Required"}},
      {"17", I, [](J& j) { j.spec.parallelism = 100'001; }, {"spec.parallelism Invalid"}},
      {"17 most", I, [](J& j) { j.spec.parallelism = 100'000; }, {}},
      {"18",
       I,
       [](J& j) {
         j.spec.backoff_limit_per_index = 1;
         j.spec.max_failed_indexes = 6;
       },
       {"spec.maxFailedIndexes Invalid"}},
      {"19 and 22",
       I,
       [](J& j) {
         j.spec.completions = 200'000;
         j.spec.backoff_limit_per_index = 1;
         j.spec.max_failed_indexes = 100'001;
       },
       {"spec.maxFailedIndexes Invalid", "spec.maxFailedIndexes Invalid"}},
      {"20",
       I,
       [](J& j) {
         j.spec.completions = 100'001;
         j.spec.backoff_limit_per_index = 1;
       },
       {"spec.maxFailedIndexes Required"}},
      {"21",
       I,
       [](J& j) {
         j.spec.completions = 100'001;
         j.spec.backoff_limit_per_index = 1;
         j.spec.max_failed_indexes = 1;
         j.spec.parallelism = 10'001;
       },
       {"spec.parallelism Invalid"}},
      {"22",
       I,
       [](J& j) {
         j.spec.completions = 100'001;
         j.spec.backoff_limit_per_index = 1;
         j.spec.max_failed_indexes = 10'001;
       },
       {"spec.maxFailedIndexes Invalid"}},
      {"20 to 22 at the threshold",
       I,
       [](J& j) {
         j.spec.completions = 100'000;
         j.spec.parallelism = 100'000;
         j.spec.backoff_limit_per_index = 1;
         j.spec.max_failed_indexes = 100'000;
       },
       {}},
      {"23",
       N,
       [](J& j) { j.spec.backoff_limit_per_index = 1; },
       {"spec.backoffLimitPerIndex Invalid"}},
      {"24",
       N,
       [](J& j) {
         j.spec.backoff_limit_per_index = 1;
         j.spec.max_failed_indexes = 1;
       },
       {"spec.backoffLimitPerIndex Invalid", "spec.maxFailedIndexes Invalid"}},
      {"25",
       N,
       rules(std::vector<FailureRule>(21, on_codes("Count", "In", {1}))),
       {"spec.podFailurePolicy.rules TooMany"}},
      {"25 none", N, rules({}), {}},
      {"26", N, rules({on_codes("", "In", {1})}), {kRule + ".action Required"}},
      {"27", N, rules({on_codes("FailIndex", "In", {1})}), {kRule + ".action Invalid"}},
      {"28", N, rules({on_codes("Panic", "In", {1})}), {kRule + ".action NotSupported"}},
      {"29 empty",
       N,
       rules({on_codes("Count", "", {1})}),
       {kRule + ".onExitCodes.operator Required"}},
      {"29",
       N,
       rules({on_codes("Count", "Exists", {1})}),
       {kRule + ".onExitCodes.operator NotSupported"}},
      {"30",
       N,
       rules({{"Count", OnExitCodes{"absent", "In", {1}}, {}}}),
       {kRule + ".onExitCodes.containerName Invalid"}},
      {"30 empty",
       N,
       rules({{"Count", OnExitCodes{"", "In", {1}}, {}}}),
       {kRule + ".onExitCodes.containerName Invalid"}},
      {"30 fine", N, rules({{"Count", OnExitCodes{"main", "In", {1}}, {}}}), {}},
      {"31", N, rules({on_codes("Count", "In", {})}), {kRule + ".onExitCodes.values Invalid"}},
      {"32",
       N,
       [](J& j) {
         std::vector<int32_t> values(256);
         for (int32_t i = 0; i < 256; ++i) values[static_cast<size_t>(i)] = i + 1;
         rules({on_codes("Count", "In", values)})(j);
       },
       {kRule + ".onExitCodes.values TooMany"}},
      {"33",
       N,
       rules({on_codes("Count", "In", {0, 1, 2})}),
       {kRule + ".onExitCodes.values[0] Invalid"}},
      {"33 NotIn, negative", N, rules({on_codes("Count", "NotIn", {-1, 0, 1})}), {}},
      {"34",
       N,
       rules({on_codes("Count", "In", {11, 11})}),
       {kRule + ".onExitCodes.values[1] Duplicate"}},
      {"35",
       N,
       rules({on_codes("Count", "In", {13, 12})}),
       {kRule + ".onExitCodes.values Invalid"}},
      {"36",
       N,
       rules({on_conditions(std::vector<PodConditionPattern>(21, {"A", "True"}))}),
       {kRule + ".onPodConditions TooMany"}},
      {"37",
       N,
       rules({on_conditions({{"Invalid Condition Type", "True"}})}),
       {kRule + ".onPodConditions[0].type Invalid"}},
      {"37 prefix", N, rules({on_conditions({{"a.io/B_c.d", "True"}})}), {}},
      {"38",
       N,
       rules({on_conditions({{"A", "Maybe"}})}),
       {kRule + ".onPodConditions[0].status NotSupported"}},
      {"39",
       N,
       rules({{"Ignore", OnExitCodes{{}, "In", {2}}, {{"A", "True"}}}}),
       {kRule + " Invalid"}},
      {"40", N, rules({{"Ignore", {}, {}}}), {kRule + " Invalid"}},
      {"41", N, success({{{}, 1}}), {"spec.successPolicy Invalid"}},
      {"42", I, success({}), {"spec.successPolicy.rules Required"}},
      {"43",
       I,
       success(std::vector<SuccessRule>(21, {{}, 1})),
       {"spec.successPolicy.rules TooMany"}},
      {"44", I, success({{}}), {kSuccess + " Required"}},
      {"45",
       I,
       [](J& j) {
         j.spec.completions = 100'000;
         success({{many_indexes(30'000), {}}})(j);
       },
       {kSuccess + ".succeededIndexes TooLong"}},
      {"46", I, success({{"3,1", {}}}), {kSuccess + ".succeededIndexes Invalid"}},
      {"46 too large", I, success({{"5", {}}}), {kSuccess + ".succeededIndexes Invalid"}},
      {"46 empty", I, success({{"", {}}}), {}},
      {"47", I, success({{{}, -1}}), {kSuccess + ".succeededCount Invalid"}},
      {"47 zero", I, success({{{}, 0}}), {}},
      {"48", I, success({{{}, 6}}), {kSuccess + ".succeededCount Invalid"}},
      {"49", I, success({{"0-2", 4}}), {kSuccess + ".succeededCount Invalid"}},
      {"49 malformed",
       I,
       success({{"x", 1}}),
       {kSuccess + ".succeededIndexes Invalid", kSuccess + ".succeededCount Invalid"}},
      {"16 alone with successPolicy",
       I,
       [](J& j) {
         j.spec.completions.reset();
         success({{"0-2", 1}})(j);
       },
       {"spec.completions Required"}},
      {"50",
       N,
       [](J& j) { j.spec.pod_replacement_policy = "Never"; },
       {"spec.podReplacementPolicy NotSupported"}},
      {"50 with a policy",
       N,
       [](J& j) {
         rules({})(j);
         j.spec.pod_replacement_policy = "TerminatingOrFailed";
       },
       {"spec.podReplacementPolicy NotSupported"}},
      {"52",
       N,
       [](J& j) { j.spec.pod.restart_policy = "Always"; },
       {"spec.template.spec.restartPolicy Required"}},
      {"52 empty",
       N,
       [](J& j) { j.spec.pod.restart_policy = ""; },
       {"spec.template.spec.restartPolicy Required"}},
      {"53",
       N,
       [](J& j) { j.spec.pod.restart_policy = "Often"; },
       {"spec.template.spec.restartPolicy NotSupported"}},
      {"54",
       N,
       [](J& j) {
         rules({})(j);
         j.spec.pod.restart_policy = "OnFailure";
       },
       {"spec.template.spec.restartPolicy Invalid"}},
      {"55 and 56",
       N,
       [](J& j) { j.spec.manual_selector = true; },
       {"spec.selector Required", "spec.template.metadata.labels Invalid"}},
      {"55 malformed",
       N,
       [](J& j) {
         j.spec.manual_selector = true;
         j.spec.selector.emplace().match_expressions = {{"a", "NotIn", {}}};
       },
       {"spec.selector.matchExpressions[0].values Required"}},
      {"56",
       N,
       [](J& j) {
         j.spec.manual_selector = true;
         j.spec.selector.emplace().match_labels["a"] = "b";
       },
       {"spec.template.metadata.labels Invalid"}},
      {"56 fine",
       N,
       [](J& j) {
         j.spec.manual_selector = true;
         j.spec.selector.emplace().match_labels["a"] = "b";
         j.spec.pod.labels["a"] = "b";
       },
       {}},
      {"57", I, [](J& j) { j.meta.name = std::string(62, 'a'); }, {"metadata.name Invalid"}},
      {"57 longest", I, [](J& j) { j.meta.name = std::string(61, 'a'); }, {}},
      {"57 dots", I, [](J& j) { j.meta.name = "a.b"; }, {"metadata.name Invalid"}},
      {"57 not NonIndexed", N, [](J& j) { j.meta.name = "a.b"; }, {}},

      {"no containers",
       N,
       [](J& j) { j.spec.pod.containers.clear(); },
       {"spec.template.spec.containers Required"}},
      {"no container name",
       N,
       [](J& j) { j.spec.pod.containers[0].name = ""; },
       {kMain + ".name Required"}},
      {"bad container name",
       N,
       [](J& j) { j.spec.pod.containers[0].name = "A"; },
       {kMain + ".name Invalid"}},
      {"same name",
       N,
       [](J& j) { j.spec.pod.containers.push_back(j.spec.pod.containers[0]); },
       {"spec.template.spec.containers[1].name Duplicate"}},
      {"same name, init",
       N,
       [](J& j) { j.spec.pod.init_containers.push_back(j.spec.pod.containers[0]); },
       {"spec.template.spec.initContainers[0].name Duplicate"}},
      {"env names",
       N,
       [](J& j) {
         j.spec.pod.containers[0].env = {{"", "", ""}, {"A=B", "", ""}, {"A.b-c", "", ""}};
       },
       {kMain + ".env[0].name Required", kMain + ".env[1].name Invalid"}},
      {"env field",
       N,
       [](J& j) {
         j.spec.pod.containers[0].env = {{"A", "", "metadata.labels['a']"},
                                         {"B", "", "spec.x"},
                                         {"C", "", "status.podIPs"},
                                         {"D", "", "status.phase"},
                                         {"E", "", "spec.serviceAccountName"}};
       },
       {kMain + ".env[1].valueFrom.fieldRef.fieldPath NotSupported",
        kMain + ".env[3].valueFrom.fieldRef.fieldPath NotSupported"}},
      {"env amounts",
       N,
       [](J& j) {
         auto& env = j.spec.pod.containers[0].env;
         env = {{"A", "", ""}, {"B", "v", ""}, {"C", "", ""}};
         env[0].resource = core::ResourceRef{"", "limits.cpu", "1m"};
         env[1].resource = core::ResourceRef{"", "requests.memory", ""};
         env[2].resource = core::ResourceRef{"other", "limits.gpu", ""};
       },
       {kMain + ".env[1].valueFrom Invalid",
        kMain + ".env[2].valueFrom.resourceFieldRef.containerName NotFound",
        kMain + ".env[2].valueFrom.resourceFieldRef.resource NotSupported"}},
      {"security contexts",
       N,
       [](J& j) {
         j.spec.pod.security = {.run_as_user = 0, .run_as_group = -1, .run_as_non_root = true};
         j.spec.pod.containers[0].security.dropped_capabilities = {"ALL", "NET_RAW", "NET"};
         j.spec.pod.init_containers = j.spec.pod.containers;
         j.spec.pod.init_containers[0] = {.name = "other"};
         j.spec.pod.init_containers[0].security = {.run_as_user = int64_t{1} << 31};
       },
       {"spec.template.spec.securityContext.runAsGroup Invalid",
        "spec.template.spec.securityContext.runAsUser Invalid",
        kMain + ".securityContext.capabilities.drop[2] Invalid",
        "spec.template.spec.initContainers[0].securityContext.runAsUser Invalid"}},
      {"node",
       N,
       [](J& j) {
         j.spec.pod.node_name = "N_1";
         j.spec.pod.scheduling_gates = {"a.b/c"};
       },
       {"spec.template.spec.nodeName Invalid", "spec.template.spec.nodeName Forbidden"}},
      {"node affinity",
       N,
       [](J& j) {
         j.spec.pod.node_affinity.preferred = {{0, {}}};
       },
       {"spec.template.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
        "[0].weight Invalid"}},
      {"config maps",
       N,
       [](J& j) {
         using C = core::ConfigKeyRef;
         auto& container = j.spec.pod.containers[0];
         container.env = {{"A", "", "", {}, C{"cfg", "a.b", true}},
                          {"B", "", "", {}, C{"", "", false}},
                          {"C", "", "", {}, C{"../x", "a/b", false}},
                          {"D", "v", "metadata.name", {}, C{"cfg", "k", false}}};
         container.env_from = {{"", "", false}, {"P=", "A_B", false}, {"P_", "ok", true}};
       },
       {kMain + ".env[1].valueFrom.configMapKeyRef.name Required",
        kMain + ".env[1].valueFrom.configMapKeyRef.key Required",
        kMain + ".env[2].valueFrom.configMapKeyRef.name Invalid",
        kMain + ".env[2].valueFrom.configMapKeyRef.key Invalid",
        kMain + ".env[3].valueFrom Invalid", kMain + ".env[3].valueFrom Invalid",
        kMain + ".envFrom[0].configMapRef.name Required", kMain + ".envFrom[1].prefix Invalid",
        kMain + ".envFrom[1].configMapRef.name Invalid"}},
      {"secrets",
       N,
       [](J& j) {
         using S = core::SecretRef;
         j.spec.pod.containers[0].env = {{"A", "", "", S{"db", "password", true}},
                                         {"B", "", "", S{"", "", false}},
                                         {"C", "", "", S{"../db", "a/b", false}},
                                         {"D", "v", "metadata.name", S{"db", "..", false}}};
       },
       {kMain + ".env[1].valueFrom.secretKeyRef.name Required",
        kMain + ".env[1].valueFrom.secretKeyRef.key Required",
        kMain + ".env[2].valueFrom.secretKeyRef.name Invalid",
        kMain + ".env[2].valueFrom.secretKeyRef.key Invalid", kMain + ".env[3].valueFrom Invalid",
        kMain + ".env[3].valueFrom Invalid", kMain + ".env[3].valueFrom.secretKeyRef.key Invalid"}},
      {"secrets in words",
       N,
       [](J& j) {
         core::Container& main = j.spec.pod.containers[0];
         main.env = {{"EARLY", "$(A)", ""},
                     {"A", "", "", core::SecretRef{"db", "password", false}},
                     {"LATE", "x$(A)", ""},
                     {"QUOTED", "$$(A)", ""},
                     {"B", "", "", core::SecretRef{"db", "user", false}},
                     {"B", "public", ""}};
         main.command = {"run", "--password=$(A)"};
         main.args = {"$(B)", "$(A)"};
       },
       {kMain + ".env[2].value Invalid", kMain + ".command[1] Invalid",
        kMain + ".args[1] Invalid"}},
      {"request above limit",
       N,
       [](J& j) {
         j.spec.pod.containers[0].resources = {{{"cpu", "1100m"}}, {{"cpu", "1"}}};
       },
       {kMain + ".resources.requests Invalid"}},
      {"negative",
       N,
       [](J& j) {
         j.spec.pod.containers[0].resources = {{{"cpu", "-1"}}, {}};
       },
       {kMain + ".resources.requests[cpu] Invalid"}},
      {"no quantity",
       N,
       [](J& j) {
         j.spec.pod.containers[0].resources = {{}, {{"memory", "1Gb"}}};
       },
       {kMain + ".resources.limits[memory] Invalid"}},
      {"pod deadline",
       N,
       [](J& j) { j.spec.pod.active_deadline_s = 0; },
       {"spec.template.spec.activeDeadlineSeconds Invalid"}},
      {"label value",
       N,
       [](J& j) { j.meta.name = std::string(64, 'a'); },
       {"spec.template.labels Invalid", "spec.template.labels Invalid"}},  // two name labels
      {"toleration",
       N,
       [](J& j) {
         j.spec.pod.tolerations = {{"a", "Is", "", "Never", {}}};
       },
       {"spec.template.spec.tolerations[0].operator NotSupported",
        "spec.template.spec.tolerations[0].effect NotSupported"}},
      {"annotations",
       N,
       [](J& j) {
         j.meta.annotations = {
             {"muster.dev/backoff-base", "100"},  {"muster.dev/backoff-max", "1m"},
             {"muster.dev/restart-delay", "-1s"}, {"muster.dev/gang", "yes"},
             {"muster.dev/restart", "job"},       {"muster.dev/placement", "packed"},
             {"muster.dev/fence-after", "14s"}};
       },
       {"metadata.annotations[muster.dev/backoff-base] Invalid",
        "metadata.annotations[muster.dev/restart-delay] Invalid",
        "metadata.annotations[muster.dev/gang] Invalid",
        "metadata.annotations[muster.dev/restart] Invalid",
        "metadata.annotations[muster.dev/placement] Invalid",
        "metadata.annotations[muster.dev/fence-after] Invalid"}},
      {"a gang that restarts needs indexes",
       N,
       [](J& j) {
         j.meta.annotations = {{"muster.dev/gang", "true"}, {"muster.dev/restart", "gang"}};
       },
       {"metadata.annotations[muster.dev/restart] Invalid"}},
      {"P10: a gang is created at once",
       N,
       [](J& j) {
         j.meta.annotations = {{"muster.dev/gang", "true"}};
         j.spec.completions.reset();
         j.spec.parallelism = 2'000'000'000;
       },
       {"spec.parallelism Invalid"}},
      {"P10: a gang is as large as its completions",
       I,
       [](J& j) {
         j.meta.annotations = {{"muster.dev/gang", "true"}};
         j.spec.completions = 10'000;
         j.spec.parallelism = 10'001;
       },
       {}},
      {"only a gang restarts as one",
       I,
       [](J& j) {
         j.meta.annotations = {{"muster.dev/restart", "gang"}};
       },
       {"metadata.annotations[muster.dev/restart] Invalid"}},
      {"not even an MPI job that is none",
       I,
       [](J& j) {
         j.meta.annotations = {{"muster.dev/mpi", "auto"},
                               {"muster.dev/gang", "false"},
                               {"muster.dev/restart", "gang"}};
       },
       {"metadata.annotations[muster.dev/restart] Invalid"}},
      {"an MPI job that restarts as one",
       I,
       [](J& j) {
         j.meta.annotations = {{"muster.dev/mpi", "auto"},
                               {"muster.dev/restart", "gang"},
                               {"muster.dev/placement", "pack"}};
       },
       {}},
      {"an MPI job needs indexes",
       N,
       [](J& j) {
         j.meta.annotations = {{"muster.dev/mpi", "auto"}};
       },
       {"metadata.annotations[muster.dev/mpi] Invalid"}},
      {"a line for each index",
       I,
       [](J& j) {
         j.spec.completions = 2;
         j.spec.parallelism = 2;
         j.meta.annotations = {{"muster.dev/inputs", "a\nb\n"}};
       },
       {}},
      {"too few lines",
       I,
       [](J& j) {
         j.spec.completions = 3;
         j.meta.annotations = {{"muster.dev/inputs", "a\nb\n"}};
       },
       {"metadata.annotations[muster.dev/inputs] Invalid"}},
      {"inputs need indexes",
       N,
       [](J& j) {
         j.meta.annotations = {{"muster.dev/inputs-file", "/list"}};
       },
       {"metadata.annotations[muster.dev/inputs-file] Invalid"}},
      {"where relative inputs are is unknown",
       I,
       [](J& j) {
         j.meta.annotations = {{"muster.dev/inputs-file", "list"}};
       },
       {"metadata.annotations[muster.dev/inputs-file] Invalid"}},
      {"inputs from one place",
       I,
       [](J& j) {
         j.spec.completions = 1;
         j.meta.annotations = {{"muster.dev/inputs-file", "/list"}, {"muster.dev/inputs", "a"}};
       },
       {"metadata.annotations[muster.dev/inputs-file] Forbidden"}},
      {"all together",
       N,
       [](J& j) {
         j.spec.parallelism = -1;
         j.spec.completions = -2;
         j.spec.backoff_limit = -3;
       },
       {"spec.parallelism Invalid", "spec.completions Invalid", "spec.backoffLimit Invalid"}},
  };
}

TEST(Validation, EachRuleNamesInvalidField) {
  for (const Row& row : rows()) {
    SampleJob job = SampleJob::bare(row.indexed);
    row.edit(job);
    job.admit();
    EXPECT_EQ(summary(validate_create(job.meta, job.spec)), row.expected) << "row " << row.rule;
  }
}

// Rows that defaults or generated values would hide.
TEST(Validation, RulesHiddenByDefaultsNameInvalidField) {
  SampleJob job = SampleJob::bare();
  rules({on_conditions({{"A", ""}})})(job);
  job.spec.selector.emplace();
  job.spec.pod_replacement_policy = "Failed";
  job.spec.completion_mode = "NonIndexed";
  Found labels;
  for (const char* key : {"batch.kubernetes.io/controller-uid", "controller-uid",
                          "batch.kubernetes.io/job-name", "job-name"})
    labels.insert("spec.template.metadata.labels[" + std::string(key) + "] Required");
  labels.insert(kRule + ".onPodConditions[0].status Required");
  EXPECT_EQ(summary(validate_create(job.meta, job.spec)), labels);
}

TEST(Validation, ViolationsHaveValueAndDetail) {
  SampleJob job = SampleJob::bare(true);
  job.spec.parallelism = 100'001;
  job.spec.completion_mode = "Indexed";
  success({{"3,1", 9}})(job);
  job.admit();
  Violations found = validate_create(job.meta, job.spec);
  ASSERT_EQ(found.list().size(), 4u);
  using Kind = Violation::Kind;
  EXPECT_EQ(found.list()[0],
            (Violation{"spec.parallelism", Kind::invalid, "100001",
                       "must be less than or equal to 100000 when completion mode is Indexed"}));
  EXPECT_EQ(found.list()[1],
            (Violation{kSuccess + ".succeededIndexes", Kind::invalid, "\"3,1\"",
                       "error parsing succeededIndexes: non-increasing order, previous: 3, "
                       "current: 1"}));
  EXPECT_EQ(found.list()[2].detail,
            "must be less than or equal to 5 (the number of specified completions)");
  EXPECT_EQ(found.list()[3].detail,
            "must be less than or equal to 0 (the number of indexes in the specified "
            "succeededIndexes field)");
}

TEST(Annotations, AreRead) {
  auto read = read_annotations({{"muster.dev/backoff-base", "100ms"}, {"muster.dev/gang", "true"}});
  EXPECT_EQ(read.backoff_base_ms, 100);
  EXPECT_FALSE(read.backoff_max_ms);
  EXPECT_EQ(read.restart_delay_ms, 10'000);
  EXPECT_TRUE(read.gang);
  EXPECT_FALSE(read.restart_gang);
  EXPECT_EQ(read.placement, PlacementChoice::usual);
  read = read_annotations({{"muster.dev/mpi", "auto"},
                           {"muster.dev/restart", "gang"},
                           {"muster.dev/placement", "spread"}});
  EXPECT_TRUE(read.restart_gang);
  EXPECT_EQ(read.placement, PlacementChoice::spread);
  EXPECT_FALSE(read_annotations({{"muster.dev/restart", "gang"}}).restart_gang) << "no gang";
}

TEST(Annotations, AWrongWordIsAnsweredWithTheRightOnes) {
  Violations found;
  validate_annotations({{"muster.dev/restart", "all"}, {"muster.dev/placement", "dense"}}, found);
  ASSERT_EQ(found.list().size(), 2u);
  EXPECT_EQ(found.list()[0].detail, "must be \"pod\" or \"gang\"");
  EXPECT_EQ(found.list()[1].detail, "must be \"pack\" or \"spread\"");
}

}  // namespace
}  // namespace muster::core
