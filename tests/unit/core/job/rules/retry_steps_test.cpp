// muster.dev/retry-memory and muster.dev/retry-time: what the next attempt has after one that ran
// out of it, and what that costs.
#include "core/spec/rules/retry_steps.hpp"

#include "core/cluster/nodes/demand.hpp"
#include "tests/unit/core/job/play.hpp"

namespace muster::core {
namespace {

JobSpec stepping(int32_t completions, int32_t retries = 0) {
  JobSpec spec = Play::indexed(completions, completions);
  spec.backoff_limit_per_index = retries;
  spec.pod.active_deadline_s = 3600;
  Container main;
  main.name = "main";
  main.resources.limits["memory"] = "4Gi";
  spec.pod.containers = {main};
  return spec;
}

void with_both(JobMeta& meta) {
  meta.annotations["muster.dev/retry-memory"] = "8Gi,16Gi";
  meta.annotations["muster.dev/retry-time"] = "2h";
}

void ran_out(Play& play, PodKey pod, EndCause cause) {
  play.start(pod);
  play.end(pod, 137, cause);
}
void await_pod(Play& play, PodKey pod) {
  for (int i = 0; i < 1'000 && !play.pod(pod); ++i) play.tick(1'000);
  ASSERT_TRUE(play.pod(pod)) << to_string(pod);
}

constexpr auto kOutOfMemory = EndCause::out_of_memory;
constexpr auto kOutOfTime = EndCause::deadline;

TEST(RetrySteps, EachStepIsARetryThatCostsNothing) {
  Play play(stepping(1), with_both);
  play.sync();
  EXPECT_EQ(play.pod({0, 0})->steps, Steps{});
  ran_out(play, {0, 0}, kOutOfMemory);
  ASSERT_TRUE(play.pod({0, 1})) << "at once, without a backoff";
  EXPECT_EQ(play.pod({0, 1})->steps, (Steps{1, 0}));
  EXPECT_EQ(play.pod({0, 1})->failures, 0);
  ran_out(play, {0, 1}, kOutOfTime);
  EXPECT_EQ(play.pod({0, 2})->steps, (Steps{1, 1}));
  ran_out(play, {0, 2}, kOutOfMemory);
  EXPECT_EQ(play.pod({0, 3})->steps, (Steps{2, 1}));
  EXPECT_EQ(play.state().failed, 0u);
  ran_out(play, {0, 3}, kOutOfMemory);
  EXPECT_EQ(play.closed(), "0#0 ignored, 0#1 ignored, 0#2 ignored, 0#3 failed")
      << "no step is left, so it counts";
  EXPECT_TRUE(play.state().failed_indexes.contains(0));
}

TEST(RetrySteps, OtherFailuresLeaveTheStepAndCount) {
  Play play(stepping(1, 2), with_both);
  play.sync();
  ran_out(play, {0, 0}, kOutOfMemory);
  ran_out(play, {0, 1}, EndCause::exited);
  await_pod(play, {0, 2});
  EXPECT_EQ(play.pod({0, 2})->steps, (Steps{1, 0}));
  EXPECT_EQ(play.pod({0, 2})->failures, 1);
  ran_out(play, {0, 2}, EndCause::node_lost);
  await_pod(play, {0, 3});
  EXPECT_EQ(play.pod({0, 3})->steps, (Steps{1, 0}));
  ran_out(play, {0, 3}, EndCause::exited);
  EXPECT_TRUE(play.state().failed_indexes.contains(0));
}

TEST(RetrySteps, StepsDoNotLengthenTheBackoff) {
  Play play(stepping(1, 1), with_both);
  play.knobs().backoff_base_ms = 1'000;
  play.sync();
  ran_out(play, {0, 0}, kOutOfMemory);
  ran_out(play, {0, 1}, kOutOfMemory);
  ran_out(play, {0, 2}, EndCause::exited);
  EXPECT_FALSE(play.pod({0, 3})) << "a failure is followed by the usual delay";
  play.tick(1'000);
  EXPECT_TRUE(play.pod({0, 3})) << "that of a first failure";
}

TEST(RetrySteps, StepOfAnIndexSurvivesSuspensionScalingAndRestarts) {
  Play play(stepping(2), with_both);
  play.sync();
  ran_out(play, {1, 0}, kOutOfMemory);
  EXPECT_EQ(play.pod({1, 1})->steps, (Steps{1, 0}));
  play.restart();
  play.update([](JobSpec& spec) { spec.suspend = true; });
  play.end({1, 1}, 143, EndCause::killed);
  play.end({0, 0}, 143, EndCause::killed);
  play.update([](JobSpec& spec) { spec.suspend = false; });
  await_pod(play, {1, 2});
  EXPECT_EQ(play.pod({1, 2})->steps, (Steps{1, 0}));
  EXPECT_EQ(play.pod({0, 1})->steps, Steps{});
  play.update([](JobSpec& spec) { spec.parallelism = 0; });
  play.end({1, 2}, 143, EndCause::killed);
  play.update([](JobSpec& spec) { spec.parallelism = 2; });
  await_pod(play, {1, 3});
  EXPECT_EQ(play.pod({1, 3})->steps, (Steps{1, 0}));
  play.restart();
  play.end({1, 3}, 0);
  EXPECT_TRUE(play.state().completed.contains(1));
  EXPECT_TRUE(play.state().steps.empty()) << "nothing is kept of a completed index";
}

TEST(RetrySteps, IndexThatWasScaledAwayComesBackWithoutSteps) {
  Play play(stepping(2), with_both);
  play.sync();
  ran_out(play, {1, 0}, kOutOfMemory);
  play.update([](JobSpec& spec) { spec.parallelism = spec.completions = 1; });
  play.end({1, 1}, 143, EndCause::killed);
  play.update([](JobSpec& spec) { spec.parallelism = spec.completions = 2; });
  await_pod(play, {1, 2});
  EXPECT_EQ(play.pod({1, 2})->steps, Steps{});
}

TEST(RetrySteps, DeletedPodAndCancelledIndexGetNoMore) {
  Play play(stepping(2), with_both);
  play.sync();
  play.start({0, 0});
  play.sync({Cancellation{1, "alice", IndexSet::parse_lenient("0", kAnyIndex)}});
  play.end({0, 0}, 137, kOutOfMemory);
  EXPECT_FALSE(play.pod({0, 1}));
  play.start({1, 0});
  play.remove({1, 0});
  play.end({1, 0}, 137, kOutOfMemory);
  EXPECT_TRUE(play.state().steps.empty());
}

TEST(RetrySteps, StepComesBeforeThePolicy) {
  JobSpec spec = stepping(1);
  FailureRule rule;
  rule.action = "FailJob";
  rule.on_exit_codes.emplace();
  rule.on_exit_codes->op = "In";
  rule.on_exit_codes->values = {137};
  spec.pod_failure_policy.emplace().rules = {rule};
  Play play(spec, with_both);
  play.sync();
  ran_out(play, {0, 0}, kOutOfMemory);
  EXPECT_FALSE(play.job().decided());
  ran_out(play, {0, 1}, kOutOfMemory);
  ran_out(play, {0, 2}, kOutOfMemory);
  EXPECT_TRUE(play.job().decided()) << "no step is left";
}

TEST(RetrySteps, WithoutTheAnnotationAnEndCountsAsInKubernetes) {
  Play play(stepping(1));
  play.sync();
  ran_out(play, {0, 0}, kOutOfMemory);
  EXPECT_EQ(play.closed(), "0#0 failed");
  EXPECT_TRUE(play.state().failed_indexes.contains(0));
}

TEST(RetrySteps, OperatorsTimeLimitReplacesAllSteps) {
  Play play(stepping(1), with_both);
  play.sync();
  Overrides hour;
  hour.time_limit_s = 1'800;
  play.sync({OverridesChange{1, {}, hour, "olga"}});
  ran_out(play, {0, 0}, kOutOfMemory);
  EXPECT_EQ(play.pod({0, 1})->steps, (Steps{1, 0})) << "memory is not overridden";
  EXPECT_EQ(launched_object(play.job(), {1, 0})->spec.pod.active_deadline_s, 1'800);
  ran_out(play, {0, 1}, kOutOfTime);
  EXPECT_TRUE(play.state().failed_indexes.contains(0));
}

TEST(RetrySteps, GangStepsTogether) {
  Play play(stepping(3), [](JobMeta& meta) {
    with_both(meta);
    meta.annotations["muster.dev/gang"] = "true";
    meta.annotations["muster.dev/restart"] = "gang";
  });
  play.sync();
  for (uint32_t i = 0; i < 3; ++i) play.start({i, 0});
  // The others fail because of the one that was killed, and may be reported first.
  play.sync({PodsReported{
      1, Play::kNode, {}, {Play::ended({0, 0}, 1), Play::ended({1, 0}, 137, kOutOfMemory)}}});
  play.end({2, 0}, 143, EndCause::killed);
  for (uint32_t i = 0; i < 3; ++i) {
    await_pod(play, {i, 1});
    EXPECT_EQ(play.pod({i, 1})->steps, (Steps{1, 0})) << i;
    EXPECT_EQ(play.pod({i, 1})->failures, 0) << i;
  }
}

TEST(RetrySteps, PodsAreBoundToSlotsOfTheirSteps) {
  Play play(stepping(2), with_both);
  play.sync();
  play.start({0, 0});
  play.place(0, {PodsReported{1, Play::kNode, {}, {Play::ended({0, 0}, 137, kOutOfMemory)}}});
  EXPECT_EQ(play.job().slots_wanted(), (AskSlots{0, {{{1, 0}, 1}}}));
  play.place(1);
  EXPECT_FALSE(play.pod({0, 1})->bound()) << "such a slot has no room for it";
  play.place(0, {SlotsGranted{{{Play::kNode, 1}}, {{Play::kNode, 7}}, {1, 0}}});
  EXPECT_TRUE(play.pod({0, 1})->bound());
  EXPECT_EQ(play.job().slots_wanted(), AskSlots{});
}

TEST(RetrySteps, PlacedAndLaunchedObjectsHaveWhatTheStepSays) {
  Play play(stepping(1), with_both);
  const JobObjectPtr placed = placed_object(play.job(), {2, 1});
  EXPECT_EQ(demand_of(*placed).amounts.memory_bytes, int64_t{16} << 30);
  EXPECT_EQ(demand_of(*placed).time_limit_s, 7'200);
  EXPECT_EQ(placed_object(play.job()), play.job().object_ptr()) << "no copy without steps";
  std::set<int64_t> generations{play.job().object().meta.generation};
  each_steps([&](Steps steps) {
    const JobObjectPtr launched = launched_object(play.job(), steps);
    EXPECT_LT(launched->meta.generation, 0);
    EXPECT_TRUE(generations.insert(launched->meta.generation).second);
  });
  EXPECT_EQ(memory_of(play.job().object(), {1, 0}), "8Gi");
  EXPECT_EQ(memory_of(play.job().object(), {}), "4Gi");
  EXPECT_EQ(time_limit_of(play.job().object(), {0, 1}), 7'200);
}

TEST(RetrySteps, IdsOfPlacementComeApartAgain) {
  each_steps([](Steps steps) {
    const JobId id = in_steps(kJobIds - 1, steps);
    EXPECT_EQ(steps_of(id), steps);
    EXPECT_EQ(job_of(id), kJobIds - 1);
  });
  EXPECT_EQ(in_steps(7, {}), 7u);
}

// ---- admission

std::string steps_error(const StringMap& annotations,
                        const std::function<void(JobSpec&)>& change = {}) {
  JobSpec spec = stepping(1);
  if (change) change(spec);
  Violations found;
  validate_retry_steps(annotations, spec, found);
  std::string text;
  for (const Violation& one : found.list()) text += (text.empty() ? "" : "; ") + one.detail;
  return text;
}

TEST(RetrySteps, AdmissionSaysWhatIsWrong) {
  const auto memory = [](const char* list) { return StringMap{{"muster.dev/retry-memory", list}}; };
  const auto time = [](const char* list) { return StringMap{{"muster.dev/retry-time", list}}; };
  EXPECT_EQ(steps_error(memory("8Gi,16Gi")), "");
  EXPECT_EQ(steps_error(time("2h,1d")), "");
  EXPECT_EQ(steps_error(memory("4Gi")), "`4Gi`: must be more than the memory limit, 4Gi");
  EXPECT_EQ(steps_error(memory("8Gi,8G")), "`8G`: must be more than the step before it, 8Gi");
  EXPECT_EQ(steps_error(memory("8Gi,")), "``: must be an amount of memory such as 8Gi");
  EXPECT_EQ(steps_error(memory("much")), "`much`: must be an amount of memory such as 8Gi");
  EXPECT_EQ(steps_error(memory("5Gi,6Gi,7Gi,8Gi,9Gi,10Gi,11Gi,12Gi,13Gi")),
            "has 9 steps; at most 8 are possible");
  EXPECT_EQ(steps_error(time("30m")), "`30m`: must be more than the pod's time limit, 1h");
  EXPECT_EQ(steps_error(time("soon")),
            "`soon`: must be a duration such as 2h, at most 2147483647s");
  EXPECT_EQ(steps_error(memory("8Gi"), [](JobSpec& spec) { spec.backoff_limit_per_index.reset(); }),
            "requires spec.backoffLimitPerIndex");
  EXPECT_EQ(
      steps_error(memory("8Gi"), [](JobSpec& spec) { spec.pod.containers[0].resources = {}; }),
      "requires a memory limit of exactly one container, "
      "spec.template.spec.containers[].resources.limits.memory");
  EXPECT_EQ(
      steps_error(memory("8Gi"), [](JobSpec& spec) { spec.pod.restart_policy = "OnFailure"; }),
      "requires restartPolicy \"Never\": \"OnFailure\" restarts a container in place");
  EXPECT_EQ(steps_error(time("2h"), [](JobSpec& spec) { spec.pod.active_deadline_s.reset(); }),
            "requires a time limit of the pod, spec.template.spec.activeDeadlineSeconds");
  StringMap gang = time("2h");
  gang["muster.dev/gang"] = "true";
  EXPECT_EQ(steps_error(gang),
            "requires muster.dev/restart: \"gang\", since the pods of this job start together "
            "(muster.dev/gang or muster.dev/mpi)");
  gang["muster.dev/restart"] = "gang";
  EXPECT_EQ(steps_error(gang), "");
}

}  // namespace
}  // namespace muster::core
