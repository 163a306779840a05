// The rules of a Job one by one: suspension, elastic jobs, policies, deadlines, deletions. Section
// headings name the section of job-semantics; random histories are in property_test.cpp.
#include "core/job/facts/pod_conditions.hpp"
#include "core/spec/fields/gate_fields.hpp"
#include "core/spec/rules/warnings.hpp"
#include "tests/unit/core/job/play.hpp"

#include <algorithm>

namespace muster::core {

namespace {

FailureRule on_exit(const char* action, std::vector<int32_t> codes, const char* op = "In",
                    std::optional<std::string> container = {}) {
  FailureRule rule;
  rule.action = action;
  rule.on_exit_codes = OnExitCodes{std::move(container), op, std::move(codes)};
  return rule;
}

FailureRule on_condition(const char* action, const char* type) {
  FailureRule rule;
  rule.action = action;
  rule.on_pod_conditions = {{type, "True"}};
  return rule;
}

JobSpec with_policy(JobSpec spec, std::vector<FailureRule> rules) {
  spec.pod_failure_policy = FailurePolicy{std::move(rules)};
  return spec;
}

// ---- 4.5: creation

TEST(P10Creation, StopsAtMaximumOfPendingPods) {
  JobSpec spec;
  spec.parallelism = 2'000'000'000;
  spec.pod.restart_policy = "Never";
  Play play(spec);
  play.knobs().pending_max = 5'000;
  play.place(0);
  EXPECT_EQ(play.state().pods_created, 5'000u);
  EXPECT_EQ(play.job().active(), 5'000u) << "those that exist";
  EXPECT_EQ(play.job().slots_wanted().wanted, 5'000u);
  play.place(300);
  EXPECT_EQ(play.state().pods_created, 5'300u) << "as many more as were placed";
  play.update([](JobSpec& s) { s.parallelism = 5'200; });
  EXPECT_EQ(play.job().active(), 5'200u);
  play.update([](JobSpec& s) { s.suspend = true; });
  EXPECT_EQ(play.job().active(), 0u);
}

TEST(P10Creation, AllIndexesRunDespiteMaximumOfPendingPods) {
  Play play(Play::indexed(500, 500));
  play.knobs().pending_max = 20;
  play.place(0);
  EXPECT_EQ(play.job().active(), 20u);
  while (play.job().succeeded() < 500) {
    const auto waiting = play.job().pending().size();
    ASSERT_GT(waiting, 0u);
    ASSERT_LE(waiting, 20u);
    play.place(static_cast<uint32_t>(std::min<size_t>(7, waiting)));
    PodsReported report{1, Play::kNode, {}, {}};
    for (const auto& [key, pod] : play.state().open)
      if (pod.bound()) report.ends.push_back(Play::ended(key, 0));
    play.place(0, {report});
  }
  EXPECT_EQ(play.conditions(),
            "SuccessCriteriaMet=True/CompletionsReached Complete=True/CompletionsReached");
}

TEST(P10Creation, GangIsCreatedDespiteMaximumOfPendingPods) {
  Play play(Play::indexed(50, 50),
            [](JobMeta& meta) { meta.annotations["muster.dev/gang"] = "true"; });
  play.knobs().pending_max = 20;
  play.place(0);
  EXPECT_EQ(play.job().active(), 50u);
}

// ---- 9: suspend and resume

TEST(Suspend, RunningPodsAreUncountedAndStartTimeIsReset) {
  Play play(Play::indexed(3, 2));
  play.sync();
  play.start({0, 0});
  play.end({1, 0}, 0);
  ASSERT_EQ(play.state().completed.text(), "1");
  play.update([](JobSpec& spec) { spec.suspend = true; });
  EXPECT_EQ(play.conditions(), "Suspended=True/JobSuspended");
  EXPECT_EQ(play.state().started_at, std::nullopt);
  EXPECT_EQ(play.job().active(), 0u);
  EXPECT_EQ(play.job().terminating(), 2u);
  play.end({0, 0}, 0, EndCause::killed);
  play.end({2, 0}, 143, EndCause::killed);
  EXPECT_EQ(play.job().succeeded(), 1u) << "an exit 0 during that termination is no success";
  EXPECT_EQ(play.state().failed, 0u);
  play.tick(5000);
  play.update([](JobSpec& spec) { spec.suspend = false; });
  EXPECT_EQ(play.conditions(), "Suspended=False/JobResumed");
  EXPECT_EQ(play.state().started_at, play.now());
  EXPECT_TRUE(play.pod({0, 1}) && play.pod({2, 1})) << "the same indexes, new attempts";
  EXPECT_EQ(play.events(), "create create create delete delete suspended create create resumed");
  play.restart();
}

TEST(Suspend, CreatedSuspendedHasNoStartTimeAndNoPods) {
  JobSpec spec = Play::indexed(2, 2);
  spec.suspend = true;
  spec.active_deadline_s = 1;
  Play play(spec);
  play.sync();
  EXPECT_EQ(play.conditions(), "Suspended=True/JobSuspended");
  EXPECT_EQ(play.state().pods_created, 0u);
  play.tick(60'000);
  EXPECT_FALSE(play.job().decided()) << "the deadline never fires while suspended";
  play.update([](JobSpec& s) { s.suspend = false; });
  EXPECT_EQ(play.state().started_at, play.now());
  play.tick(1000);
  EXPECT_EQ(play.conditions(), "Suspended=False/JobResumed FailureTarget=True/DeadlineExceeded");
}

TEST(Suspend, DeferredFailureIsCountedAfterResume) {
  JobSpec spec = Play::indexed(1, 1);
  spec.backoff_limit_per_index = 3;
  Play play(spec);
  play.sync();
  play.end({0, 0}, 1);
  ASSERT_TRUE(play.state().deferred.contains(0));
  play.update([](JobSpec& s) { s.suspend = true; });
  EXPECT_TRUE(play.state().deferred.contains(0));
  play.update([](JobSpec& s) { s.suspend = false; });
  play.tick(1000);
  ASSERT_TRUE(play.pod({0, 1}));
  EXPECT_EQ(play.pod({0, 1})->failures, 1);
  EXPECT_EQ(play.state().failed, 1u);
}

TEST(Suspend, AWorkQueueJobWithASuccessCompletesInsteadAndKeepsItsStart) {
  JobSpec spec;
  spec.parallelism = 2;
  Play play(spec);
  play.sync();
  play.end({0, 0}, 0);
  const auto started = play.state().started_at;
  play.update([](JobSpec& s) { s.suspend = true; });
  EXPECT_EQ(play.conditions(), "SuccessCriteriaMet=True/CompletionsReached");
  EXPECT_EQ(play.state().started_at, started);
}

TEST(Suspend, SuspendedJobWithZeroCompletionsCompletes) {
  JobSpec spec = Play::indexed(0, 1);
  spec.suspend = true;
  Play play(spec);
  play.sync();
  EXPECT_EQ(play.conditions(),
            "SuccessCriteriaMet=True/CompletionsReached Complete=True/CompletionsReached");
  EXPECT_EQ(play.state().started_at, std::nullopt);
}

// ---- pods returned by a node without a free slot: as if they had never been bound

TEST(Returned, PodIsUncountedAndReplacedAtOnce) {
  JobSpec spec = Play::indexed(2, 2);
  spec.backoff_limit = 0;
  Play play(spec);
  play.sync();
  play.end({1, 0}, 0, EndCause::returned);
  EXPECT_FALSE(play.pod({1, 0})) << "nothing of it is shown";
  ASSERT_TRUE(play.pod({1, 1}));
  EXPECT_TRUE(play.pod({1, 1})->active());
  EXPECT_EQ(play.state().failed, 0u);
  EXPECT_EQ(play.state().backoff_failures, 0u);
  EXPECT_EQ(play.closed(), "") << "it is no attempt";
  play.end({0, 0}, 0);
  play.end({1, 1}, 0);
  EXPECT_TRUE(play.job().condition(ConditionType::complete));
}

TEST(Returned, PodHandsOnFailuresOfIndexWithoutDelay) {
  JobSpec spec = Play::indexed(1, 1);
  spec.backoff_limit_per_index = 1;
  Play play(spec);
  play.sync();
  play.end({0, 0}, 5);
  play.tick(100);
  play.end({0, 1}, 0, EndCause::returned);
  ASSERT_TRUE(play.pod({0, 2})) << "no delay: that of the failure is over";
  EXPECT_EQ(play.pod({0, 2})->failures, 1);
  EXPECT_EQ(play.state().failed, 1u);
  play.end({0, 2}, 5);
  EXPECT_EQ(play.state().failed_indexes.text(), "0") << "the limit is 1";
  EXPECT_EQ(play.state().failed, 2u);
}

TEST(Returned, PodOfFailingJobIsNoFailure) {
  JobSpec spec = Play::indexed(3, 3);
  spec.backoff_limit_per_index = 0;
  spec.max_failed_indexes = 0;
  Play play(spec);
  play.sync();
  play.sync({PodsReported{
      1, Play::kNode, {}, {Play::ended({2, 0}, 0, EndCause::returned), Play::ended({0, 0}, 1)}}});
  EXPECT_EQ(play.conditions(), "FailureTarget=True/MaxFailedIndexesExceeded");
  EXPECT_EQ(play.state().failed, 2u) << "0, and 1 that is killed";
}

TEST(Returned, PodBeingDeletedCountsAsDeleted) {
  JobSpec spec = Play::indexed(1, 1);
  spec.pod_replacement_policy = "Failed";
  Play play(spec);
  play.sync();
  play.remove({0, 0});
  EXPECT_FALSE(play.pod({0, 1}));
  play.end({0, 0}, 0, EndCause::returned);
  EXPECT_EQ(play.state().failed, 1u) << "a deleted pod is a failure";
  play.tick(100);
  EXPECT_TRUE(play.pod({0, 1}));
}

TEST(Surplus, TheLeastAdvancedGoFirst) {
  Play play(Play::indexed(4, 4));
  play.sync();
  play.start({0, 0});
  play.tick(1000);
  play.start({2, 0});
  play.update([](JobSpec& s) { s.parallelism = 2; });
  EXPECT_TRUE(play.pod({0, 0})->active() && play.pod({2, 0})->active()) << "what runs stays";
  EXPECT_FALSE(play.pod({1, 0})->active() || play.pod({3, 0})->active());
  play.update([](JobSpec& s) { s.parallelism = 1; });
  EXPECT_TRUE(play.pod({0, 0})->active()) << "ready for longer";
  EXPECT_EQ(play.state().failed, 0u);
}

TEST(Surplus, PodsWithNodeFinishIfTheJobSaysSo) {
  for (const bool finishes : {false, true}) {
    Play play(Play::indexed(8, 4));
    play.knobs().surplus_finishes = finishes;
    play.place(3);
    ASSERT_EQ(play.job().pending().size(), 1u);
    play.update([](JobSpec& s) { s.parallelism = 1; });
    EXPECT_EQ(play.job().active(), finishes ? 3u : 1u);
    EXPECT_TRUE(play.job().pending().empty()) << "what has no node goes in any case";
    if (!finishes) continue;
    play.end({0, 0}, 0);
    play.end({2, 0}, 0);
    EXPECT_EQ(play.job().active(), 1u) << "no new one while enough run";
    play.end({1, 0}, 0);
    EXPECT_EQ(play.job().active(), 1u);
    EXPECT_EQ(play.state().failed, 0u);
    play.update([](JobSpec& s) { s.completions = s.parallelism = 3; });
    EXPECT_EQ(play.job().active(), 0u) << "indexes out of range never finish";
  }
}

TEST(Surplus, WorkQueueKeepsPodsAfterFirstSuccess) {
  JobSpec spec;
  spec.parallelism = 3;
  Play play(spec);
  play.sync();
  play.end({0, 0}, 0);
  play.update([](JobSpec& s) { s.parallelism = 1; });
  EXPECT_EQ(play.job().active(), 2u);
}

// ---- 6: pod failure policy

TEST(FailurePolicy, FailJobSaysWhichPodAndWhy) {
  Play play(with_policy(Play::indexed(3, 3), {on_exit("FailJob", {42})}));
  play.sync();
  play.end({1, 0}, 42);
  EXPECT_EQ(play.conditions(), "FailureTarget=True/PodFailurePolicy");
  const std::string message = play.state().conditions[0].message;
  EXPECT_TRUE(message.starts_with("Container main for pod default/j-1-")) << message;
  EXPECT_TRUE(message.ends_with(" failed with exit code 42 matching FailJob rule at index 0"));
  EXPECT_EQ(play.state().failed, 3u) << "killed pods count at once";
  play.end({0, 0}, 0, EndCause::killed);
  play.end({2, 0}, 143, EndCause::killed);
  EXPECT_EQ(play.state().failed, 3u);
  EXPECT_EQ(play.state().conditions[1].message, message);
}

TEST(FailurePolicy, IgnoredFailureIsUncountedButBacksOff) {
  Play play(with_policy(Play::indexed(1, 1), {on_exit("Ignore", {1, 2}, "NotIn")}));
  play.sync();
  play.end({0, 0}, 9);
  EXPECT_EQ(play.state().failed, 0u);
  EXPECT_EQ(play.state().backoff_failures, 1u);
  EXPECT_EQ(play.job().active(), 0u);
  play.tick(100);
  play.end({0, 1}, 2);
  EXPECT_EQ(play.state().failed, 1u) << "2 is in the list, NotIn does not match";
}

TEST(FailurePolicy, IgnoredFailuresAreTrackedSeparatelyPerIndex) {
  JobSpec spec = with_policy(Play::indexed(1, 1), {on_exit("Ignore", {7})});
  spec.backoff_limit_per_index = 0;
  Play play(spec);
  play.sync();
  play.end({0, 0}, 7);
  ASSERT_TRUE(play.state().deferred.contains(0));
  EXPECT_EQ(play.job().deferred_not_failed(), 1u);
  play.tick(100);
  ASSERT_TRUE(play.pod({0, 1}));
  EXPECT_EQ(play.pod({0, 1})->failures, 0);
  EXPECT_EQ(play.pod({0, 1})->ignored, 1);
  EXPECT_EQ(play.state().failed, 0u);
  play.tick(0);
  play.end({0, 1}, 1);
  EXPECT_EQ(play.state().failed_indexes.text(), "0");
  EXPECT_TRUE(play.job().condition(ConditionType::failed));
}

TEST(FailurePolicy, FailIndexFailsItAtOnce) {
  JobSpec spec = with_policy(Play::indexed(2, 2), {on_exit("FailIndex", {3})});
  spec.backoff_limit_per_index = 5;
  Play play(spec);
  play.sync();
  play.end({1, 0}, 3);
  EXPECT_EQ(play.state().failed_indexes.text(), "1");
  EXPECT_EQ(play.state().failed, 1u);
  play.end({0, 0}, 0);
  EXPECT_EQ(play.conditions(), "FailureTarget=True/FailedIndexes Failed=True/FailedIndexes");
}

TEST(FailurePolicy, TheFirstMatchingRuleDecides) {
  Play play(with_policy(Play::indexed(1, 1),
                        {on_condition("Ignore", "DisruptionTarget"), on_exit("FailJob", {143})}));
  play.sync();
  play.remove({0, 0}, PodsDeletion::Why::eviction);
  ASSERT_EQ(play.pod({0, 0})->conditions.size(), 1u);
  EXPECT_EQ(play.pod({0, 0})->conditions[0].reason, "EvictionByEvictionAPI");
  play.end({0, 0}, 143, EndCause::killed);
  EXPECT_FALSE(play.job().decided());
  EXPECT_EQ(play.state().failed, 0u);
}

TEST(FailurePolicy, CustomPodConditionMatches) {
  Play play(with_policy(Play::indexed(1, 1), {on_condition("FailJob", "ConfigIssue")}));
  play.sync();
  play.sync({PodConditionsWrite{1, {0, 0}, {{"ConfigIssue", "True", 0, "Bad", ""}}}});
  EXPECT_FALSE(play.job().decided()) << "only a failed pod is judged";
  play.end({0, 0}, 1);
  EXPECT_EQ(play.conditions(), "FailureTarget=True/PodFailurePolicy Failed=True/PodFailurePolicy");
  EXPECT_TRUE(play.state().conditions[0].message.ends_with(
      " has condition ConfigIssue matching FailJob rule at index 0"));
}

TEST(FailurePolicy, AppContainersAreMatchedBeforeInitContainers) {
  JobSpec spec = with_policy(Play::indexed(1, 1),
                             {on_exit("FailJob", {5}, "In", "side"), on_exit("Ignore", {1})});
  spec.pod.containers.resize(2);
  spec.pod.containers[1].name = "side";
  spec.pod.init_containers.resize(1);
  spec.pod.init_containers[0].name = "init";
  Play play(spec);
  play.sync();
  PodsReported::Ended end = Play::ended({0, 0}, 1);
  end.containers = {{EndCause::exited, 0, 0, 0, Age{1}, Age{1}},
                    {EndCause::exited, 1, 0, 0, Age{1}, Age{1}},
                    {EndCause::exited, 5, 0, 0, Age{1}, Age{1}}};
  play.sync({PodsReported{1, Play::kNode, {}, {end}}});
  ASSERT_TRUE(play.job().condition(ConditionType::failed));
  EXPECT_TRUE(play.state().conditions[0].message.starts_with("Container side for pod"));
}

TEST(FailurePolicy, APodThatIsEvictedWhileTheJobFailsIsStillIgnored) {
  Play play(with_policy(Play::indexed(2, 2),
                        {on_condition("Ignore", "DisruptionTarget"), on_exit("FailJob", {1})}));
  play.sync();
  play.remove({0, 0}, PodsDeletion::Why::eviction);
  play.end({1, 0}, 1);
  EXPECT_TRUE(play.job().condition(ConditionType::failure_target));
  EXPECT_EQ(play.state().failed, 1u);
}

// ---- 7 and 3.4: success policy, order of decisions

TEST(SuccessPolicy, MatchesByIndexesAndByCount) {
  JobSpec spec = Play::indexed(5, 5);
  SuccessRule first, second;
  first.succeeded_indexes = "0,2";
  second.succeeded_indexes = "1-4";
  second.succeeded_count = 2;
  spec.success_policy = SuccessPolicy{{first, second}};
  Play play(spec);
  play.sync();
  play.end({2, 0}, 0);
  EXPECT_FALSE(play.job().decided());
  play.end({3, 0}, 0);
  EXPECT_EQ(play.conditions(), "SuccessCriteriaMet=True/SuccessPolicy");
  EXPECT_EQ(play.state().conditions[0].message, "Matched rules at index 1");
  for (uint32_t i : {0u, 1u, 4u}) play.end({i, 0}, i == 0 ? 0 : 143, EndCause::killed);
  EXPECT_EQ(play.job().succeeded(), 2u) << "lingering pods count nowhere";
  EXPECT_EQ(play.state().failed, 0u);
  EXPECT_TRUE(play.job().condition(ConditionType::complete));
}

TEST(SuccessPolicy, AnEmptySetNeverMatchesAndAllIndexesBeatPlainCompletion) {
  JobSpec spec = Play::indexed(1, 1);
  SuccessRule empty, all;
  empty.succeeded_indexes = "";
  all.succeeded_indexes = "0";
  spec.success_policy = SuccessPolicy{{empty, all}};
  Play play(spec);
  play.sync();
  play.end({0, 0}, 0);
  EXPECT_EQ(play.state().conditions[0].message, "Matched rules at index 1");
  EXPECT_EQ(play.conditions(), "SuccessCriteriaMet=True/SuccessPolicy Complete=True/SuccessPolicy");
}

TEST(SuccessPolicy, LosesWhenTheSameSyncFinishesAllIndexesAndOneFailed) {
  JobSpec spec = Play::indexed(2, 2);
  spec.backoff_limit_per_index = 0;
  SuccessRule rule;
  rule.succeeded_indexes = "0";
  spec.success_policy = SuccessPolicy{{rule}};
  Play play(spec);
  play.sync();
  play.sync({PodsReported{1, Play::kNode, {}, {Play::ended({0, 0}, 0), Play::ended({1, 0}, 1)}}});
  EXPECT_EQ(play.conditions(), "FailureTarget=True/FailedIndexes Failed=True/FailedIndexes");
}

TEST(Order, AFailureBeatsASuccessOfTheSameSyncAndTheDeadlineBeatsTheLastSuccess) {
  JobSpec spec = Play::indexed(2, 2);
  spec.backoff_limit = 0;
  Play both(spec);
  both.sync();
  both.sync({PodsReported{1, Play::kNode, {}, {Play::ended({0, 0}, 0), Play::ended({1, 0}, 1)}}});
  EXPECT_EQ(both.conditions(),
            "FailureTarget=True/BackoffLimitExceeded Failed=True/BackoffLimitExceeded");
  JobSpec late = Play::indexed(1, 1);
  late.active_deadline_s = 0;
  Play never(late);
  never.sync();
  EXPECT_EQ(never.state().pods_created, 0u);
  EXPECT_EQ(never.conditions(), "FailureTarget=True/DeadlineExceeded Failed=True/DeadlineExceeded");
}

// ---- 5.4: restarts in place

TEST(OnFailure, FailsWhenRestartsReachTheLimit) {
  for (auto [limit, restarts, fails] :
       {std::tuple{2, 1, false}, {2, 2, true}, {0, 1, true}, {1, 1, true}, {0, 0, false}}) {
    SCOPED_TRACE(std::to_string(limit) + " " + std::to_string(restarts));
    JobSpec spec = Play::indexed(2, 2);
    spec.backoff_limit = limit;
    spec.pod.restart_policy = "OnFailure";
    Play play(spec);
    play.sync();
    play.start({0, 0}, restarts);
    EXPECT_EQ(play.job().decided(), fails);
    EXPECT_EQ(play.state().failed, fails ? 2u : 0u);
  }
}

// ---- 0, 2.2, 4.5: pods deleted by hand

TEST(Deletion, CountsAtOnceUnlessOnlyFailedPodsAreReplaced) {
  Play now(Play::indexed(1, 1));
  now.sync();
  now.start({0, 0});
  now.remove({0, 0});
  EXPECT_EQ(now.state().failed, 1u);
  EXPECT_EQ(now.job().terminating(), 1u);
  now.tick(100);
  EXPECT_TRUE(now.pod({0, 1})) << "replaced while the old one ends";
  now.end({0, 0}, 0, EndCause::killed);
  EXPECT_EQ(now.job().succeeded(), 0u);
  EXPECT_FALSE(now.pod({0, 0})) << "a deleted pod is not shown after its end";

  JobSpec spec = Play::indexed(1, 1);
  spec.pod_replacement_policy = "Failed";
  Play later(spec);
  later.sync();
  later.remove({0, 0});
  EXPECT_EQ(later.state().failed, 0u);
  later.tick(10'000);
  EXPECT_FALSE(later.pod({0, 1})) << "not before the old one has ended";
  later.end({0, 0}, 0, EndCause::killed);
  EXPECT_EQ(later.job().succeeded(), 1u) << "judged by its real exit code";
}

TEST(Deletion, PerIndexItIsDeferredUntilItsReplacementExists) {
  JobSpec spec = Play::indexed(1, 1);
  spec.backoff_limit_per_index = 2;
  Play play(spec);
  play.sync();
  play.remove({0, 0});
  EXPECT_EQ(play.state().failed, 0u);
  EXPECT_EQ(play.pod({0, 0})->counted, Counted::not_yet) << "it keeps its finalizer";
  play.tick(100);
  ASSERT_TRUE(play.pod({0, 1}));
  EXPECT_EQ(play.pod({0, 1})->failures, 1);
  EXPECT_EQ(play.state().failed, 1u);
  play.end({0, 0}, 143, EndCause::killed);
  EXPECT_EQ(play.state().failed, 1u);
}

TEST(Deletion, OfFinishedPodKeepsItsCount) {
  Play play(Play::indexed(2, 2));
  play.sync();
  play.end({0, 0}, 0);
  ASSERT_TRUE(play.pod({0, 0}));
  play.remove({0, 0});
  EXPECT_FALSE(play.pod({0, 0}));
  EXPECT_EQ(play.job().succeeded(), 1u);
  play.restart();
  EXPECT_EQ(play.job().succeeded(), 1u);
}

TEST(Deletion, PreemptedPodHasPreemptionCondition) {
  Play play(Play::indexed(2, 2));
  play.sync();
  play.sync({Preempted{{{Play::kNode, 1}}}});
  int preempted = 0;
  for (const auto& [key, pod] : play.state().open)
    for (const PodCondition& c : pod.conditions) preempted += c.reason == "PreemptionByScheduler";
  EXPECT_EQ(preempted, 1);
  EXPECT_EQ(play.job().active(), 1u);
}

TEST(Deletion, OrphansRunOn) {
  Play play(Play::indexed(1, 1));
  play.sync();
  play.start({0, 0});
  play.sync({JobDeletion{1, true, true}});
  EXPECT_TRUE(play.job().hidden());
  EXPECT_TRUE(play.pod({0, 0})->active());
  play.end({0, 0}, 0);
  ASSERT_TRUE(play.pod({0, 0})) << "shown until somebody deletes it";
  EXPECT_EQ(play.pod({0, 0})->counted, Counted::released);
  EXPECT_FALSE(play.state().forgotten);
  play.remove({0, 0});
  EXPECT_TRUE(play.state().forgotten);
}

void without_finalizers(Play& play) {
  auto object = std::make_shared<JobObject>(play.job().object());
  object->meta.finalizers.clear();
  object->json = "without";
  play.sync({OwnerUpdate{1, play.job().object_ptr(), object}});
}

TEST(Deletion, AForeignFinalizerKeepsTheJob) {
  Play play(Play::indexed(1, 1), [](JobMeta& meta) { meta.finalizers = {"example.com/audit"}; });
  play.sync();
  play.sync({JobDeletion{1, true, false}});
  EXPECT_FALSE(play.job().hidden());
  play.end({0, 0}, 143, EndCause::killed);
  EXPECT_FALSE(play.state().forgotten);
  without_finalizers(play);
  EXPECT_TRUE(play.state().forgotten);
}

// While the job has dependents other than pods, the API gives it this finalizer.
TEST(Deletion, InTheForegroundItWaitsForOtherDependents) {
  const auto held = [](JobMeta& meta) { meta.finalizers = {"foregroundDeletion"}; };
  for (const bool background : {false, true}) {
    Play play(Play::indexed(1, 1), held);
    play.sync();
    play.sync({JobDeletion{1, background, false}});
    play.end({0, 0}, 143, EndCause::killed);
    EXPECT_EQ(play.state().forgotten, background);
    if (background) continue;
    EXPECT_FALSE(play.job().hidden());
    without_finalizers(play);
    EXPECT_TRUE(play.state().forgotten);
  }
}

bool kills(const Play& play) {
  return std::any_of(play.effects().begin(), play.effects().end(),
                     [](const Effect& effect) { return std::holds_alternative<KillPods>(effect); });
}

void audited(JobMeta& meta) {
  meta.finalizers = {"example.com/audit"};
}

TEST(P20Deletion, InTheBackgroundPodsRunUntilTheFinalizerIsGone) {
  Play play(Play::indexed(3, 2), audited);
  play.sync();
  play.start({0, 0});
  play.sync({JobDeletion{1, true, false}});
  EXPECT_FALSE(kills(play));
  EXPECT_FALSE(play.job().hidden());
  EXPECT_TRUE(play.state().deleted_at);
  EXPECT_EQ(play.job().active(), 2u);
  play.restart();
  play.end({1, 0}, 0);
  EXPECT_EQ(play.job().succeeded(), 0u) << "its pods were released with the deletion";
  ASSERT_TRUE(play.pod({1, 0}));
  EXPECT_FALSE(play.pod({2, 0})) << "a deleted job gets no pods";
  play.sync({JobDeletion{2, true, false}});
  EXPECT_FALSE(kills(play)) << "asked for again";
  without_finalizers(play);
  EXPECT_TRUE(kills(play));
  EXPECT_TRUE(play.job().hidden());
  play.end({0, 0}, 143, EndCause::killed);
  EXPECT_TRUE(play.state().forgotten);
}

TEST(P20Deletion, OrphanedPodsSurviveFurtherDeletions) {
  Play play(Play::indexed(1, 1), audited);
  play.sync();
  play.start({0, 0});
  play.sync({JobDeletion{1, true, true}});
  EXPECT_FALSE(kills(play));
  EXPECT_FALSE(play.job().hidden()) << "the finalizer keeps the job";
  EXPECT_TRUE(play.state().orphaned);
  for (bool background : {true, false}) {
    play.sync({JobDeletion{2, background, false}});
    EXPECT_FALSE(kills(play));
  }
  play.restart();
  without_finalizers(play);
  EXPECT_FALSE(kills(play));
  EXPECT_TRUE(play.job().hidden());
  EXPECT_TRUE(play.pod({0, 0})->active());
  play.end({0, 0}, 0);
  EXPECT_TRUE(play.pod({0, 0})) << "shown until somebody deletes it";
}

TEST(P20Deletion, ForegroundDeletionKillsPodsBeforeFinalizerIsRemoved) {
  for (bool after_background : {false, true}) {
    Play play(Play::indexed(1, 1), audited);
    play.sync();
    if (after_background) play.sync({JobDeletion{1, true, false}});
    play.sync({JobDeletion{2, false, false}});
    EXPECT_TRUE(kills(play)) << after_background;
    EXPECT_FALSE(play.job().hidden());
    play.end({0, 0}, 143, EndCause::killed);
    EXPECT_FALSE(play.state().forgotten);
    without_finalizers(play);
    EXPECT_TRUE(play.state().forgotten);
  }
}

// A job's last record is JobForgotten, even if its owner requests more at that moment.
TEST(P20Deletion, NoRecordFollowsJobForgotten) {
  Play play(Play::indexed(1, 1));
  play.sync();
  play.end({0, 0}, 0);
  play.sync({JobDeletion{1, true, false}});
  ASSERT_TRUE(play.state().forgotten);
  for (const Event& late : {Event{PodsDeletion{7, {{0, 0}}, PodsDeletion::Why::owner, {}}},
                            Event{PodConditionsWrite{7, {0, 0}, {{"Mine", "True", 0, "", ""}}}}}) {
    const JobState before = play.state();
    play.sync({late});
    EXPECT_EQ(play.state(), before);
    const bool refused = std::ranges::any_of(play.effects(), [](const Effect& effect) {
      const auto* answer = std::get_if<Answer>(&effect);
      return answer && answer->token == 7 && answer->outcome == Answer::Outcome::not_found;
    });
    EXPECT_TRUE(refused);
  }
}

TEST(P20Deletion, ADeadlineStillEndsAJobThatWaitsForItsFinalizer) {
  JobSpec spec = Play::indexed(1, 1);
  spec.active_deadline_s = 5;
  Play play(spec, audited);
  play.sync();
  play.sync({JobDeletion{1, true, false}});
  play.tick(5'000);
  EXPECT_TRUE(kills(play));
  play.end({0, 0}, 143, EndCause::killed);
  EXPECT_EQ(play.conditions(), "FailureTarget=True/DeadlineExceeded Failed=True/DeadlineExceeded");
  EXPECT_EQ(play.state().failed, 0u) << "running pods were released with the deletion";
}

TEST(P20Warnings, AreThoseOfKubernetes) {
  JobMeta meta;
  JobSpec spec = Play::indexed(100'001, 10'001);
  meta.name = "a-b";
  EXPECT_EQ(creation_warnings(meta, Play::indexed(100'001, 10'000)), std::vector<std::string>{});
  meta.name = "a.b";
  auto all = creation_warnings(meta, spec);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0],
            "metadata.name: this is used in Pod names and hostnames, which can result in "
            "surprising behavior; a DNS label is recommended: [must not contain dots]");
  EXPECT_TRUE(all[1].starts_with("spec: In Indexed Jobs with a number of completions higher"));
  JobMeta long_named;
  long_named.name = std::string(64, 'a');
  EXPECT_TRUE(creation_warnings(long_named, Play::indexed(1, 1))
                  .at(0)
                  .ends_with("[must be no more than 63 characters]"));
  long_named.name += ".b";
  EXPECT_TRUE(creation_warnings(long_named, Play::indexed(1, 1))
                  .at(0)
                  .ends_with("[must be no more than 63 characters must not contain dots]"));
  JobMeta later = meta;
  EXPECT_EQ(update_warnings(meta, later, spec), std::vector<std::string>{});
  ++later.generation;
  EXPECT_EQ(update_warnings(meta, later, spec).size(), 1u) << "the name was warned of before";
}

// ---- 1.5 and 9: scheduling gates

TEST(P19Gates, APodWithSchedulingGatesIsNotBound) {
  JobSpec spec = Play::indexed(2, 2);
  spec.pod.scheduling_gates = {"example.com/quota"};
  Play play(spec);
  play.sync();  // offers slots for both
  EXPECT_EQ(play.job().active(), 2u);
  EXPECT_EQ(play.job().pending().size(), 2u);
  EXPECT_EQ(play.job().slots_wanted().wanted, 0u);
  EXPECT_EQ(pod_conditions(*play.pod({0, 0}), play.job().gated())[0].reason, "SchedulingGated");
  play.update([](JobSpec& s) { s.suspend = true; });
  EXPECT_EQ(play.job().active(), 0u);
  play.update([](JobSpec& s) { s.pod.scheduling_gates.clear(); });
  play.update([](JobSpec& s) { s.suspend = false; });
  EXPECT_EQ(play.job().active(), 2u);
  EXPECT_TRUE(play.job().pending().empty()) << "bound";
}

// ---- feature gates

TEST(P23Gates, GateOffRunsFailedIndexesAgain) {
  JobSpec spec = Play::indexed(2, 2);
  spec.backoff_limit_per_index = 0;
  Play play(spec);
  play.sync();
  play.end({0, 0}, 1);
  EXPECT_TRUE(play.state().failed_indexes.contains(0));
  EXPECT_EQ(play.job().active(), 1u);
  play.knobs().gates.backoff_limit_per_index = false;
  play.tick(100);
  EXPECT_TRUE(play.state().failed_indexes.empty());
  EXPECT_TRUE(play.state().index_limits_off);
  EXPECT_EQ(play.job().active(), 2u);
  ASSERT_TRUE(play.pod({0, 1})) << "none of its attempts comes again";
  play.end({0, 1}, 1);
  EXPECT_TRUE(play.state().failed_indexes.empty()) << "the limit is not in force";
  EXPECT_EQ(play.state().failed, 2u);
  play.tick(10'000);
  EXPECT_TRUE(play.pod({0, 2}));
  play.restart();
  play.knobs().gates.backoff_limit_per_index = true;
  play.sync();
  EXPECT_FALSE(play.state().index_limits_off);
  play.end({0, 2}, 1);
  EXPECT_TRUE(play.state().failed_indexes.contains(0)) << "in force again";
  play.end({1, 0}, 0);
  EXPECT_EQ(play.conditions(), "FailureTarget=True/FailedIndexes Failed=True/FailedIndexes");
}

TEST(P23Gates, GateOnEvaluatesSuccessPolicyAgain) {
  JobSpec spec = Play::indexed(3, 3);
  spec.success_policy.emplace().rules.push_back({{}, 2});
  Play play(spec);
  play.knobs().gates.success_policy = false;
  play.sync();
  play.end({0, 0}, 0);
  play.end({1, 0}, 0);
  EXPECT_FALSE(play.job().decided());
  play.knobs().gates.success_policy = true;
  play.ask_nodes();  // as after a restart of the coordinator
  play.sync();
  EXPECT_TRUE(play.asks());
  play.answer({});
  EXPECT_EQ(play.conditions(), "SuccessCriteriaMet=True/SuccessPolicy");
}

TEST(P23Gates, GateOffSkipsFailIndexRules) {
  JobSpec spec = Play::indexed(1, 1);
  spec.backoff_limit_per_index = 3;
  auto& rules = spec.pod_failure_policy.emplace().rules;
  rules.push_back({"FailIndex", OnExitCodes{{}, "In", {7}}, {}});
  rules.push_back({"Ignore", OnExitCodes{{}, "In", {7}}, {}});
  {
    Gates gates;
    gates.backoff_limit_per_index = false;
    JobSpec fresh = spec;
    auto dropped = drop_gated(gates, fresh, nullptr);
    EXPECT_EQ(dropped, (std::vector<std::string>{"backoffLimitPerIndex", kFailIndexRules}));
    ASSERT_EQ(fresh.pod_failure_policy->rules.size(), 1u);
    EXPECT_EQ(fresh.pod_failure_policy->rules[0].action, "Ignore");
  }
  Play play(spec);
  play.knobs().gates.backoff_limit_per_index = false;
  play.sync();
  play.end({0, 0}, 7);
  EXPECT_EQ(play.pod({0, 0})->counted, Counted::ignored);
  EXPECT_TRUE(play.state().failed_indexes.empty());
}

// ---- 10.3 and 4.7

TEST(Ttl, DeletesAFinishedJobWhenItsTimeIsOver) {
  JobSpec spec = Play::indexed(1, 1);
  spec.ttl_s = 10;
  Play play(spec);
  play.sync();
  play.end({0, 0}, 0);
  ASSERT_TRUE(play.job().finished());
  EXPECT_EQ(expires_at(play.job()), play.now() + 10'000);
  play.tick(9'999);
  EXPECT_FALSE(play.state().forgotten);
  play.update([](JobSpec& s) { s.ttl_s = 20; });
  play.tick(1);
  EXPECT_FALSE(play.state().forgotten) << "an update in time extends its life";
  play.tick(10'000);
  EXPECT_TRUE(play.state().forgotten);
}

TEST(ManagedBy, AForeignControllersJobIsLeftAlone) {
  JobSpec spec = Play::indexed(1, 1);
  spec.managed_by = "example.com/queue";
  Play play(spec);
  play.sync();
  EXPECT_FALSE(play.state().synced);
  EXPECT_EQ(play.state().pods_created, 0u);
  play.sync({StatusWrite{1, "{\"active\":1}"}});
  EXPECT_EQ(play.state().external_status, "{\"active\":1}");
  play.restart();
}

TEST(P19FirstSync, JobThatCompletesBeforeFirstSyncShowsItsCounts) {
  JobSpec spec = Play::indexed(0, 1);
  spec.suspend = true;
  Play play(spec);
  play.sync();
  EXPECT_TRUE(play.job().finished());
  EXPECT_TRUE(play.state().synced) << "ready, terminating and uncountedTerminatedPods are shown";
}

TEST(P21Conditions, CustomConditionsAreKeptAndStaleWriteConflicts) {
  Play play(Play::indexed(1, 1));
  play.sync();
  const JobObjectPtr seen = play.job().object_ptr();
  StatusWrite write{1, R"([{"type":"Quota"}])", true, seen};
  play.sync({write});
  EXPECT_EQ(play.state().own_conditions, write.json);
  play.restart();
  EXPECT_EQ(play.state().own_conditions, write.json);
  StatusWrite late{2, R"([{"type":"Late"}])", true, seen};  // based on an outdated object
  play.sync({late});
  EXPECT_EQ(play.state().own_conditions, write.json);
  bool conflict = false;
  for (const Effect& effect : play.effects())
    if (const auto* answer = std::get_if<Answer>(&effect))
      conflict = conflict || answer->outcome == Answer::Outcome::conflict;
  EXPECT_TRUE(conflict);
}

TEST(P22Pods, PodLabelChangesSurviveRestart) {
  Play play(Play::indexed(1, 1));
  play.sync();
  EXPECT_FALSE(play.job().relabeled());
  play.sync({PodConditionsWrite{1, {0, 0}, {}, {{true, "queue", "fast"}, {false, "a", "b"}}}});
  play.sync({PodConditionsWrite{2, {0, 0}, {}, {{true, "queue", std::nullopt}}}});
  play.restart();
  ASSERT_EQ(play.pod({0, 0})->meta.size(), 2u);
  EXPECT_EQ(play.pod({0, 0})->meta[0], (PodMetaChange{true, "queue", std::nullopt}));
  EXPECT_EQ(play.pod({0, 0})->meta[1], (PodMetaChange{false, "a", "b"}));
  EXPECT_TRUE(play.job().relabeled());
}

TEST(OwnerUpdate, OfStaleObjectConflicts) {
  Play play(Play::indexed(1, 1));
  play.sync();
  auto seen = std::make_shared<JobObject>(play.job().object());
  seen->json = "older";
  play.sync({OwnerUpdate{9, seen, seen}});
  bool conflict = false;
  for (const Effect& effect : play.effects())
    if (auto* answer = std::get_if<Answer>(&effect))
      conflict = answer->outcome == Answer::Outcome::conflict;
  EXPECT_TRUE(conflict);
}

TEST(Gates, GateOffDisablesRuleForExistingJobs) {
  JobSpec spec = Play::indexed(2, 2);
  spec.backoff_limit_per_index = 0;
  spec.backoff_limit = 10;
  Play play(spec);
  play.knobs().gates.backoff_limit_per_index = false;
  play.sync();
  play.end({0, 0}, 1);
  EXPECT_TRUE(play.state().failed_indexes.empty());
  EXPECT_EQ(play.state().failed, 1u);
  play.knobs().gates.backoff_limit_per_index = true;
  play.tick(1000);
  play.end({0, 1}, 1);
  EXPECT_EQ(play.state().failed_indexes.text(), "0") << "and on again for what fails from then on";
  play.restart();
}

// ---- known bugs of the Kubernetes Job controller

// A compromised agent may claim anything about its own pods, but nothing about pods of other nodes.
TEST(P13Reports, OfAnotherNodeChangeNothing) {
  constexpr NodeId kOther = Play::kNode + 1;
  Play play(Play::indexed(3, 3));
  play.sync();
  play.start({0, 0});
  const std::string before = play.events();
  PodsReported report{9, kOther, {{{1, 0}, 666, 0, 0}}, {}};
  report.ends = {Play::ended({0, 0}, 0), Play::ended({1, 0}, 1),
                 Play::ended({2, 0}, 0, EndCause::returned)};
  play.sync({report});
  EXPECT_EQ(play.job().succeeded(), 0u);
  EXPECT_EQ(play.state().failed, 0u);
  EXPECT_EQ(play.closed(), "");
  EXPECT_EQ(play.events(), before);
  EXPECT_EQ(play.pod({1, 0})->started_at, std::nullopt);
  ASSERT_EQ(play.effects().size(), 1u) << "acknowledged, or it would come again";
  EXPECT_EQ(std::get<AckReport>(play.effects()[0]).token, 9u);
  play.sync({NodeRegistered{kOther, {{0, 0}}}, NodeLost{kOther}});
  EXPECT_EQ(play.job().active(), 3u);
  // Reports of the node that has the pods count, even in the same sync.
  PodsReported own{1, Play::kNode, {}, {Play::ended({0, 0}, 3), Play::ended({1, 0}, 0)}};
  play.sync({report, own});
  EXPECT_EQ(play.job().succeeded(), 1u);
  EXPECT_EQ(play.state().failed, 1u);
  play.restart();
}

TEST(Reports, OfOtherCpusAreRecorded) {
  Play play(Play::indexed(1, 1));
  play.sync();
  PodsReported report{1, Play::kNode, {{{0, 0}, 55, 0, 0}}, {}};
  report.starts[0].cpus = "0-1";
  play.sync({report});
  EXPECT_EQ(play.pod({0, 0})->cpus, "0-1");
  report.starts[0].cpus = "4";
  play.sync({report});
  EXPECT_EQ(play.pod({0, 0})->cpus, "4");
  play.restart();
  EXPECT_EQ(play.pod({0, 0})->cpus, "4");
}

// #105200: a pod whose end was seen twice was counted twice.
TEST(Regression, K105200AnEndThatIsReportedTwiceCountsOnce) {
  Play play(Play::indexed(2, 2));
  play.sync();
  PodsReported report{1, Play::kNode, {}, {Play::ended({0, 0}, 1)}};
  play.sync({report, report});
  play.sync({report});
  play.restart();
  play.sync({report});
  EXPECT_EQ(play.state().failed, 1u);
}

// #109485: pods beyond the capacity of one sync kept their finalizers forever.
TEST(Regression, K109485NoFinalizerIsLeftHoweverManyPodsEndAtOnce) {
  Play play(Play::indexed(1500, 1500));
  for (int i = 0; i < 5; ++i) play.sync();
  PodsReported report{1, Play::kNode, {}, {}};
  for (uint32_t i = 0; i < 1500; ++i) report.ends.push_back(Play::ended({i, 0}, 0));
  play.sync({report});
  EXPECT_TRUE(play.job().condition(ConditionType::complete));
  play.job().each_pod([](const Pod& pod) { EXPECT_NE(pod.counted, Counted::not_yet); });
}

// #125410: a uid listed twice among the uncounted pods blocked the job.
TEST(Regression, K125410PodEndedLostAndDeletedInOneSyncDoesNotBlockJob) {
  JobSpec spec = Play::indexed(1, 1);
  spec.backoff_limit_per_index = 1;
  Play play(spec);
  play.sync();
  PodsReported report{1, Play::kNode, {}, {Play::ended({0, 0}, 1)}};
  // The pod's end, its loss and its deletion arrive in one sync.
  play.sync({report, NodeLost{Play::kNode},
             PodsDeletion{2, {{0, 0}}, PodsDeletion::Why::owner, std::nullopt}, report});
  play.tick(1000);
  EXPECT_EQ(play.state().failed, 1u);
  play.end({0, 1}, 0);
  EXPECT_TRUE(play.job().condition(ConditionType::complete));
}

// #130103: a stale cache led to two pods for one index.
TEST(Regression, K130103ASecondSyncDoesNotCreateASecondPod) {
  Play play(Play::indexed(1, 1));
  play.sync({TimePassed{}, TimePassed{}});
  play.sync();
  play.restart();
  EXPECT_EQ(play.state().pods_created, 1u);
}

// #123775: a job finished while ready or terminating was not yet 0.
TEST(Regression, K123775FinishedOnlyWhenNothingIsReadyOrTerminating) {
  JobSpec spec = Play::indexed(2, 2);
  spec.backoff_limit = 0;
  Play play(spec);
  play.sync();
  play.start({1, 0});
  play.end({0, 0}, 1);
  EXPECT_TRUE(play.job().condition(ConditionType::failure_target));
  EXPECT_FALSE(play.job().finished());
  EXPECT_EQ(play.job().terminating(), 1u);
  play.end({1, 0}, 143, EndCause::killed);
  EXPECT_TRUE(play.job().finished());
  EXPECT_EQ(play.job().ready() + play.job().terminating(), 0u);
}

// #28486: counts went down when finished pods were removed.
TEST(Regression, K28486CountsDoNotRelyOnPodsStayingAround) {
  Play play(Play::indexed(3, 1));
  play.sync();
  play.end({0, 0}, 1);
  play.tick(100);
  play.end({0, 1}, 0);
  play.remove({0, 0});
  play.remove({0, 1});
  play.restart();
  EXPECT_EQ(play.state().failed, 1u);
  EXPECT_EQ(play.job().succeeded(), 1u);
  play.end({1, 0}, 0);
  play.end({2, 0}, 0);
  EXPECT_EQ(play.job().succeeded(), 3u);
  EXPECT_TRUE(play.job().condition(ConditionType::complete));
}

TEST(Disruption, NoExecuteTaintEvictsPodsOfNode) {
  JobSpec spec = Play::indexed(2, 2);
  spec.pod_replacement_policy = "Failed";
  spec.pod_failure_policy =
      FailurePolicy{{{.action = "Ignore", .on_pod_conditions = {{"DisruptionTarget", "True"}}}}};
  Play play(spec);
  play.sync();
  play.sync({Tainted{{7}}});
  EXPECT_EQ(play.job().terminating(), 0u) << "another node";
  play.sync({Tainted{{Play::kNode}}});
  EXPECT_EQ(play.job().terminating(), 2u);
  EXPECT_EQ(play.pod({0, 0})->conditions.at(0).reason, "DeletionByTaintManager");
  play.end({0, 0}, 143, EndCause::killed);
  play.end({1, 0}, 143, EndCause::killed);
  EXPECT_EQ(play.state().failed, 0u);
}

// muster.dev/indexes: a job that runs some of the indexes again.
JobSpec round_spec() {
  JobSpec spec = Play::indexed(10, 2);
  spec.backoff_limit_per_index = 0;
  return spec;
}
void only_2_5_6(JobMeta& meta) {
  meta.annotations["muster.dev/indexes"] = "2,5-6";
}

TEST(Round, RunsOnlyNamedIndexes) {
  Play play(round_spec(), only_2_5_6);
  play.sync();
  EXPECT_EQ(play.state().open.size(), 2u);
  play.end({2, 0}, 0);
  play.end({5, 0}, 0);
  play.restart();
  EXPECT_EQ(play.job().active(), 1u);
  play.end({6, 0}, 0);
  EXPECT_EQ(play.state().completed.text(), "2,5,6");
  EXPECT_EQ(play.conditions(),
            "SuccessCriteriaMet=True/CompletionsReached Complete=True/CompletionsReached");
}

TEST(Round, FailsOnlyOnceAllNamedIndexesEnded) {
  Play play(round_spec(), only_2_5_6);
  play.sync();
  play.end({2, 0}, 0);
  play.end({5, 0}, 1);
  EXPECT_FALSE(play.job().decided());
  play.end({6, 0}, 0);
  EXPECT_EQ(play.conditions(), "FailureTarget=True/FailedIndexes Failed=True/FailedIndexes");
  EXPECT_EQ(play.state().failed_indexes.text(), "5");
}

TEST(Round, ScaleDownReducesNamedIndexes) {
  Play play(round_spec(), only_2_5_6);
  play.sync();
  play.end({2, 0}, 0);
  play.update([](JobSpec& spec) { spec.completions = spec.parallelism = 5; });
  play.end({5, 0}, 143, EndCause::killed);
  EXPECT_EQ(play.job().needed(), 1);
  play.end({6, 0}, 143, EndCause::killed);
  EXPECT_TRUE(play.job().condition(ConditionType::complete)) << play.conditions();
}

// A command that cannot be started, under the annotation muster.dev/start-failure.
TEST(P26StartFailure, FailsJobWithAnnotation) {
  const auto fail_job = [](JobMeta& meta) {
    meta.annotations["muster.dev/start-failure"] = "FailJob";
  };
  JobSpec spec = Play::indexed(9, 2);
  spec.backoff_limit_per_index = 3;
  Play play(spec, fail_job);
  play.sync();
  play.end({0, 0}, 127, EndCause::start_failed);
  EXPECT_EQ(play.conditions(), "FailureTarget=True/StartFailure") << "the other pod still ends";
  play.end({1, 0}, 143, EndCause::killed);
  EXPECT_EQ(play.conditions(), "FailureTarget=True/StartFailure Failed=True/StartFailure");
  play.restart();

  Play own_code(spec, fail_job);
  own_code.sync();
  own_code.end({0, 0}, 127);
  EXPECT_EQ(own_code.conditions(), "") << "a command that ran and ended with 127 was started";
  Play plain(spec);
  plain.sync();
  plain.end({0, 0}, 127, EndCause::start_failed);
  EXPECT_EQ(plain.conditions(), "") << "a manifest is as it is written";
}

// An attempt enters the history once, when its verdict is final.
TEST(Attempts, AreRecordedOnceWithFinalVerdict) {
  JobSpec spec = Play::indexed(2, 2);
  spec.backoff_limit_per_index = 1;
  Play play(spec);
  play.sync();
  play.end({0, 0}, 0);
  EXPECT_EQ(play.closed(), "0#0 succeeded");
  play.end({1, 0}, 1);
  EXPECT_EQ(play.closed(), "0#0 succeeded") << "deferred until its replacement exists";
  play.tick(1000);
  EXPECT_EQ(play.closed(), "0#0 succeeded, 1#0 failed");
  play.update([](JobSpec& s) { s.suspend = true; });
  play.end({1, 1}, 143, EndCause::killed);
  EXPECT_EQ(play.closed(), "0#0 succeeded, 1#0 failed, 1#1 released");
}

}  // namespace

}  // namespace muster::core
