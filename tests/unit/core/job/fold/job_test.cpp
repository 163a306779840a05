// Edge cases of the fold and its rules. tests/golden has the ordinary histories, property_test.cpp
// the random ones.
#include "core/job/fold/job.hpp"

#include "core/job/fold/text.hpp"
#include "core/job/rules/decide.hpp"
#include "core/job/rules/sync.hpp"
#include "core/spec/rules/defaults.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::core {

namespace {

constexpr Millis kNow = 1'000'000;

JobObjectPtr object(JobSpec spec) {
  auto made = std::make_shared<JobObject>();
  made->meta.name = "j";
  made->meta.uid = "00000000-0000-4000-8000-000000000001";
  made->spec = std::move(spec);
  apply_defaults(made->meta, made->spec);
  return made;
}

JobSpec indexed(int32_t completions, int32_t parallelism) {
  JobSpec spec;
  spec.completion_mode = "Indexed";
  spec.completions = completions;
  spec.parallelism = parallelism;
  return spec;
}

Job admitted(JobSpec spec) {
  Job job(1, object(std::move(spec)));
  job.apply(JobAdmitted{kNow, job.object_ptr()});
  return job;
}

template <class T>
std::vector<T> all(const std::vector<Effect>& effects) {
  std::vector<T> found;
  for (const Effect& effect : effects)
    if (const T* one = std::get_if<T>(&effect)) found.push_back(*one);
  return found;
}

PodsReported::Ended ended(PodKey pod, int32_t exit_code, Millis age_ms = 0) {
  PodsReported::Ended end;
  end.pod = pod;
  end.exit_code = exit_code;
  end.ended_at = {age_ms};
  end.start = {100, end.ended_at};
  return end;
}

TEST(Backoff, DoublesUpToTheMaximum) {
  Knobs knobs{10'000, 600'000};
  struct {
    uint32_t failures;
    Millis delay_ms;
  } const rows[] = {{0, 0},       {1, 10'000},  {2, 20'000},     {3, 40'000},
                    {6, 320'000}, {7, 600'000}, {1000, 600'000}, {4'000'000'000, 600'000}};
  for (const auto& row : rows)
    EXPECT_EQ(backoff_delay(knobs, row.failures), row.delay_ms) << row.failures;
  EXPECT_EQ(backoff_delay({0, 0}, 5), 0) << "no delay at all";
  EXPECT_EQ(backoff_delay({5'000, 1'000}, 1), 1'000) << "a base above the maximum";
}

// Only failures strictly after the latest success of the same sync count (5.2).
TEST(Backoff, SuccessOfTheSameSyncForgetsEarlierFailures) {
  Job job = admitted(indexed(4, 4));
  decide(job, {TimePassed{}}, kNow, {});
  decide(job, {SlotsGranted{{{1, 4}}}}, kNow, {});
  PodsReported report{
      1,
      1,
      {},
      {ended({0, 0}, 1, 300), ended({1, 0}, 0, 200), ended({2, 0}, 1, 200), ended({3, 0}, 1, 100)}};
  decide(job, {report}, kNow + 1000, {});
  EXPECT_EQ(job.state().backoff_failures, 1u);
  EXPECT_EQ(job.state().backoff_last_ms, kNow + 900);
}

TEST(Decide, InstantsLieBetweenBindAndNow) {
  Job job = admitted(indexed(3, 3));
  decide(job, {TimePassed{}}, kNow, {});
  decide(job, {SlotsGranted{{{1, 3}}}}, kNow + 100, {});
  PodsReported report{
      1, 1, {}, {ended({0, 0}, 0, 50), ended({1, 0}, 0, 1'000'000), ended({2, 0}, 0, -5'000)}};
  decide(job, {report}, kNow + 200, {});
  EXPECT_EQ(job.pod({0, 0})->end.ended_at, kNow + 150);
  EXPECT_EQ(job.pod({1, 0})->end.ended_at, kNow + 100) << "not before it was bound";
  EXPECT_EQ(job.pod({2, 0})->end.ended_at, kNow + 200) << "not in the future";
  for (uint32_t i = 0; i < 3; ++i)
    EXPECT_LE(job.pod({i, 0})->started_at, job.pod({i, 0})->end.ended_at);
}

TEST(Decide, ClockThatGoesBackDoesNotMoveRecordsBack) {
  Job job = admitted(indexed(1, 1));
  decide(job, {TimePassed{}}, kNow, {});
  Decision decision = decide(job, {SlotsGranted{{{1, 1}}}}, kNow - 60'000, {});
  ASSERT_EQ(decision.records.size(), 1u);
  EXPECT_EQ(at(decision.records[0]), kNow);
}

TEST(Decide, CreatesPodsInBatchesUntilAllExist) {
  Job job = admitted(indexed(2000, 1200));
  std::vector<Decision> decisions;
  decisions.push_back(decide(job, {TimePassed{}}, kNow, {}));
  while (!all<WakeAt>(decisions.back().effects).empty()) {
    EXPECT_EQ(all<WakeAt>(decisions.back().effects).at(0).at_ms, kNow);
    ASSERT_LT(decisions.size(), 10u) << "it wakes itself without end";
    decisions.push_back(decide(job, {TimePassed{}}, kNow, {}));
  }
  EXPECT_EQ(job.active(), 1200u);
  EXPECT_EQ(job.pending().size(), 1200u);
  EXPECT_EQ(job.state().open.rbegin()->first, (PodKey{1199, 0})) << "lowest first";
  for (const Decision& decision : decisions) {
    for (const auto& record : decision.records) {
      const auto* created = std::get_if<PodsCreated>(&record);
      EXPECT_EQ(created ? created->runs.size() : 1u, 1u) << "a run is one entry";
    }
  }
}

// When all candidates are backing off, there is nothing to do before the first of them is due.
TEST(Decide, SleepsWhileAllCandidatesBackOff) {
  JobSpec spec = indexed(1500, 1500);
  spec.backoff_limit_per_index = 3;
  Job job = admitted(spec);
  for (int i = 0; i < 3; ++i) decide(job, {TimePassed{}}, kNow, {});
  ASSERT_EQ(job.active(), 1500u);
  decide(job, {SlotsGranted{{{1, 1500}}}}, kNow, {});
  PodsReported report{1, 1, {}, {}};
  for (uint32_t i = 0; i < 1500; ++i) report.ends.push_back(ended({i, 0}, 1));
  Decision decision = decide(job, {report}, kNow, {});
  ASSERT_EQ(all<WakeAt>(decision.effects).size(), 1u);
  EXPECT_EQ(all<WakeAt>(decision.effects)[0].at_ms, kNow + 10'000);
}

// The cluster's books subtract a grant from what the job asked for, so a job whose pods still wait
// must ask again, even if their number is unchanged.
TEST(Decide, AsksAgainAfterAGrant) {
  Job job = admitted(indexed(3, 2));
  decide(job, {TimePassed{}}, kNow, {});
  decide(job, {SlotsGranted{{{1, 1}}}}, kNow, {});
  PodsReported report{1, 1, {}, {ended({0, 0}, 0)}};
  Decision decision = decide(job, {SlotsGranted{{{1, 1}}}, report}, kNow, {});
  ASSERT_EQ(job.pending().size(), 1u);
  ASSERT_EQ(all<AskSlots>(decision.effects).size(), 1u);
  EXPECT_EQ(all<AskSlots>(decision.effects)[0].wanted, 1u);
}

// The acknowledgement makes the agent forget the pod, so a later launch would start the attempt a
// second time.
TEST(Decide, NeverLaunchesPodThatEndedInSameSync) {
  Job job = admitted(indexed(2, 2));
  decide(job, {TimePassed{}}, kNow, {});
  decide(job, {SlotsGranted{{{1, 2}}}}, kNow, {});
  PodsReported report{1, 1, {}, {ended({0, 0}, 0)}};
  for (bool report_first : {true, false}) {
    Job copy(1, job.object_ptr(), job.state());
    std::vector<Event> events{report, NodeReady{1}};
    if (!report_first) std::swap(events[0], events[1]);
    Decision decision = decide(copy, events, kNow, {});
    std::vector<LaunchPods::One> launched;
    for (const auto& launch : all<LaunchPods>(decision.effects))
      launched.insert(launched.end(), launch.pods.begin(), launch.pods.end());
    EXPECT_EQ(launched, (std::vector<LaunchPods::One>{{{1, 0}, 1}}))
        << "report first: " << report_first;
  }
}

TEST(Decide, AReportFromAnotherNodeIsAckedAndChangesNothing) {
  Job job = admitted(indexed(1, 1));
  decide(job, {TimePassed{}}, kNow, {});
  decide(job, {SlotsGranted{{{1, 1}}}}, kNow, {});
  JobState before = job.state();
  PodsReported report{7, 2, {{{0, 0}, 5, 0, 0}}, {ended({0, 0}, 0)}};
  Decision decision = decide(job, {report}, kNow, {});
  EXPECT_TRUE(decision.records.empty());
  ASSERT_EQ(all<AckReport>(decision.effects).size(), 1u);
  EXPECT_EQ(all<AckReport>(decision.effects)[0].token, 7u);
  EXPECT_TRUE(job.state() == before);
}

TEST(Decide, EndCountsByCauseAndExitCode) {
  struct {
    EndCause cause;
    int32_t exit_code;
    bool success;
  } const rows[] = {{EndCause::exited, 0, true},         {EndCause::exited, 1, false},
                    {EndCause::killed, 0, true},         {EndCause::killed, 143, false},
                    {EndCause::never_started, 0, false}, {EndCause::start_failed, 127, false},
                    {EndCause::keeper_lost, 137, false}, {EndCause::agent_stopped, 0, true},
                    {EndCause::deadline, 0, false},      {EndCause::out_of_memory, 137, false},
                    {EndCause::evicted, 137, false},     {EndCause::worker_unreachable, 0, false}};
  for (const auto& row : rows) {
    Job job = admitted(indexed(2, 1));
    decide(job, {TimePassed{}}, kNow, {});
    decide(job, {SlotsGranted{{{1, 1}}}}, kNow, {});
    auto end = ended({0, 0}, row.exit_code);
    end.cause = row.cause;
    decide(job, {PodsReported{1, 1, {}, {end}}}, kNow, {});
    EXPECT_EQ(job.succeeded(), row.success ? 1u : 0u) << name(row.cause) << " " << row.exit_code;
    EXPECT_EQ(job.state().failed, row.success ? 0u : 1u) << name(row.cause) << " " << row.exit_code;
  }
}

TEST(Fold, FinishedPodsBeyondTheLimitGoOldestFirst) {
  constexpr uint32_t kMore = 10;
  JobSpec spec = indexed(static_cast<int32_t>(kFinishedPodsMax + kMore), 1);
  Job job = admitted(spec);
  uint64_t removed = 0;
  for (uint32_t i = 0; i < kFinishedPodsMax + kMore; ++i) {
    Touched touched;
    job.apply(PodsCreated{kNow, {{i, 1, 0, 0, 0, Counted::not_yet}}});
    job.apply(PodsBound{kNow, {{{i, 0}, 1}}});
    PodsEnded::One one;
    one.pod = {i, 0};
    one.counted = Counted::succeeded;
    job.apply(PodsEnded{kNow, {one}, 0, 0}, &touched);
    removed += touched.removed.size();
  }
  EXPECT_EQ(job.state().finished.size(), kFinishedPodsMax);
  EXPECT_EQ(removed, kMore);
  EXPECT_EQ(job.pod({kMore - 1, 0}), nullptr);
  ASSERT_NE(job.pod({kMore, 0}), nullptr);
  EXPECT_EQ(job.pod({kMore, 0})->key, (PodKey{kMore, 0}));
  EXPECT_EQ(job.succeeded(), kFinishedPodsMax + kMore) << "what is gone stays counted";
  Job again(1, job.object_ptr(), job.state());
  ASSERT_NE(again.pod({kMore, 0}), nullptr);
  EXPECT_EQ(again.pod({kMore, 0})->key, (PodKey{kMore, 0})) << "also from a snapshot";
  EXPECT_EQ(job.state().events.size(), kEventsMax);
  EXPECT_EQ(job.state().events_total, uint64_t{kFinishedPodsMax} + kMore);
}

RunEnd run_of(uint16_t container, int32_t number, Millis ended_at, int32_t exit_code = 3) {
  RunEnd run{container};
  run.end = {.exit_code = exit_code, .restarts = number, .ended_at = ended_at};
  return run;
}

PodsStarted restarted(ContainerPhase phase, int32_t restarts, Millis last_ended_at) {
  ContainerNow now{.phase = phase, .restarts = restarts};
  now.last = run_of(0, restarts, last_ended_at).end;
  return {kNow, {{{0, 0}, 7, restarts, kNow, Readiness::ready, {now}}}};
}

TEST(Fold, RunsBeforeTheLastAreRememberedOnce) {
  Job job = admitted(indexed(1, 1));
  job.apply(PodsCreated{kNow, {{0, 1, 0, 0, 0, Counted::not_yet}}});
  job.apply(PodsBound{kNow, {{{0, 0}, 1}}});
  job.apply(PodsStarted{kNow, {{{0, 0}, 7, 0, kNow}}});
  EXPECT_TRUE(job.pod({0, 0})->runs.empty());
  job.apply(restarted(ContainerPhase::waiting, 0, kNow + 1));
  EXPECT_TRUE(job.pod({0, 0})->runs.empty()) << "it may be the last";
  job.apply(restarted(ContainerPhase::running, 1, kNow + 1));
  job.apply(restarted(ContainerPhase::running, 1, kNow + 1));
  EXPECT_EQ(job.pod({0, 0})->runs, std::vector{run_of(0, 0, kNow + 1)});
  EXPECT_EQ(Job(1, job.object_ptr(), job.state()).pod({0, 0})->runs.size(), 1u);
  job.apply(restarted(ContainerPhase::running, 3, kNow + 3));
  PodsEnded::One one;
  one.pod = {0, 0};
  one.start = {{7, kNow}};
  one.restarts = 3;
  one.counted = Counted::failed;
  one.end.containers = {run_of(0, 3, kNow + 4).end};
  for (const int number : {0, 1, 2}) one.runs.push_back(run_of(0, number, kNow + 1 + number));
  one.runs.front().used = {5, 5, 5};
  job.apply(PodsEnded{kNow + 5, {one}, 0, 0});
  std::vector<RunEnd> expected = one.runs;
  EXPECT_EQ(job.pod({0, 0})->runs, expected) << "what was not reported at the time is added";
}

TEST(Fold, ARunThatWaitedToBeRestartedIsNotLostWithItsNode) {
  Job job = admitted(indexed(1, 1));
  job.apply(PodsCreated{kNow, {{0, 1, 0, 0, 0, Counted::not_yet}}});
  job.apply(PodsBound{kNow, {{{0, 0}, 1}}});
  job.apply(restarted(ContainerPhase::waiting, 0, kNow + 1));
  PodsEnded::One one;
  one.pod = {0, 0};
  one.end.cause = EndCause::node_lost;
  one.counted = Counted::failed;
  job.apply(PodsEnded{kNow + 5, {one}, 0, 0});
  EXPECT_EQ(job.pod({0, 0})->runs, std::vector{run_of(0, 0, kNow + 1)});
}

TEST(Fold, OnlyTheNewestRunsAreKept) {
  std::vector<RunEnd> runs;
  const auto max = static_cast<int>(kRunsMax);
  for (int n = 0; n < max; ++n) add_run(runs, run_of(0, 2 * n + 2, kNow + 2 * n + 2));
  add_run(runs, run_of(0, 1, kNow + 1));
  EXPECT_EQ(runs.front().end.restarts, 2) << "it is older than all";
  add_run(runs, run_of(1, 0, kNow + 5));
  ASSERT_EQ(runs.size(), kRunsMax);
  EXPECT_EQ(runs[0].end.restarts, 4);
  EXPECT_EQ(runs[1], run_of(1, 0, kNow + 5)) << "in the order of their ends";
}

TEST(Fold, DesiredEffectsHaveOnlyPodsOfNode) {
  Job job = admitted(indexed(4, 4));
  decide(job, {TimePassed{}}, kNow, {});
  decide(job, {SlotsGranted{{{1, 2}, {2, 1}}}}, kNow, {});
  decide(job, {PodsReported{1, 1, {{{0, 0}, 5, 0, 0}}, {}}}, kNow, {});
  auto one = all<LaunchPods>(job.desired_effects(1));
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].pods, (std::vector<LaunchPods::One>{{{1, 0}, 1}}))
      << "a started pod is not launched";
  EXPECT_TRUE(all<LaunchPods>(job.desired_effects(1, {{1, 0}})).empty())
      << "what the node knows is not launched";
  EXPECT_EQ(all<LaunchPods>(job.desired_effects(1, {}, 7)).at(0).pods.at(0).registration, 7u);
  EXPECT_EQ(job.slots_wanted().wanted, 1u);
  decide(job, {JobDeletion{1, true}}, kNow, {});
  auto kills = all<KillPods>(job.desired_effects(kNoNode));
  ASSERT_EQ(kills.size(), 1u);
  EXPECT_EQ(kills[0].pods.size(), 3u);
  EXPECT_TRUE(all<LaunchPods>(job.desired_effects(kNoNode)).empty())
      << "what is being deleted is not launched";
}

TEST(Fold, AnIndexThatComesBackStartsAboveAllAttemptsOfItsJob) {
  Job job = admitted(indexed(3, 3));
  job.apply(
      PodsCreated{kNow, {{0, 1, 4, 0, 0, Counted::not_yet}, {2, 1, 1, 0, 0, Counted::not_yet}}});
  EXPECT_EQ(job.next_attempt(0), 5u);
  EXPECT_EQ(job.next_attempt(1), 0u);
  job.apply(JobSpecChanged{kNow, 2, 1, 1, nullptr});
  job.apply(JobSpecChanged{kNow, 3, 3, 3, nullptr});
  EXPECT_EQ(job.next_attempt(0), 5u);
  EXPECT_EQ(job.next_attempt(2), 5u) << "scaled away and back";
}

TEST(Fold, FailedPodsKilledByTheirJobAreNotShownOnceTheyHaveEnded) {
  JobSpec spec = indexed(2, 2);
  spec.backoff_limit = 0;
  Job job = admitted(spec);
  decide(job, {TimePassed{}}, kNow, {});
  decide(job, {SlotsGranted{{{1, 2}}}}, kNow, {});
  decide(job, {PodsReported{1, 1, {}, {ended({0, 0}, 1)}}}, kNow, {});
  EXPECT_EQ(job.state().failed, 2u) << "the killed one counts at once";
  EXPECT_EQ(job.terminating(), 1u);
  EXPECT_FALSE(job.finished());
  decide(job, {PodsReported{2, 1, {}, {ended({1, 0}, 0)}}}, kNow, {});
  EXPECT_TRUE(job.finished());
  EXPECT_EQ(job.state().failed, 2u);
  EXPECT_EQ(job.succeeded(), 0u);
  EXPECT_EQ(job.pod({1, 0}), nullptr);
  EXPECT_NE(job.pod({0, 0}), nullptr);
}

}  // namespace

}  // namespace muster::core
