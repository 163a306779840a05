// A failure breaks a gang, ends the other members and is charged once (ADR 32): in MPI jobs, where
// a worker's end ends the leader, and in gangs that restart as one.
#include "tests/unit/core/job/play.hpp"

#include <algorithm>

namespace muster::core {

namespace {

using Meta = std::function<void(JobMeta&)>;

Meta annotated(StringMap annotations) {
  return [annotations](JobMeta& meta) { meta.annotations = annotations; };
}
const StringMap kMpi = {{"muster.dev/mpi", "auto"}};
const StringMap kMpiWhole = {{"muster.dev/mpi", "auto"}, {"muster.dev/restart", "gang"}};
const StringMap kWhole = {{"muster.dev/gang", "true"}, {"muster.dev/restart", "gang"}};

JobSpec spec_of(int32_t n, std::optional<int32_t> per_index = {}, int32_t limit = 6) {
  JobSpec spec = Play::indexed(n, n);
  spec.backoff_limit = limit;
  spec.backoff_limit_per_index = per_index;
  return spec;
}

// A job with all its pods running.
Play running(JobSpec spec, const StringMap& annotations) {
  const uint32_t n = static_cast<uint32_t>(*spec.completions);
  Play play(std::move(spec), annotated(annotations));
  play.sync();
  for (uint32_t i = 0; i < n; ++i) play.start({i, 0});
  return play;
}

// The reason and message of its DisruptionTarget condition, or "" if it has none.
std::string target(Play& play, PodKey key) {
  const Pod* pod = play.pod(key);
  if (!pod) return "gone";
  for (const PodCondition& c : pod->conditions)
    if (c.type == kDisruptionTarget) return c.reason + ": " + c.message;
  return "";
}

std::vector<PodKey> active(Play& play) {
  std::vector<PodKey> keys;
  for (const auto& [key, pod] : play.state().open)
    if (pod.active()) keys.push_back(key);
  return keys;
}
using Keys = std::vector<PodKey>;

void end_all_terminating(Play& play, int code = 143) {
  std::vector<PodKey> keys;
  for (const auto& [key, pod] : play.state().open)
    if (pod.terminating()) keys.push_back(key);
  for (PodKey key : keys) play.end(key, code, EndCause::killed);
}

PodsReported both(const std::vector<PodsReported::Ended>& ends) {
  return {1, Play::kNode, {}, ends};
}

// ---- an MPI job: a worker that ends while the leader runs

TEST(MpiGang, FailedWorkerRestartsLeaderAndIsChargedAlone) {
  Play play = running(spec_of(3), kMpi);
  play.end({2, 0}, 9);
  EXPECT_TRUE(play.pod({0, 0})->terminating());
  EXPECT_EQ(target(play, {0, 0}), "WorkerFailed: index 2 (attempt 0) failed with exit code 9");
  EXPECT_TRUE(play.pod({1, 0})->active()) << "the other workers keep running";
  EXPECT_EQ(play.state().failed, 1u);
  play.tick(100);
  EXPECT_EQ(active(play), (Keys{{1, 0}, {2, 1}})) << "the leader has not ended yet";
  play.end({0, 0}, 143, EndCause::killed);
  EXPECT_EQ(active(play), (Keys{{0, 1}, {1, 0}, {2, 1}}));
  EXPECT_EQ(play.state().failed, 1u);
  EXPECT_EQ(play.closed(), "2#0 failed, 0#0 released");
  play.restart();
}

// Without a launcher each pod is a rank, and no rank can continue without the others.
TEST(MpiGang, RanksRestartTogether) {
  Play play = running(spec_of(3, 1), {{"muster.dev/mpi", "mpich,direct"}});
  play.end({1, 0}, 9);
  EXPECT_TRUE(play.pod({0, 0})->terminating() && play.pod({2, 0})->terminating());
  end_all_terminating(play);
  play.tick(1000);
  EXPECT_EQ(active(play), (Keys{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(play.state().failed, 1u);
}

TEST(MpiGang, ARankThatFailsForGoodEndsTheJob) {
  Play play = running(spec_of(3, 0), {{"muster.dev/mpi", "mpich,direct"}});
  play.end({1, 0}, 9);
  end_all_terminating(play);
  EXPECT_TRUE(play.job().finished());
  EXPECT_FALSE(play.state().completed.contains(0));
}

TEST(MpiGang, RankFailureAfterAnotherRankEndedFailsJob) {
  Play play = running(spec_of(3, 5), {{"muster.dev/mpi", "mpich,direct"}});
  play.end({0, 0}, 0);
  EXPECT_FALSE(play.job().finished());
  play.end({1, 0}, 9);
  end_all_terminating(play);
  EXPECT_TRUE(play.job().finished());
  EXPECT_EQ(play.state().failed_indexes.size(), 0u);
}

TEST(MpiGang, EachFurtherWorkerFailureIsCharged) {
  Play play = running(spec_of(3), kMpi);
  for (uint32_t attempt = 0; attempt < 3; ++attempt) {
    play.end({2, attempt}, 9);
    end_all_terminating(play);
    play.tick(1000);
    EXPECT_EQ(play.state().failed, attempt + 1);
    EXPECT_EQ(active(play), (Keys{{0, attempt + 1}, {1, 0}, {2, attempt + 1}}));
    play.start({0, attempt + 1});
    play.start({2, attempt + 1});
  }
}

// However the reports arrive, one failure is charged.
TEST(MpiGang, ALeaderThatAbortsBecauseOfAWorkerIsNotChargedToo) {
  const auto worker = Play::ended({2, 0}, 137), leader = Play::ended({0, 0}, 255);
  for (bool per_index : {false, true}) {
    const auto fresh = [per_index] {
      return running(spec_of(3, per_index ? std::optional(3) : std::nullopt), kMpi);
    };
    const auto settle = [](Play& play, const char* what) {
      end_all_terminating(play);
      play.tick(1000);
      if (play.asks()) play.answer({});
      EXPECT_EQ(play.state().failed, 1u) << what;
      EXPECT_EQ(active(play), (Keys{{0, 1}, {1, 0}, {2, 1}})) << what;
      play.restart();
    };
    for (const auto& ends : {std::vector{worker, leader}, std::vector{leader, worker}}) {
      Play play = fresh();
      play.sync({both(ends)});
      EXPECT_EQ(play.pod({0, 0})->counted, Counted::released);
      EXPECT_EQ(target(play, {0, 0}),
                "WorkerFailed: index 2 (attempt 0) failed with exit code 137");
      settle(play, "in one batch");
    }
    {
      Play play = fresh();
      play.sync({both({worker})});
      play.sync({both({leader})});
      settle(play, "after the order");
    }
    {
      Play play = fresh();
      play.sync({both({leader})});
      play.sync({both({worker})});
      settle(play, "before the worker");
    }
    {
      Play play = fresh();
      play.ask_nodes();
      play.sync({both({worker})});
      EXPECT_TRUE(play.asks());
      EXPECT_TRUE(play.pod({0, 0})->active()) << "its node is asked first";
      play.ask_nodes();  // the coordinator crashes
      play.restart();
      play.answer({{0, 0}});
      play.sync({both({leader})});
      EXPECT_EQ(play.pod({0, 0})->counted, Counted::released);
      play.answer({});
      settle(play, "before the order, reported after it was decided");
    }
  }
}

TEST(MpiGang, ALeaderThatSucceededStaysASuccess) {
  const auto worker = Play::ended({1, 0}, 137), leader = Play::ended({0, 0}, 0);
  for (const auto& ends : {std::vector{worker, leader}, std::vector{leader, worker}}) {
    Play play = running(spec_of(2), kMpi);
    play.sync({both(ends)});
    EXPECT_TRUE(play.state().completed.contains(0));
    EXPECT_FALSE(play.state().broken);
    EXPECT_EQ(play.state().failed, 1u);
  }
  Play play = running(spec_of(2), kMpi);
  play.ask_nodes();
  play.sync({both({worker})});
  play.answer({{0, 0}});
  play.sync({both({leader})});
  EXPECT_TRUE(play.state().completed.contains(0));
  EXPECT_FALSE(play.state().broken) << "the others are judged by themselves again";
  play.restart();
}

TEST(MpiGang, LeaderExitOfZeroAfterKillIsNoSuccess) {
  Play play = running(spec_of(2), kMpi);
  play.end({1, 0}, 137);
  play.end({0, 0}, 0, EndCause::killed);
  EXPECT_FALSE(play.state().completed.contains(0));
}

TEST(MpiGang, NextLeaderWaitsForAnswersOfWorkerNodes) {
  Play play = running(spec_of(3), kMpi);
  play.ask_nodes();
  play.end({0, 0}, 255);
  play.tick(5'000);  // the leader's failure no longer waits
  play.tick(1'000);
  EXPECT_EQ(play.state().failed, 1u);
  EXPECT_TRUE(play.asks());
  EXPECT_FALSE(play.pod({0, 1})) << "a worker's end may be on its way";
  play.answer({{1, 0}});
  EXPECT_FALSE(play.pod({0, 1}));
  play.end({1, 0}, 137);
  EXPECT_EQ(play.pod({1, 0})->counted, Counted::released) << "the leader's failure was this one";
  EXPECT_EQ(target(play, {1, 0}),
            "GangMemberFailed: index 0 (attempt 0) failed with exit code 255");
  EXPECT_EQ(active(play), (Keys{{0, 1}, {1, 1}, {2, 0}}));
  EXPECT_EQ(play.state().failed, 1u);
}

TEST(MpiGang, ANewWorkerThatFailsBeforeTheLeaderIsBackIsCharged) {
  Play play = running(spec_of(3), kMpi);
  play.end({2, 0}, 9);
  play.tick(100);
  play.end({2, 1}, 9);  // the leader is still ending
  EXPECT_EQ(play.state().failed, 2u) << "or a worker that cannot start would be started for ever";
}

TEST(MpiGang, DeletedEvictedAndLostWorkersEndTheLeader) {
  {
    Play play = running(spec_of(2), kMpi);
    play.remove({1, 0}, PodsDeletion::Why::eviction);
    EXPECT_EQ(target(play, {0, 0}),
              "WorkerFailed: index 1 (attempt 0) was deleted: Eviction API: evicting");
    EXPECT_TRUE(play.pod({0, 0})->terminating());
    EXPECT_EQ(play.state().failed, 1u);
  }
  {
    Play play = running(spec_of(2), kMpi);
    play.end({1, 0}, 137, EndCause::node_lost);
    EXPECT_EQ(target(play, {0, 0}),
              "WorkerFailed: index 1 (attempt 0) failed with exit code 137: its node was lost");
  }
  {  // a parked worker that exits with 0 when it is stopped
    Play play = running(spec_of(2), kMpi);
    play.end({1, 0}, 0, EndCause::agent_stopped);
    EXPECT_FALSE(play.state().completed.contains(1));
    EXPECT_EQ(target(play, {0, 0}),
              "WorkerFailed: index 1 (attempt 0) was ended: its agent was shut down");
  }
}

// The pods that a node is ordered to end, by what the state calls for.
std::string orders(Play& play) {
  std::string text;
  for (const Effect& effect : play.job().desired_effects(kNoNode))
    if (const auto* kill = std::get_if<KillPods>(&effect))
      for (const KillPods::One& one : kill->pods)
        text += (text.empty() ? "" : ",") + std::to_string(one.pod.index);
  return text;
}

// The ranks in a worker's pod would be killed with it; so the leader's launcher ends them first.
TEST(MpiGang, WorkersAreEndedAfterTheirLeader) {
  {
    Play play = running(spec_of(3), kMpi);
    play.remove({1, 0}, PodsDeletion::Why::taint);
    EXPECT_TRUE(play.pod({1, 0})->stopping_at);
    EXPECT_EQ(orders(play), "0") << "of a worker's deletion, too";
    play.restart();
    EXPECT_EQ(orders(play), "0");
    play.end({0, 0}, 143, EndCause::killed);
    EXPECT_EQ(orders(play), "1");
  }
  {
    Play play = running(spec_of(3), kMpi);
    play.end({0, 0}, 0);
    EXPECT_EQ(orders(play), "") << "without a success policy, nothing ends the workers";
    play.remove({1, 0});
    EXPECT_EQ(orders(play), "1") << "no leader is left";
  }
  {
    JobSpec spec = spec_of(3);
    spec.pod_replacement_policy = "Failed";
    Play play = running(std::move(spec), kMpi);
    play.remove({1, 0});
    EXPECT_EQ(orders(play), "1") << "its end is what ends the leader";
  }
  {
    Play play = running(spec_of(3), kWhole);
    play.remove({1, 0});
    EXPECT_EQ(orders(play), "0,1,2") << "no pod leads";
  }
}

TEST(MpiGang, WorkerDeletionIsCauseOfLeaderFailure) {
  JobSpec spec = spec_of(2);
  spec.pod_replacement_policy = "Failed";
  Play play = running(spec, kMpi);
  play.remove({1, 0});
  play.end({0, 0}, 255);
  EXPECT_EQ(play.pod({0, 0})->counted, Counted::released);
  EXPECT_EQ(target(play, {0, 0}), "WorkerFailed: index 1 (attempt 0) was deleted");
  play.end({1, 0}, 143, EndCause::killed);
  EXPECT_EQ(play.state().failed, 1u);
}

TEST(MpiGang, AnUnreachableWorkerIsTheLeadersFailure) {
  Play play = running(spec_of(2), kMpi);
  PodsReported::Ended end = Play::ended({0, 0}, 143, EndCause::worker_unreachable);
  end.message = "index 1 (attempt 0) did not answer for 60 s";
  play.sync({both({end})});
  EXPECT_EQ(play.state().failed, 1u);
  EXPECT_EQ(play.state().broken->why,
            "index 0 (attempt 0) failed with exit code 143: index 1 (attempt 0) did not answer for "
            "60 s");
  play.end({1, 0}, 137, EndCause::node_lost);
  EXPECT_EQ(play.state().failed, 1u);
}

TEST(MpiGang, AJobWhoseLeaderHasNoRetriesLeftFails) {
  Play play = running(spec_of(3, 1), kMpi);
  play.end({0, 0}, 1);
  play.tick(1000);
  play.start({0, 1});
  play.end({0, 1}, 1);
  EXPECT_EQ(play.conditions(), "FailureTarget=True/FailedIndexes");
  EXPECT_EQ(play.state().failed, 2u) << "the workers count nowhere";
}

// However the reports arrive, a job without retries names the worker.
TEST(MpiGang, FailureWithoutRetriesNamesWorker) {
  const auto worker = Play::ended({1, 0}, 137), leader = Play::ended({0, 0}, 255);
  const std::string why = "index 1 (attempt 0) failed with exit code 137";
  for (const StringMap& annotations : {kMpi, kMpiWhole}) {
    for (bool per_index : {false, true}) {
      // If the gang restarts as one, only its leader has a budget.
      const bool leader_pays = per_index && annotations == kMpiWhole;
      const auto fresh = [per_index, &annotations] {
        JobSpec spec = spec_of(3, per_index ? std::optional(0) : std::nullopt, per_index ? 6 : 0);
        if (per_index) spec.max_failed_indexes = 0;
        Play play = running(spec, annotations);
        play.ask_nodes();
        return play;
      };
      const auto settle = [&](Play& play, const char* what) {
        for (int i = 0; i < 3 && !play.job().decided(); ++i)
          play.asks() ? play.answer({}) : play.sync();
        ASSERT_TRUE(play.job().decided()) << what;
        EXPECT_EQ(target(play, {0, 0}), "WorkerFailed: " + why) << what;
        EXPECT_EQ(target(play, {1, 0}), "") << what;
        EXPECT_EQ(play.pod({1, 0})->counted, Counted::failed) << what;
        EXPECT_EQ(play.pod({0, 0})->counted, Counted::released) << what;
        end_all_terminating(play);
        EXPECT_TRUE(play.job().finished()) << what;
        EXPECT_EQ(play.state().failed, 1u) << what;
        EXPECT_EQ(play.state().failed_indexes.text(), !per_index    ? ""
                                                      : leader_pays ? "0"
                                                                    : "1")
            << what;
        const std::string message = play.state().conditions.back().message;
        EXPECT_TRUE(message.ends_with(": " + why)) << what << ": " << message;
        play.restart();
      };
      {
        Play play = fresh();
        play.sync({both({worker})});
        settle(play, "the leader is killed");
      }
      {
        Play play = fresh();
        play.sync({both({worker})});
        play.answer({{0, 0}});
        play.sync({both({leader})});
        settle(play, "worker first");
      }
      {
        Play play = fresh();
        play.sync({both({leader})});
        play.answer({{0, 0}, {1, 0}});
        play.sync({both({worker})});
        settle(play, "leader first");
      }
      for (const auto& ends : {std::vector{worker, leader}, std::vector{leader, worker}}) {
        Play play = fresh();
        play.sync({both(ends)});
        settle(play, "in one report");
      }
    }
  }
}

// ---- a leader's failure waits until its workers' nodes have answered

int acks(const Play& play) {
  return static_cast<int>(std::count_if(
      play.effects().begin(), play.effects().end(),
      [](const Effect& effect) { return std::holds_alternative<AckReport>(effect); }));
}

TEST(MpiGang, ALeadersFailureIsJudgedAndAcknowledgedOnceItsWorkersNodesHaveAnswered) {
  const auto worker = Play::ended({2, 0}, 137), leader = Play::ended({0, 0}, 255);
  const auto fresh = [&leader] {
    Play play = running(spec_of(3), kMpi);
    play.ask_nodes();
    play.sync({both({leader})});
    EXPECT_TRUE(play.asks());
    EXPECT_EQ(acks(play), 0);
    EXPECT_TRUE(play.pod({0, 0})->active());
    return play;
  };
  {
    Play play = fresh();
    play.answer({{0, 0}});
    EXPECT_EQ(acks(play), 1);
    EXPECT_EQ(play.closed(), "0#0 failed") << "no worker had ended";
  }
  {
    Play play = fresh();
    play.answer({{0, 0}, {2, 0}});
    EXPECT_EQ(acks(play), 0) << "the worker's report is on its way";
    play.sync({both({worker})});
    EXPECT_EQ(acks(play), 2);
    EXPECT_EQ(play.closed(), "2#0 failed, 0#0 released");
    play.restart();
  }
  {
    Play play = fresh();
    play.ask_nodes();  // the coordinator crashes, and both are reported again
    play.restart();
    EXPECT_EQ(play.state().failed, 0u);
    play.sync({both({worker, leader})});
    EXPECT_EQ(acks(play), 1);
    EXPECT_EQ(play.closed(), "2#0 failed, 0#0 released");
  }
  {
    Play play = fresh();
    play.sync({both({leader}), both({leader})});  // over a new connection
    EXPECT_EQ(acks(play), 0);
    play.answer({{0, 0}});
    EXPECT_EQ(acks(play), 3);
    EXPECT_EQ(play.closed(), "0#0 failed");
  }
  {
    Play play = fresh();
    play.sync({NodeLost{Play::kNode}});
    EXPECT_EQ(acks(play), 1);
    EXPECT_EQ(target(play, {0, 0}),
              "WorkerFailed: index 1 (attempt 0) failed with exit code 137: its node was lost");
    EXPECT_EQ(play.pod({0, 0})->end.exit_code, 255) << "it had ended before";
  }
}

TEST(MpiGang, ALeadersFailureWaitsAtMostFiveSeconds) {
  Play play = running(spec_of(2), kMpi);
  play.ask_nodes();
  play.end({0, 0}, 255);
  EXPECT_TRUE(std::any_of(play.effects().begin(), play.effects().end(), [&play](const Effect& e) {
    auto* wake = std::get_if<WakeAt>(&e);
    return wake && wake->at_ms == play.now() + 5'000;
  }));
  play.tick(4'999);
  EXPECT_EQ(play.state().failed, 0u);
  play.tick(1);
  EXPECT_EQ(play.closed(), "0#0 failed");
}

TEST(MpiGang, WithoutRetriesALeaderThatFailsAloneIsCharged) {
  for (bool per_index : {false, true}) {
    Play play =
        running(spec_of(3, per_index ? std::optional(0) : std::nullopt, per_index ? 6 : 0), kMpi);
    play.ask_nodes();
    play.end({0, 0}, 3);
    play.answer({});
    EXPECT_EQ(target(play, {0, 0}), "");
    EXPECT_EQ(play.pod({0, 0})->counted, Counted::failed);
    end_all_terminating(play);
    EXPECT_EQ(play.state().failed, 1u);
    EXPECT_EQ(play.state().failed_indexes.text(), per_index ? "0" : "");
    EXPECT_TRUE(play.state().conditions.back().message.ends_with(
        ": index 0 (attempt 0) failed with exit code 3"));
    play.restart();
  }
}

// ---- restart: gang

TEST(RestartGang, OneFailureEndsAllAndAllStartAgainTogether) {
  Play play = running(spec_of(3), kWhole);
  play.end({1, 0}, 9);
  EXPECT_EQ(active(play), Keys{});
  EXPECT_EQ(target(play, {0, 0}), "GangMemberFailed: index 1 (attempt 0) failed with exit code 9");
  play.end({0, 0}, 143, EndCause::killed);
  play.tick(1000);
  EXPECT_EQ(active(play), Keys{}) << "one of them still lives";
  play.end({2, 0}, 143, EndCause::killed);
  EXPECT_EQ(active(play), (Keys{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(play.state().failed, 1u);
  EXPECT_EQ(play.closed(), "1#0 failed, 0#0 released, 2#0 released");
  play.restart();
}

TEST(RestartGang, AllWaitForTheBackoffOfTheOneThatFailed) {
  for (bool per_index : {false, true}) {
    Play play = running(spec_of(3, per_index ? std::optional(3) : std::nullopt), kWhole);
    play.end({1, 0}, 9);
    end_all_terminating(play);
    EXPECT_EQ(active(play), Keys{});
    play.tick(99);
    EXPECT_EQ(active(play), Keys{}) << "the delay is 100 ms";
    play.tick(1);
    EXPECT_EQ(active(play), (Keys{{0, 1}, {1, 1}, {2, 1}}));
    EXPECT_EQ(play.pod({0, 1})->failures, 0);
    EXPECT_EQ(play.pod({1, 1})->failures, per_index ? 1 : 0);
    play.restart();
  }
}

TEST(RestartGang, FailuresBeforeGangHasEndedCountOnce) {
  for (bool per_index : {false, true}) {
    Play play = running(spec_of(4, per_index ? std::optional(3) : std::nullopt), kWhole);
    play.ask_nodes();
    play.sync({both({Play::ended({1, 0}, 9), Play::ended({2, 0}, 9)})});
    ASSERT_TRUE(play.asks());
    play.end({3, 0}, 9);
    play.ask_nodes();
    play.restart();
    play.answer({});
    EXPECT_EQ(active(play), Keys{});
    end_all_terminating(play);
    play.tick(100);
    EXPECT_EQ(active(play), (Keys{{0, 1}, {1, 1}, {2, 1}, {3, 1}})) << "after the delay of one";
    EXPECT_EQ(play.state().failed, 1u);
    int failures = 0;
    for (uint32_t i = 0; i < 4; ++i) failures += play.pod({i, 1})->failures;
    EXPECT_EQ(failures, per_index ? 1 : 0);
    play.restart();
  }
}

TEST(RestartGang, AnIndexKeepsItsFailuresWhenAnotherOneFails) {
  Play play = running(spec_of(2, 1), kWhole);
  for (uint32_t attempt = 0; attempt < 2; ++attempt) {
    play.end({attempt % 2, attempt}, 9);
    end_all_terminating(play);
    play.tick(1000);
    play.start({0, attempt + 1});
    play.start({1, attempt + 1});
  }
  EXPECT_EQ(play.pod({0, 2})->failures, 1);
  EXPECT_EQ(play.pod({1, 2})->failures, 1);
  play.end({0, 2}, 9);
  EXPECT_EQ(play.state().failed_indexes.text(), "0");
  end_all_terminating(play);
  play.tick(1000);
  EXPECT_EQ(active(play), (Keys{{1, 3}})) << "the others go on, as maxFailedIndexes allows";
  EXPECT_EQ(play.pod({1, 3})->failures, 1);
  play.restart();
}

TEST(RestartGang, CompletedIndexesStayCompleted) {
  Play play = running(spec_of(3), kWhole);
  play.end({0, 0}, 0);
  play.ask_nodes();
  play.end({1, 0}, 9);
  play.answer({{2, 0}});
  play.end({2, 0}, 0);
  EXPECT_EQ(play.state().completed.text(), "0,2") << "it had ended before the order";
  play.tick(1000);
  EXPECT_EQ(active(play), (Keys{{1, 1}}));
  EXPECT_FALSE(play.state().broken);
  play.end({1, 1}, 0);
  EXPECT_TRUE(play.job().finished());
}

TEST(RestartGang, AnMpiJobChargesItsLeader) {
  Play play = running(spec_of(3, 1), kMpiWhole);
  play.end({2, 0}, 9);
  EXPECT_EQ(target(play, {0, 0}), "WorkerFailed: index 2 (attempt 0) failed with exit code 9");
  end_all_terminating(play);
  play.tick(99);
  EXPECT_EQ(active(play), Keys{});
  play.tick(1);
  EXPECT_EQ(active(play), (Keys{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(play.pod({0, 1})->failures, 1);
  EXPECT_EQ(play.pod({2, 1})->failures, 0);
  play.restart();
  play.end({1, 1}, 9);
  EXPECT_EQ(play.state().failed_indexes.text(), "0") << "the leader has one retry";
  play.sync();
  EXPECT_EQ(play.conditions(), "FailureTarget=True/FailedIndexes");
  EXPECT_EQ(play.state().failed, 2u);
}

TEST(RestartGang, ALeaderThatSucceededDoesNotFailItsIndex) {
  const auto worker = Play::ended({1, 0}, 9), leader = Play::ended({0, 0}, 0);
  {
    Play play = running(spec_of(3, 0), kMpiWhole);
    play.sync({both({worker, leader})});
    EXPECT_EQ(play.state().completed.text(), "0");
    EXPECT_FALSE(play.state().failed_indexes.contains(0));
  }
  Play play = running(spec_of(3, 0), kMpiWhole);
  play.ask_nodes();
  play.sync({both({worker})});
  play.answer({{0, 0}});
  play.sync({both({leader})});
  EXPECT_EQ(play.state().completed.text(), "0") << "it had ended before the order";
  EXPECT_FALSE(play.state().failed_indexes.contains(0));
}

TEST(RestartGang, AnIgnoredDisruptionRestartsAllAndChargesNothing) {
  for (bool per_index : {false, true}) {
    JobSpec spec = spec_of(3, per_index ? std::optional(0) : std::nullopt, 0);
    spec.pod_failure_policy.emplace().rules.push_back(
        {"Ignore", {}, {{std::string(kDisruptionTarget), "True"}}});
    Play play = running(spec, kWhole);
    play.end({1, 0}, 137, EndCause::node_lost);
    end_all_terminating(play);
    play.tick(1000);
    EXPECT_EQ(active(play), (Keys{{0, 1}, {1, 1}, {2, 1}}));
    EXPECT_EQ(play.state().failed, 0u);
    EXPECT_EQ(play.pod({1, 1})->ignored, per_index ? 1 : 0);
    play.restart();
  }
}

TEST(RestartGang, AFailJobRuleIsFoundAmongTheFailuresOfABatch) {
  JobSpec spec = spec_of(3);
  spec.pod_failure_policy.emplace().rules.push_back({"FailJob", OnExitCodes{{}, "In", {42}}, {}});
  Play play = running(spec, kWhole);
  play.sync({both({Play::ended({0, 0}, 9), Play::ended({1, 0}, 42)})});
  EXPECT_EQ(play.conditions(), "FailureTarget=True/PodFailurePolicy");
  EXPECT_EQ(play.state().failed, 1u) << "the others count nowhere";
}

TEST(RestartGang, AFailIndexRuleFailsItsIndexAndTheOthersStartAgain) {
  JobSpec spec = spec_of(3, 5);
  spec.pod_failure_policy.emplace().rules.push_back({"FailIndex", OnExitCodes{{}, "In", {42}}, {}});
  Play play = running(spec, kWhole);
  play.end({1, 0}, 42);
  end_all_terminating(play);
  play.tick(1000);
  EXPECT_EQ(play.state().failed_indexes.text(), "1");
  EXPECT_EQ(active(play), (Keys{{0, 1}, {2, 1}}));
}

TEST(RestartGang, BackoffLimitFailsJob) {
  Play play = running(spec_of(3, {}, 0), kWhole);
  play.end({1, 0}, 9);
  EXPECT_EQ(play.conditions(), "FailureTarget=True/BackoffLimitExceeded");
  EXPECT_EQ(play.state().failed, 1u);
  end_all_terminating(play);
  EXPECT_TRUE(play.job().finished());
}

TEST(RestartGang, DeletedPodRestartsAllMembers) {
  for (const char* policy : {"TerminatingOrFailed", "Failed"}) {
    JobSpec spec = spec_of(3, 3);
    spec.pod_replacement_policy = policy;
    Play play = running(spec, kWhole);
    play.remove({1, 0}, PodsDeletion::Why::preemption);
    play.end({1, 0}, 143, EndCause::killed);
    EXPECT_EQ(active(play), Keys{}) << policy;
    end_all_terminating(play);
    play.tick(1000);
    EXPECT_EQ(active(play), (Keys{{0, 1}, {1, 1}, {2, 1}})) << policy;
    EXPECT_EQ(play.state().failed, 1u) << policy;
    EXPECT_EQ(play.pod({1, 1})->failures, 1) << policy;
    play.restart();
  }
}

TEST(RestartGang, PodsThatAreDeletedTogetherAreOneFailure) {
  Play play = running(spec_of(3), kWhole);
  play.sync({PodsDeletion{1, {{1, 0}, {2, 0}}, PodsDeletion::Why::eviction, std::nullopt}});
  EXPECT_EQ(play.state().failed, 1u);
  EXPECT_EQ(active(play), Keys{});
}

TEST(RestartGang, SuspendScaleDeadlineAndDeletionWorkDuringRestart) {
  {
    Play play = running(spec_of(3), kWhole);
    play.end({1, 0}, 9);
    play.update([](JobSpec& s) { s.suspend = true; });
    end_all_terminating(play);
    play.tick(1000);
    EXPECT_EQ(active(play), Keys{});
    play.update([](JobSpec& s) { s.suspend = false; });
    EXPECT_EQ(active(play), (Keys{{0, 1}, {1, 1}, {2, 1}}));
    EXPECT_EQ(play.state().failed, 1u);
    play.restart();
  }
  {
    Play play = running(spec_of(3), kWhole);
    play.end({1, 0}, 9);
    play.update([](JobSpec& s) { s.completions = s.parallelism = 2; });
    end_all_terminating(play);
    play.tick(1000);
    EXPECT_EQ(active(play), (Keys{{0, 1}, {1, 1}}));
    play.restart();
  }
  {
    JobSpec spec = spec_of(3);
    spec.active_deadline_s = 10;
    Play play = running(spec, kWhole);
    play.end({1, 0}, 9);
    play.tick(10'000);
    EXPECT_EQ(play.conditions(), "FailureTarget=True/DeadlineExceeded");
    EXPECT_EQ(play.state().failed, 1u);
    end_all_terminating(play);
    EXPECT_TRUE(play.job().finished());
  }
  {
    Play play = running(spec_of(3), kWhole);
    play.end({1, 0}, 9);
    play.sync({JobDeletion{1, true, false}});
    end_all_terminating(play);
    EXPECT_TRUE(play.state().forgotten);
  }
}

TEST(RestartGang, ResumedGangStartsOnceSuspendedPodsHaveEnded) {
  Play play = running(spec_of(2), kWhole);
  play.update([](JobSpec& s) { s.suspend = true; });
  play.end({0, 0}, 143, EndCause::killed);
  play.update([](JobSpec& s) { s.suspend = false; });
  EXPECT_EQ(active(play), Keys{}) << "1#0 still lives";
  play.end({1, 0}, 143, EndCause::killed);
  EXPECT_EQ(active(play), (Keys{{0, 1}, {1, 1}}));
}

TEST(RestartGang, RestartCompletesThoughAnnotationIsRemoved) {
  Play play = running(spec_of(3), kWhole);
  play.ask_nodes();
  play.end({1, 0}, 9);
  auto object = std::make_shared<JobObject>(play.job().object());
  object->meta.annotations.clear();
  object->json = "without";
  play.sync({OwnerUpdate{1, play.job().object_ptr(), object}});
  play.answer({});
  EXPECT_EQ(active(play), Keys{});
  end_all_terminating(play);
  play.tick(1000);
  EXPECT_EQ(active(play), (Keys{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_FALSE(play.state().broken);
}

TEST(RestartGang, AGangOfAnySizeIsCreatedInOneSync) {
  Play play(Play::indexed(600, 600), annotated(kWhole));
  Job job(play.job());
  decide(job, {TimePassed{}}, play.now(), {});
  EXPECT_EQ(job.active(), 600u);
}

TEST(RestartGang, RestartPolicyPodReplacesOnlyFailedMember) {
  Play play = running(spec_of(3), {{"muster.dev/gang", "true"}, {"muster.dev/restart", "pod"}});
  play.end({1, 0}, 9);
  play.tick(1000);
  EXPECT_EQ(active(play), (Keys{{0, 0}, {1, 1}, {2, 0}}));
  EXPECT_FALSE(play.state().broken);
}

}  // namespace

}  // namespace muster::core
