// Whose fault a failure is: the command's, which counts, or the site's, which goes elsewhere or is
// ignored up to a maximum.
#include "tests/unit/core/job/play.hpp"

namespace muster::core {
namespace {

const FailureRule kIgnoreDisruptions = [] {
  FailureRule rule;
  rule.action = "Ignore";
  rule.on_pod_conditions = {{"DisruptionTarget", "True"}};
  return rule;
}();

JobSpec typed(int32_t completions, int32_t parallelism) {
  JobSpec spec = Play::indexed(completions, parallelism);
  spec.backoff_limit_per_index = 0;
  spec.pod_failure_policy.emplace().rules = {kIgnoreDisruptions};
  return spec;
}

// A report that this node could not start the pod for a reason of its own.
PodsReported not_here(PodKey pod) {
  PodsReported::Ended end;
  end.pod = pod;
  end.cause = EndCause::start_failed;
  end.exit_code = kExitNotHere;
  end.message = "cwd /data: No such file or directory";
  return {1, Play::kNode, {}, {end}};
}

std::map<NodeId, FailedStarts> avoided(const Play& play) {
  for (const Effect& effect : play.effects())
    if (const auto* freed = std::get_if<FreeSlots>(&effect)) return freed->avoid;
  return {};
}

TEST(NotHere, P15PodThatNodeCannotStartMovesUncounted) {
  Play play(typed(1, 1));
  play.sync();
  Hearing hearing;
  const Decision decision =
      decide(play.job(), {not_here({0, 0})}, play.now(), play.knobs(), hearing);
  const auto freed =
      std::find_if(decision.effects.begin(), decision.effects.end(),
                   [](const auto& e) { return std::holds_alternative<FreeSlots>(e); });
  ASSERT_NE(freed, decision.effects.end());
  EXPECT_EQ(
      std::get<FreeSlots>(*freed).avoid,
      (std::map<NodeId, FailedStarts>{{Play::kNode, {1, "cwd /data: No such file or directory"}}}));
  EXPECT_EQ(play.state().failed, 0u);
  EXPECT_TRUE(play.state().failed_indexes.empty());
  EXPECT_TRUE(play.pod({0, 1})) << "its replacement, at once";
}

TEST(NotHere, P15FailureCountsOnceEveryNodeHasFailed) {
  Play play(typed(2, 1));
  play.sync();
  play.sync({not_here({0, 0})});
  play.sync({NowhereElse{}});
  play.sync({not_here({0, 1})});
  EXPECT_EQ(play.state().failed, 0u) << "the only node that fits may be mended within a minute";
  play.advance(play.knobs().start_patience_ms - 1);
  play.sync({NowhereElse{}});
  play.sync({not_here({0, 2})});
  EXPECT_EQ(play.state().failed, 0u);
  play.advance(1);
  play.sync({not_here({0, 3})});
  EXPECT_TRUE(avoided(play).empty());
  EXPECT_TRUE(play.state().failed_indexes.contains(0));
  EXPECT_EQ(play.closed(), "0#3 failed") << "what never began is no attempt";
  const Pod* counted = play.pod({0, 3});
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->end.exit_code, 126) << "125 is for reports only";
  // A start shows that nodes can be trusted again.
  play.start({1, 0});
  play.end({1, 0}, 0, EndCause::returned);
  play.sync({not_here({1, 1})});
  EXPECT_FALSE(play.state().failed_indexes.contains(1));
}

// What a node says that has the program, and may not execute it.
PodsReported unfit(PodKey pod, NodeId node) {
  PodsReported report = not_here(pod);
  report.node = node;
  report.node_name = node == 1 ? "a" : "b";
  report.ends[0].exit_code = 126;
  report.ends[0].message = "exec ./step: Permission denied";
  return report;
}

// What it says if it has no such program.
PodsReported absent(PodKey pod, NodeId node) {
  PodsReported report = unfit(pod, node);
  report.ends[0].exit_code = 127;
  report.ends[0].message = "exec ./step: No such file or directory";
  return report;
}

SlotsGranted slots_on(NodeId node, uint32_t count) {
  return {{{node, count}}, {{node, 7}}};
}

void fail_job_by_start(JobMeta& meta) {
  meta.annotations["muster.dev/start-failure"] = "FailJob";
}

const std::string& failure_text(const Play& play) {
  return play.state().conditions.back().message;
}

TEST(OwnFault, P15CommandThatCannotBeExecutedFailsAtOnce) {
  Play play(typed(4, 1), fail_job_by_start);
  play.place(0);
  play.place(0, {slots_on(1, 1)});
  play.place(0, {unfit({0, 0}, 1)});
  EXPECT_EQ(play.conditions(), "FailureTarget=True/StartFailure Failed=True/StartFailure");
  EXPECT_EQ(failure_text(play),
            "The command cannot be started: exec ./step: Permission denied (node a)");
}

TEST(OwnFault, P15OtherNodesThatTryItAreHeardFirst) {
  Play play(typed(4, 2), fail_job_by_start);
  play.place(0);
  play.place(0, {slots_on(1, 1), slots_on(2, 1)});
  play.place(0, {unfit({0, 0}, 1)});
  EXPECT_EQ(play.conditions(), "") << "b may start it";
  play.place(0, {PodsReported{1, 2, {{{1, 0}, 100, 0, 0}}, {}}});
  play.place(0, {slots_on(1, 1), unfit({0, 1}, 1)});
  play.place(0, {unfit({0, 1}, 1)});
  EXPECT_EQ(play.conditions(), "") << "b has started it: it is a's fault";
  EXPECT_TRUE(play.state().failed_indexes.empty());
}

TEST(OwnFault, P15WhatMostNodesSayIsTheReason) {
  Play play(typed(4, 2), fail_job_by_start);
  play.place(0);
  play.place(0, {slots_on(1, 1), slots_on(2, 1)});
  play.place(0, {absent({0, 0}, 1)});
  play.place(0, {slots_on(3, 1)});
  PodsReported third = unfit({0, 1}, 3);
  third.node_name.clear();
  play.place(0, {third, unfit({1, 0}, 2)});
  EXPECT_EQ(failure_text(play),
            "The command cannot be started: exec ./step: Permission denied (nodes b and n3)");
}

TEST(OwnFault, P15TwoNodesThatAgreeFailTheJobIfNoOtherTriesSoon) {
  Play play(typed(1, 1), fail_job_by_start);
  for (const NodeId node : {1, 2}) {
    play.place(0);
    play.place(0, {slots_on(node, 1)});
    play.place(0, {absent({0, node - 1}, node)});
  }
  play.advance(1'999);
  EXPECT_EQ(play.conditions(), "") << "another node may have room";
  play.advance(1);
  EXPECT_EQ(play.conditions(), "FailureTarget=True/StartFailure Failed=True/StartFailure");
  EXPECT_EQ(failure_text(play),
            "The command cannot be started: exec ./step: No such file or directory (nodes a and b; "
            "no other node had room to try within 2s)");
  play.restart();
}

TEST(OwnFault, P15OneNodeFailsTheJobAfterAMinute) {
  for (const bool annotated : {true, false}) {
    Play play(typed(1, 1), annotated ? fail_job_by_start : std::function<void(JobMeta&)>());
    play.place(0);
    play.place(0, {slots_on(1, 1)});
    play.place(0, {absent({0, 0}, 1)});
    play.advance(59'999);
    EXPECT_EQ(play.conditions(), "");
    play.advance(1);
    EXPECT_EQ(play.conditions(),
              annotated ? "FailureTarget=True/StartFailure Failed=True/StartFailure" : "")
        << "a manifest is as it is written";
  }
}

// What each of these nodes gets, one pod after the other.
Play placed(JobSpec spec, const std::vector<std::pair<NodeId, uint32_t>>& nodes) {
  Play play(std::move(spec), fail_job_by_start);
  play.place(0);
  for (const auto& [node, pods] : nodes) play.place(0, {slots_on(node, pods)});
  return play;
}

// A pod that its node has started, in a report of its own.
PodsReported started(PodKey pod, NodeId node) {
  return {1, node, {{pod, 100, 0, 0}}, {}};
}

TEST(OwnFault, P15OtherPodsOnTheSameNodeAreNotHeardFirst) {
  Play play = placed(typed(4, 2), {{1, 2}});
  play.place(0, {unfit({0, 0}, 1)});
  EXPECT_EQ(play.conditions(), "FailureTarget=True/StartFailure") << "the other is yet to end";
}

TEST(OwnFault, P15NodesThatHaveFailedAreNotHeardFirst) {
  Play play = placed(typed(4, 3), {{1, 1}, {2, 2}});
  play.place(0, {absent({1, 0}, 2), unfit({0, 0}, 1)});
  EXPECT_EQ(play.conditions(), "FailureTarget=True/StartFailure") << "one pod is yet to end";
}

TEST(OwnFault, P15NodesThatAreLostAreNotHeardFirst) {
  Play play = placed(typed(4, 2), {{1, 1}, {2, 1}});
  play.place(0, {NodeLost{2}, unfit({0, 0}, 1)});
  EXPECT_EQ(play.conditions(), "FailureTarget=True/StartFailure Failed=True/StartFailure");
  Play later = placed(typed(4, 3), {{1, 1}, {2, 1}, {3, 1}});
  later.place(0, {unfit({0, 0}, 1), NodeLost{3}, unfit({1, 0}, 2)});
  EXPECT_EQ(later.conditions(), "FailureTarget=True/StartFailure Failed=True/StartFailure")
      << "lost since the first report";
}

TEST(OwnFault, P15AStartInTheSameSyncShowsThatItCanBeStarted) {
  Play starts = placed(typed(4, 2), {{1, 2}});
  starts.place(0, {started({1, 0}, 1), unfit({0, 0}, 1)});
  EXPECT_EQ(starts.conditions(), "");
  Play ends = placed(typed(4, 2), {{1, 1}, {2, 1}});
  ends.place(0, {PodsReported{1, 2, {}, {Play::ended({1, 0}, 0)}}, unfit({0, 0}, 1)});
  EXPECT_EQ(ends.conditions(), "");
}

TEST(OwnFault, P15OnlyAnExecThatFailsShowsThatACommandIsUnfit) {
  Play play = placed(typed(4, 1), {{1, 1}});
  PodsReported report = unfit({0, 0}, 1);
  report.ends[0].message = "securityContext: Operation not permitted";
  play.place(0, {report});
  EXPECT_EQ(play.conditions(), "") << "another node may allow it";
  EXPECT_TRUE(play.state().failed_indexes.empty());
}

TEST(OwnFault, P15TheWaitForOtherNodesBeginsWithTheLastFailure) {
  Play play = placed(typed(1, 1), {{1, 1}});
  play.place(0, {absent({0, 0}, 1)});
  play.advance(1'500);
  play.place(0, {slots_on(2, 1)});
  play.place(0, {absent({0, 1}, 2)});
  const auto wake = std::ranges::find_if(
      play.effects(), [](const Effect& e) { return std::holds_alternative<WakeAt>(e); });
  ASSERT_NE(wake, play.effects().end());
  EXPECT_EQ(std::get<WakeAt>(*wake).at_ms, play.now() + 2'000);
  play.advance(1'999);
  EXPECT_EQ(play.conditions(), "");
  play.advance(1);
  EXPECT_EQ(play.conditions(), "FailureTarget=True/StartFailure Failed=True/StartFailure");
}

TEST(OwnFault, P15APodThatIsAboutToStartIsWaitedFor) {
  Play play = placed(typed(1, 1), {{1, 1}});
  play.place(0, {absent({0, 0}, 1)});
  play.place(0, {slots_on(2, 1)});
  play.place(0, {absent({0, 1}, 2)});
  play.place(0, {slots_on(3, 1)});
  play.advance(60'000);
  EXPECT_EQ(play.conditions(), "") << "node 3 may start it";
  play.place(0, {started({0, 2}, 3)});
  play.place(0, {PodsReported{1, 3, {}, {Play::ended({0, 2}, 0)}}});
  EXPECT_EQ(play.conditions(),
            "SuccessCriteriaMet=True/CompletionsReached "
            "Complete=True/CompletionsReached");
}

TEST(OwnFault, P15TheReasonOfAFailureIsNotThatOthersHadNoRoom) {
  Play play = placed(typed(1, 1), {{1, 1}});
  play.place(0, {absent({0, 0}, 1)});
  play.place(0, {slots_on(2, 1)});
  play.advance(60'000);
  play.place(0, {unfit({0, 1}, 2)});
  EXPECT_EQ(failure_text(play),
            "The command cannot be started: exec ./step: Permission denied (node b)");
}

TEST(OwnFault, P15TroubleOfANodeIsForgottenOnceAPodStartsThere) {
  const auto tried = [] {
    Play play = placed(typed(2, 1), {{1, 1}});
    play.place(0, {absent({0, 0}, 1)});
    EXPECT_TRUE(play.state().start_trouble.contains(1));
    play.place(0, {slots_on(1, 1)});
    return play;
  };
  Play starts = tried();
  starts.place(0, {started({0, 1}, 1)});
  EXPECT_TRUE(starts.state().start_trouble.empty());
  Play ends = tried();
  ends.place(0, {PodsReported{1, 1, {}, {Play::ended({0, 1}, 0)}}});
  EXPECT_TRUE(ends.state().start_trouble.empty()) << "its start and its end in one report";
  Play over = placed(typed(1, 1), {{1, 1}});
  over.place(0, {absent({0, 0}, 1)});
  over.advance(60'000);
  EXPECT_TRUE(over.job().finished());
  EXPECT_TRUE(over.state().start_trouble.empty());
}

TEST(OwnFault, P15AJobThatIsHeldIsNotGivenUp) {
  const auto tried = [] {
    Play play = placed(typed(1, 1), {{1, 1}});
    play.place(0, {absent({0, 0}, 1)});
    return play;
  };
  Play held = tried();
  held.place(0, {HoldChange{1, true, "op", true, ""}});
  held.advance(100'000);
  EXPECT_EQ(held.conditions(), "");
  held.place(0, {HoldChange{2, false, "op", true, ""}});
  EXPECT_EQ(held.conditions(), "FailureTarget=True/StartFailure Failed=True/StartFailure");
  Play suspended = tried();
  suspended.update([](JobSpec& spec) { spec.suspend = true; });
  suspended.advance(100'000);
  EXPECT_EQ(suspended.conditions(), "Suspended=True/JobSuspended");
}

TEST(OwnFault, P15ProgramsThatInputsNameAreNotGivenUp) {
  JobSpec spec = typed(1, 1);
  spec.pod.containers.resize(1);
  spec.pod.containers[0].command = {"./$(MUSTER_INPUT)"};
  Play play = placed(spec, {{1, 1}});
  play.place(0, {absent({0, 0}, 1)});
  play.advance(100'000);
  EXPECT_EQ(play.conditions(), "") << "another index has another program";
}

TEST(OwnFault, P15TheReasonIsThatOfMostNodesNotOfTheLast) {
  Play play = placed(typed(3, 3), {{1, 1}, {2, 1}, {3, 1}});
  PodsReported third = absent({2, 0}, 3);
  third.node_name = "c";
  play.place(0, {absent({0, 0}, 1), third});
  play.advance(100);
  PodsReported last = not_here({1, 0});
  last.node = 2;
  play.place(0, {last});
  play.advance(2'000);
  ASSERT_EQ(play.conditions(), "FailureTarget=True/StartFailure Failed=True/StartFailure");
  EXPECT_EQ(failure_text(play),
            "The command cannot be started: exec ./step: No such file or directory (nodes a and c; "
            "no other node had room to try within 2s)");
}

TEST(OwnFault, P15MessageNamesThreeNodesOfMany) {
  Play play = placed(typed(5, 5), {{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}});
  std::vector<Event> reports;
  for (const NodeId node : {1, 2, 3, 4, 5}) {
    PodsReported report = absent({node - 1, 0}, node);
    report.node_name = std::string(1, static_cast<char>('a' + node - 1));
    reports.push_back(report);
  }
  play.place(0, reports);
  play.advance(2'000);
  ASSERT_EQ(play.conditions(), "FailureTarget=True/StartFailure Failed=True/StartFailure");
  EXPECT_EQ(failure_text(play),
            "The command cannot be started: exec ./step: No such file or directory (nodes a, b, c "
            "and 2 more; no other node had room to try within 2s)");
}

TEST(OwnFault, P15JobThatHasStartedSomewhereWaitsForThatNode) {
  Play play(typed(3, 3), fail_job_by_start);
  play.place(0);
  play.place(0, {slots_on(1, 1), slots_on(2, 1), slots_on(3, 1)});
  play.place(0, {absent({0, 0}, 1), absent({1, 0}, 2)});
  play.place(0, {PodsReported{1, 3, {{{2, 0}, 100, 0, 0}}, {}}});
  play.place(0, {PodsReported{1, 3, {}, {Play::ended({2, 0}, 0)}}});
  play.advance(100'000);
  EXPECT_EQ(play.conditions(), "") << "node 3 can start it, and will have room again";
}

TEST(NotHere, P15DeletedPodThatCouldNotStartEndsAsNeverStarted) {
  Play play(typed(1, 1));
  play.sync();
  play.remove({0, 0});
  play.sync({not_here({0, 0})});
  EXPECT_TRUE(avoided(play).empty());
  EXPECT_EQ(play.closed(), "0#0 failed");
}

TEST(DisruptionsMax, P15DisruptionsOfAnIndexCountFromTheMaximumOn) {
  Play play(typed(2, 2),
            [](JobMeta& meta) { meta.annotations["muster.dev/disruptions-max"] = "2"; });
  play.sync();
  for (uint32_t attempt = 0; attempt < 2; ++attempt) {
    play.start({0, attempt});
    play.end({0, attempt}, 137, EndCause::node_lost);
    EXPECT_TRUE(play.state().failed_indexes.empty()) << "attempt " << attempt;
    for (int i = 0; i < 100 && !play.pod({0, attempt + 1}); ++i) play.tick(100);
  }
  play.start({0, 2});
  play.end({0, 2}, 137, EndCause::node_lost);
  EXPECT_TRUE(play.state().failed_indexes.contains(0));
  EXPECT_EQ(play.closed(), "0#0 ignored, 0#1 ignored, 0#2 failed");
  EXPECT_EQ(play.pod({0, 2})->end.message,
            "it counts as a failure, because 2 disruptions of this index have been ignored "
            "(muster.dev/disruptions-max)");
  // The other index has its own count, and other failures count at once.
  play.start({1, 0});
  play.end({1, 0}, 137, EndCause::agent_stopped);
  EXPECT_FALSE(play.state().failed_indexes.contains(1));
  for (int i = 0; i < 100 && !play.pod({1, 1}); ++i) play.tick(100);
  play.end({1, 1}, 1);
  EXPECT_TRUE(play.state().failed_indexes.contains(1));
}

TEST(DisruptionsMax, P15IgnoredDisruptionsDelayNothing) {
  for (const bool limited : {true, false}) {
    Play play(typed(1, 1), [limited](JobMeta& meta) {
      if (limited) meta.annotations["muster.dev/disruptions-max"] = "5";
    });
    play.sync();
    for (uint32_t attempt = 0; attempt < 3; ++attempt) {
      play.start({0, attempt});
      play.end({0, attempt}, 137, EndCause::node_lost);
      EXPECT_EQ(play.pod({0, attempt + 1}) != nullptr, limited) << "a manifest has delays";
      for (int i = 0; i < 100 && !play.pod({0, attempt + 1}); ++i) play.tick(100);
    }
  }
}

TEST(DisruptionsMax, P15FailuresBesideThemAreDelayedAsBefore) {
  JobSpec spec = typed(1, 1);
  spec.backoff_limit_per_index = 3;
  Play play(spec, [](JobMeta& meta) { meta.annotations["muster.dev/disruptions-max"] = "5"; });
  play.sync();
  for (uint32_t attempt = 0; attempt < 3; ++attempt)
    play.end({0, attempt}, 137, EndCause::node_lost);
  play.end({0, 3}, 1);
  EXPECT_FALSE(play.pod({0, 4}));
  play.tick(100);
  EXPECT_TRUE(play.pod({0, 4})) << "its first failure has the first delay";
}

void ignore_exit_code(JobSpec& spec, int32_t code) {
  FailureRule rule;
  rule.action = "Ignore";
  rule.on_exit_codes.emplace();
  rule.on_exit_codes->op = "In";
  rule.on_exit_codes->values = {code};
  spec.pod_failure_policy->rules.push_back(rule);
}

TEST(DisruptionsMax, P15OnlyDisruptionsThatAreIgnoredDelayNothing) {
  JobSpec spec = typed(1, 1);
  spec.backoff_limit_per_index = 3;
  ignore_exit_code(spec, 42);
  Play play(spec, [](JobMeta& meta) { meta.annotations["muster.dev/disruptions-max"] = "1"; });
  const auto expect_delay = [&play](uint32_t attempt, Millis delay_ms) {
    play.tick(delay_ms - 1);
    EXPECT_FALSE(play.pod({0, attempt})) << "attempt " << attempt;
    play.tick(1);
    EXPECT_TRUE(play.pod({0, attempt})) << "attempt " << attempt;
  };
  play.sync();
  play.end({0, 0}, 42);
  expect_delay(1, 100);
  play.end({0, 1}, 137, EndCause::node_lost);
  EXPECT_TRUE(play.pod({0, 2})) << "ignored, and a disruption";
  play.end({0, 2}, 137, EndCause::node_lost);  // beyond the maximum
  expect_delay(3, 200);
}

TEST(DisruptionsMax, P15AGangThatADisruptionBreaksIsNotDelayed) {
  for (const bool limited : {true, false}) {
    Play play(typed(2, 2), [limited](JobMeta& meta) {
      meta.annotations["muster.dev/gang"] = "true";
      meta.annotations["muster.dev/restart"] = "gang";
      if (limited) meta.annotations["muster.dev/disruptions-max"] = "5";
    });
    play.sync();
    for (uint32_t i = 0; i < 2; ++i) play.start({i, 0});
    play.end({0, 0}, 137, EndCause::node_lost);
    play.end({1, 0}, 143, EndCause::killed);
    EXPECT_EQ(play.pod({0, 1}) != nullptr, limited);
    play.tick(100);
    EXPECT_TRUE(play.pod({0, 1}));
  }
}

TEST(DisruptionsMax, P15OtherFailuresThatAreIgnoredAreNotDisruptions) {
  JobSpec spec = typed(1, 1);
  ignore_exit_code(spec, 42);
  Play play(spec, [](JobMeta& meta) { meta.annotations["muster.dev/disruptions-max"] = "1"; });
  play.sync();
  const auto next = [&play](uint32_t attempt) {
    for (int i = 0; i < 1'000 && !play.pod({0, attempt}); ++i) play.tick(100);
    play.start({0, attempt});
  };
  for (uint32_t attempt = 0; attempt < 3; ++attempt) {
    next(attempt);
    play.end({0, attempt}, 42);
  }
  next(3);
  EXPECT_EQ(play.pod({0, 3})->ignored, 3);
  EXPECT_EQ(play.pod({0, 3})->disruptions, 0);
  play.end({0, 3}, 137, EndCause::node_lost);
  EXPECT_TRUE(play.state().failed_indexes.empty()) << "its first disruption";
  next(4);
  EXPECT_EQ(play.pod({0, 4})->disruptions, 1);
  play.end({0, 4}, 42);
  EXPECT_TRUE(play.state().failed_indexes.empty()) << "not a disruption";
  next(5);
  play.end({0, 5}, 137, EndCause::keeper_lost);
  EXPECT_TRUE(play.state().failed_indexes.contains(0));
  EXPECT_EQ(play.pod({0, 5})->end.message,
            "it counts as a failure, because 1 disruption of this index has been ignored "
            "(muster.dev/disruptions-max)");
}

TEST(DisruptionsMax, P15ZeroCountsEachAndRetriesStillApply) {
  JobSpec spec = typed(1, 1);
  spec.backoff_limit_per_index = 1;
  Play play(spec, [](JobMeta& meta) { meta.annotations["muster.dev/disruptions-max"] = "0"; });
  play.sync();
  play.start({0, 0});
  play.end({0, 0}, 137, EndCause::node_lost);
  EXPECT_TRUE(play.state().failed_indexes.empty()) << "it has a retry";
  for (int i = 0; i < 1'000 && !play.pod({0, 1}); ++i) play.tick(100);
  EXPECT_EQ(play.pod({0, 1})->failures, 1);
  play.start({0, 1});
  play.end({0, 1}, 137, EndCause::node_lost);
  EXPECT_TRUE(play.state().failed_indexes.contains(0));
  EXPECT_EQ(play.pod({0, 1})->end.message,
            "it counts as a failure (muster.dev/disruptions-max: 0)");
}

TEST(DisruptionsMax, P15WithoutItAManifestIgnoresAnyNumber) {
  Play play(typed(1, 1));
  play.sync();
  for (uint32_t attempt = 0; attempt < 8; ++attempt) {
    for (int i = 0; i < 10'000 && !play.pod({0, attempt}); ++i) play.tick(100);
    play.start({0, attempt});
    play.end({0, attempt}, 137, EndCause::node_lost);
  }
  EXPECT_TRUE(play.state().failed_indexes.empty());
}

// The decision waits for ends on the node; when they have come, it is made again from the state.
TEST(LookAgain, P19AStartFailureStillEndsTheJob) {
  for (const bool recovered : {false, true}) {
    Play play(Play::indexed(2, 2),
              [](JobMeta& meta) { meta.annotations["muster.dev/start-failure"] = "FailJob"; });
    play.ask_nodes();
    play.sync();
    play.start({1, 0});
    play.end({0, 0}, 127, EndCause::start_failed);
    EXPECT_EQ(play.conditions(), "") << "another pod may have ended meanwhile";
    ASSERT_TRUE(play.asks());
    if (recovered) {
      play.ask_nodes();
      play.restart();
    }
    play.answer({});
    EXPECT_EQ(play.conditions(), "FailureTarget=True/StartFailure");
  }
}

TEST(LookAgain, P19AProgramThatItsInputNamesEndsOnlyItsIndex) {
  for (const char* program : {"tool", "./$(MUSTER_INPUT)"}) {
    JobSpec spec = Play::indexed(2, 2);
    spec.backoff_limit_per_index = 0;
    spec.pod.containers.resize(1);
    spec.pod.containers[0].command = {program, "$(MUSTER_INPUT)"};
    Play play(spec,
              [](JobMeta& meta) { meta.annotations["muster.dev/start-failure"] = "FailJob"; });
    play.sync();
    play.end({0, 0}, 127, EndCause::start_failed);
    const bool of_index = std::string_view(program) != "tool";
    EXPECT_TRUE(play.state().failed_indexes.contains(0)) << program;
    EXPECT_EQ(play.conditions(), of_index ? "" : "FailureTarget=True/StartFailure") << program;
  }
}

TEST(Yield, P22IndexesInBackoffDoNotHoldThePlacesOfOthers) {
  for (const bool yields : {false, true}) {
    JobSpec spec = Play::indexed(8, 2);
    spec.backoff_limit_per_index = 3;
    Play play(spec);
    play.knobs().backoff_yields = yields;
    play.sync();
    play.end({0, 0}, 1);
    play.end({1, 0}, 1);
    EXPECT_EQ(play.job().active(), yields ? 2u : 0u);
    if (!yields) continue;
    EXPECT_TRUE(play.pod({2, 0}) && play.pod({3, 0}));
    play.tick(2'000);
    play.end({2, 0}, 0);
    EXPECT_TRUE(play.pod({0, 1})) << "a retry that is due comes first";
  }
}

TEST(Worker, P34AWorkerThatHasFailedForGoodEndsItsMpiJob) {
  JobSpec spec = Play::indexed(3, 3);
  spec.backoff_limit_per_index = 0;
  Play play(spec, [](JobMeta& meta) { meta.annotations["muster.dev/mpi"] = "auto"; });
  play.sync();
  for (uint32_t i = 0; i < 3; ++i) play.start({i, 0});
  play.end({2, 0}, 1);
  EXPECT_EQ(play.conditions(), "FailureTarget=True/FailedIndexes");
  for (uint32_t i = 0; i < 2; ++i) play.end({i, 0}, 143, EndCause::killed);
  EXPECT_FALSE(play.pod({0, 1})) << "no second leader, on fewer hosts";
  EXPECT_TRUE(play.job().condition(ConditionType::failed));
}

}  // namespace
}  // namespace muster::core
