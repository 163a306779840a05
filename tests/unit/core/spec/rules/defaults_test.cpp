#include "core/spec/rules/defaults.hpp"

#include "tests/unit/core/sample_job.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

TEST(Defaults, FillInBareJob) {
  auto [meta, spec] = SampleJob::bare();
  apply_defaults(meta, spec);
  EXPECT_EQ(spec.completions, 1);
  EXPECT_EQ(spec.parallelism, 1);
  EXPECT_EQ(spec.backoff_limit, 6);
  EXPECT_EQ(spec.completion_mode, "NonIndexed");
  EXPECT_EQ(spec.suspend, false);
  EXPECT_EQ(spec.manual_selector, false);
  EXPECT_EQ(spec.pod_replacement_policy, "TerminatingOrFailed");
  EXPECT_EQ(spec.pod.termination_grace_s, 30);
  EXPECT_FALSE(spec.max_failed_indexes);
}

TEST(Defaults, LeaveCompletionsOfWorkQueueUnset) {
  auto [meta, spec] = SampleJob::bare();
  spec.parallelism = 5;
  apply_defaults(meta, spec);
  EXPECT_FALSE(spec.completions);
}

TEST(Defaults, SetParallelismToOneWithCompletions) {
  auto [meta, spec] = SampleJob::bare();
  spec.completions = 5;
  apply_defaults(meta, spec);
  EXPECT_EQ(spec.parallelism, 1);
}

TEST(Defaults, LiftBackoffLimitWithBackoffLimitPerIndex) {
  auto [meta, spec] = SampleJob::bare(true);
  spec.backoff_limit_per_index = 1;
  apply_defaults(meta, spec);
  EXPECT_EQ(spec.backoff_limit, 2147483647);
}

TEST(Defaults, FillInPodFailurePolicy) {
  auto [meta, spec] = SampleJob::bare();
  FailureRule rule{"Ignore", {}, {{"DisruptionTarget", ""}, {"Other", "False"}}};
  spec.pod_failure_policy.emplace().rules.push_back(rule);
  apply_defaults(meta, spec);
  EXPECT_EQ(spec.pod_replacement_policy, "Failed");
  EXPECT_EQ(spec.pod_failure_policy->rules[0].on_pod_conditions[0].status, "True");
  EXPECT_EQ(spec.pod_failure_policy->rules[0].on_pod_conditions[1].status, "False");
}

TEST(Defaults, LabelsComeFromTheTemplate) {
  auto [meta, spec] = SampleJob::bare();
  spec.pod.labels = {{"app", "x"}};
  apply_defaults(meta, spec);
  EXPECT_EQ(meta.labels, spec.pod.labels);
  meta.labels = {{"own", "y"}};
  apply_defaults(meta, spec);
  EXPECT_EQ(meta.labels, (StringMap{{"own", "y"}}));
}

TEST(Defaults, GenerateSelectorAndPodLabels) {
  auto [meta, spec] = SampleJob::bare();
  spec.pod.labels = {{"job-name", "mine"}};
  generate_selector(meta, spec);
  EXPECT_EQ(spec.selector->match_labels,
            (StringMap{{"batch.kubernetes.io/controller-uid", meta.uid}}));
  EXPECT_EQ(spec.pod.labels, (StringMap{{"batch.kubernetes.io/controller-uid", meta.uid},
                                        {"controller-uid", meta.uid},
                                        {"batch.kubernetes.io/job-name", "v"},
                                        {"job-name", "mine"}}));
}

TEST(Defaults, AManualSelectorIsLeftAlone) {
  auto [meta, spec] = SampleJob::bare();
  spec.manual_selector = true;
  generate_selector(meta, spec);
  EXPECT_FALSE(spec.selector);
  EXPECT_TRUE(spec.pod.labels.empty());
}

}  // namespace
}  // namespace muster::core
