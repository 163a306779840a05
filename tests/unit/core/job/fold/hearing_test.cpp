// Decisions that depend on known ends wait until every node with pods of the job has answered.
#include "tests/unit/core/job/play.hpp"

#include <algorithm>

namespace muster::core {

namespace {

PodsReported reported(std::vector<PodsReported::Ended> ends) {
  return {1, Play::kNode, {}, std::move(ends)};
}

// An end that happened `ms` before the report.
PodsReported::Ended ended_ago(PodKey pod, int32_t code, Millis ms) {
  PodsReported::Ended end = Play::ended(pod, code);
  end.start->at = {ms + 1};
  end.ended_at = {ms};
  return end;
}

// Two pods are running. The caller then lets time pass beyond their deadline, as if the coordinator
// had been down.
Play overdue(JobSpec spec) {
  spec.active_deadline_s = 10;
  Play play(std::move(spec));
  play.sync();
  play.start({0, 0});
  play.start({1, 0});
  play.ask_nodes();
  return play;
}

TEST(P15Ends, ASuccessBeforeTheDeadlineCountsAsOne) {
  Play play = overdue(Play::indexed(2, 2));
  play.tick(60'000);
  EXPECT_TRUE(play.asks());
  EXPECT_EQ(play.conditions(), "");
  EXPECT_EQ(play.job().active(), 2u) << "nothing is killed before the node was heard";
  play.answer({{0, 0}});
  EXPECT_EQ(play.conditions(), "") << "it said what has ended; that has to arrive";
  play.sync({reported({ended_ago({0, 0}, 0, 55'000)})});
  EXPECT_EQ(play.conditions(), "FailureTarget=True/DeadlineExceeded");
  EXPECT_EQ(play.job().succeeded(), 1u);
  EXPECT_EQ(play.state().failed, 1u) << "the one that still ran";
  play.end({1, 0}, 0, EndCause::killed);
  EXPECT_EQ(play.job().succeeded(), 1u) << "killed by the deadline is failed (2.2)";
  play.restart();
}

TEST(P15Ends, BackoffLimitReachedBeforeDeadlineWins) {
  JobSpec spec = Play::indexed(2, 2);
  spec.backoff_limit = 1;
  Play play = overdue(spec);
  play.tick(60'000);
  play.sync({reported({ended_ago({0, 0}, 1, 58'000)})});
  EXPECT_EQ(play.conditions(), "") << "its node was not heard, others may have ended";
  EXPECT_EQ(play.job().active(), 1u) << "no replacement while a decision waits";
  play.answer({{1, 0}});
  play.sync({reported({ended_ago({1, 0}, 1, 57'000)})});
  EXPECT_EQ(play.conditions(),
            "FailureTarget=True/BackoffLimitExceeded Failed=True/BackoffLimitExceeded");
  EXPECT_EQ(play.state().failed, 2u);
}

TEST(P15Ends, FailJobRuleSurvivesRestartWhileNodesAreAsked) {
  JobSpec spec = Play::indexed(2, 2);
  spec.pod_failure_policy.emplace().rules.push_back({"FailJob", OnExitCodes{{}, "In", {9}}, {}});
  Play play(spec);
  play.sync();
  play.ask_nodes();
  play.end({0, 0}, 9);
  EXPECT_EQ(play.conditions(), "");
  EXPECT_FALSE(play.pod({0, 1}));
  play.ask_nodes();  // the coordinator crashes before the answer arrives
  play.restart();
  EXPECT_TRUE(play.asks());
  play.answer({});
  EXPECT_EQ(play.conditions(), "FailureTarget=True/PodFailurePolicy");
  EXPECT_EQ(play.state().failed, 2u);
}

TEST(P15Ends, ANodeThatIsLostIsWaitedForNoLonger) {
  Play play = overdue(Play::indexed(2, 2));
  play.tick(60'000);
  EXPECT_EQ(play.conditions(), "");
  play.sync({NodeLost{Play::kNode}});
  EXPECT_EQ(play.conditions(), "FailureTarget=True/DeadlineExceeded Failed=True/DeadlineExceeded");
  EXPECT_EQ(play.state().failed, 2u);
}

TEST(P15Ends, ReregisteredNodeIsAskedAgain) {
  Play play = overdue(Play::indexed(2, 2));
  play.tick(60'000);
  ASSERT_TRUE(play.asks());
  play.sync({NodeRegistered{Play::kNode, {{0, 0}, {1, 0}}}});
  play.sync({NodeReady{Play::kNode, {{0, 0}, {1, 0}}, 8}});
  play.sync({NodeHeard{Play::kNode, 1, {}}});
  EXPECT_EQ(play.conditions(), "") << "the answer to the first question, by the link that is gone";
  play.answer({});
  EXPECT_EQ(play.conditions(), "FailureTarget=True/DeadlineExceeded");
}

TEST(P15Ends, ADeletedPodThatHadEndedCountsByHowItEnded) {
  for (bool had_ended : {true, false}) {
    Play play(Play::indexed(1, 1));
    play.sync();
    play.start({0, 0});
    play.ask_nodes();
    play.sync();
    play.remove({0, 0});
    EXPECT_TRUE(play.pod({0, 0})->terminating()) << "that is on record at once";
    EXPECT_EQ(play.state().failed, 0u);
    EXPECT_FALSE(play.pod({0, 1})) << "no replacement before it is judged";
    play.tick(10);
    if (had_ended) {
      play.answer({{0, 0}});
      play.sync({reported({ended_ago({0, 0}, 0, 20)})});
      EXPECT_EQ(play.job().succeeded(), 1u);
      EXPECT_EQ(play.state().failed, 0u);
    } else {
      play.answer({});
      EXPECT_EQ(play.state().failed, 1u) << "it ran when its deletion was ordered";
      play.end({0, 0}, 0, EndCause::killed);
      EXPECT_EQ(play.job().succeeded(), 0u);
    }
    play.restart();
  }
}

TEST(P15Ends, SuspensionAndScalingLoseNoSuccess) {
  for (bool suspend : {true, false}) {
    Play play(Play::indexed(2, 2));
    play.sync();
    play.start({0, 0});
    play.start({1, 0});
    play.ask_nodes();
    play.update([suspend](JobSpec& s) {
      if (suspend)
        s.suspend = true;
      else
        s.parallelism = 0;
    });
    EXPECT_EQ(play.job().active(), 2u);
    EXPECT_FALSE(play.job().suspended());
    play.answer({{1, 0}});
    play.sync({reported({ended_ago({1, 0}, 0, 5)})});
    EXPECT_EQ(play.job().active(), 0u);
    EXPECT_EQ(play.job().suspended(), suspend);
    EXPECT_EQ(play.job().succeeded(), 1u);
    play.restart();
  }
}

TEST(P15Ends, NodesAreAskedBeforePodsAreKilled) {
  Play play(Play::indexed(1, 1));
  play.sync();
  play.start({0, 0});
  play.ask_nodes();
  play.remove({0, 0});
  const auto& effects = play.effects();
  auto at = [&effects]<class Kind>() {
    return std::find_if(effects.begin(), effects.end(),
                        [](const Effect& e) { return std::holds_alternative<Kind>(e); });
  };
  auto ask = at.operator()<AskNodes>(), kill = at.operator()<KillPods>();
  ASSERT_NE(ask, effects.end());
  ASSERT_NE(kill, effects.end());
  EXPECT_LT(ask - effects.begin(), kill - effects.begin());
}

}  // namespace

}  // namespace muster::core
