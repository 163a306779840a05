// The judge, promise by promise: an honest cluster is HELD; with a planted fault it is BROKEN for
// the promise that the fault breaks, and for no other reason.
#include "drill/proof/judge.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace muster::cli::drill {
namespace {

constexpr Millis kFaultAt = 1'000'400, kFaultOver = 1'000'500;

std::string uid_of(PodKey pod) {
  return "uid-" + to_string(pod);
}

// The evidence of a canary that ran as predicted on two nodes, one index after the other, while
// the coordinator was killed once.
Evidence honest() {
  Evidence e;
  e.canary.indexes = 12;
  e.canary.seed = 3;
  const Forecast expected = forecast(e.canary);
  Millis now = 1'000'000;
  for (const auto& [pod, attempt] : expected.attempts) {
    const std::string node = pod.index % 2 == 0 ? "n0" : "n1";
    now += attempt.delay_ms + 20;
    WitnessLine line{false, pod, uid_of(pod), node, "boot", now, now, 100, 7, 0};
    e.witness.lines.push_back(line);
    line.end = true;
    line.boot_ms = line.wall_ms = now += work_of(e.canary, pod).span_ms;
    line.code = attempt.code;
    e.witness.lines.push_back(line);
    e.attempts.push_back(
        {pod, "pod", uid_of(pod), node, "exited", attempt.counted, "", attempt.code});
    e.logs.push_back({pod, begin_text(pod, uid_of(pod)) + end_text(pod, attempt.code)});
  }
  e.shown = {expected.succeeded, expected.failed, expected.failed_pods, expected.condition};
  e.reads = 100;
  e.accepted = 10;
  e.faults.push_back({Fault::coordinator_kill, "", kFaultAt, kFaultOver, true, "", 2, 300});
  return e;
}

std::string broken(const Judgement& judgement) {
  std::string text;
  for (const Finding& finding : judgement.findings)
    text += (text.empty() ? "" : ",") + std::string(name(finding.promise));
  return text;
}

PodKey key(uint32_t index, uint32_t attempt = 0) {
  return {index, attempt};
}

CountedAttempt& row(Evidence& e, PodKey pod) {
  return *std::find_if(e.attempts.begin(), e.attempts.end(),
                       [pod](const CountedAttempt& one) { return one.pod == pod; });
}

WitnessLine& line(Evidence& e, PodKey pod, bool end) {
  return *std::find_if(e.witness.lines.begin(), e.witness.lines.end(),
                       [&](const WitnessLine& one) { return one.pod == pod && one.end == end; });
}

void forget(Evidence& e, PodKey pod, bool end) {
  std::erase_if(e.witness.lines,
                [&](const WitnessLine& one) { return one.pod == pod && one.end == end; });
}

// The first attempt of an index that needs only one.
PodKey plain(const Evidence& e) {
  for (uint32_t i = 0; i < e.canary.indexes; ++i)
    if (failing_attempts(e.canary, i) == 0) return key(i);
  return {};
}

// The first attempt of an index whose first attempt fails.
PodKey failing(const Evidence& e) {
  for (uint32_t i = 0; i < e.canary.indexes; ++i)
    if (failing_attempts(e.canary, i) > 0) return key(i);
  return {};
}

// Lets a fault end this pod on its node: the witness sees no end, and there is one attempt more.
void disrupt(Evidence& e, PodKey pod, const std::string& why) {
  forget(e, pod, true);
  CountedAttempt& first = row(e, pod);
  first.cause = "keeper-lost";
  first.counted = "ignored";
  first.disruption = why;
  first.code = 137;
  const Forecast expected = forecast(e.canary, {{pod, Disturbance::disrupted}});
  for (const auto& [next, attempt] : expected.attempts) {
    if (next.index != pod.index || next.attempt == 0) continue;
    WitnessLine begin = line(e, pod, false);
    begin.pod = next;
    begin.uid = uid_of(next);
    begin.boot_ms = e.witness.lines.back().boot_ms + 10'000;
    e.witness.lines.push_back(begin);
    begin.end = true;
    begin.boot_ms += 100;
    begin.code = attempt.code;
    e.witness.lines.push_back(begin);
    std::erase_if(e.attempts, [&](const CountedAttempt& one) { return one.pod == next; });
    e.attempts.push_back(
        {next, "pod", uid_of(next), begin.node, "exited", attempt.counted, "", attempt.code});
  }
  std::erase_if(e.logs, [&](const Log& log) { return log.pod.index == pod.index; });
  e.shown = {expected.succeeded, expected.failed, expected.failed_pods, expected.condition};
}

void lose_node(Evidence& e, Fault fault, PodKey pod) {
  const Millis at = line(e, pod, false).boot_ms + 10;
  e.faults.push_back({fault, line(e, pod, false).node, at, at + 100, true, "", 2, 5});
}

TEST(Judge, HoldsWhenEverythingAgrees) {
  const Judgement j = judge(honest());
  EXPECT_EQ(j.verdict, Verdict::held) << broken(j);
  EXPECT_GT(j.witnessed, 12u);
  EXPECT_EQ(j.witnessed, j.counted);
  EXPECT_EQ(j.logs, j.counted);
}

struct Planted {
  const char* what;
  std::function<void(Evidence&)> plant;
  const char* broken;
};

TEST(Judge, FindsEachPlantedFault) {
  const Planted kPlanted[] = {
      {"an end is not counted",
       [](Evidence& e) {
         std::erase_if(e.attempts,
                       [p = plain(e)](const CountedAttempt& one) { return one.pod == p; });
         e.shown.succeeded.erase(plain(e).index);
         e.shown.condition = "";
       },
       "lost,result"},
      {"a success is counted as a failure",
       [](Evidence& e) {
         row(e, plain(e)).code = 1;
         row(e, plain(e)).counted = "failed";
       },
       "lost,result"},
      {"an end is counted twice",
       [](Evidence& e) {
         e.attempts.push_back(row(e, failing(e)));
         ++e.shown.failed_pods;
       },
       "twice,result"},
      {"an attempt is launched twice",
       [](Evidence& e) {
         WitnessLine again = line(e, plain(e), false);
         again.pid = 101;
         e.witness.lines.push_back(again);
       },
       "twice"},
      {"an end is counted that never was", [](Evidence& e) { forget(e, plain(e), true); },
       "invented"},
      {"a pod is killed behind muster's back",
       [](Evidence& e) {
         forget(e, failing(e), true);
         row(e, failing(e)).code = 137;
         std::erase_if(e.logs, [&](const Log& log) { return log.pod == failing(e); });
       },
       "outlived"},
      {"an index runs again after its success",
       [](Evidence& e) {
         WitnessLine again = line(e, plain(e), false);
         again.pod.attempt = 1;
         again.uid = uid_of(again.pod);
         again.boot_ms = line(e, plain(e), true).boot_ms + 1'000;
         e.witness.lines.push_back(again);
         again.end = true;
         again.boot_ms += 10;
         e.witness.lines.push_back(again);
       },
       "lost,resurrected"},
      {"two copies of an index live",
       [](Evidence& e) {
         const PodKey next = key(failing(e).index, 1);
         line(e, next, false).boot_ms = line(e, failing(e), false).boot_ms + 1;
       },
       "two live,backoff"},
      {"a pod dies with its agent",
       [](Evidence& e) {
         e.faults[0].fault = Fault::agent_kill;
         e.faults[0].node = line(e, plain(e), false).node;
         disrupt(e, plain(e), "TerminationByKubelet");
       },
       "outlived"},
      {"a status goes back",
       [](Evidence& e) { e.went_back.push_back("succeeded went from 3 to 2"); }, "went back"},
      {"an accepted job is forgotten", [](Evidence& e) { e.forgotten.push_back("job/x"); },
       "forgotten"},
      {"an index fails that should have been retried",
       [](Evidence& e) {
         e.shown.succeeded.erase(plain(e).index);
         e.shown.failed.insert(plain(e).index);
       },
       "result"},
      {"a retry comes early",
       [](Evidence& e) {
         const PodKey next = key(failing(e).index, 1);
         line(e, next, false).boot_ms = line(e, failing(e), true).boot_ms + 100;
       },
       "backoff"},
      {"a log is cut", [](Evidence& e) { e.logs[0].text.pop_back(); }, "logs"},
      {"a log is gone",
       [](Evidence& e) {
         e.logs.pop_back();
         e.unread_logs.push_back("not found");
       },
       "logs"},
      {"the recount finds something", [](Evidence& e) { e.unsound.push_back("j1"); }, "recount"},
  };
  for (const Planted& planted : kPlanted) {
    Evidence e = honest();
    planted.plant(e);
    const Judgement j = judge(e);
    EXPECT_EQ(j.verdict, Verdict::broken) << planted.what;
    EXPECT_EQ(broken(j), planted.broken) << planted.what;
  }
}

TEST(Judge, FindsAnswersOfACoordinatorThatNoLongerLeads) {
  Evidence e = honest();
  e.faults[0].fault = Fault::leader_freeze;
  EXPECT_EQ(judge(e).verdict, Verdict::held);
  e.faults[0].answered_late = {"pid 7 answered when it went on: HTTP/1.1 200 OK"};
  const Judgement judgement = judge(e);
  EXPECT_EQ(judgement.verdict, Verdict::broken);
  EXPECT_EQ(broken(judgement), "two leaders");
  EXPECT_EQ(judgement.findings[0].text,
            "1 answer by a coordinator after another one had taken over");
}

TEST(Judge, ExcusesPodsOfLostNode) {
  for (const Fault fault :
       {Fault::keeper_kill, Fault::node_loss, Fault::agent_freeze, Fault::partition}) {
    Evidence e = honest();
    lose_node(e, fault, plain(e));
    disrupt(e, plain(e), "DeletionByTaintManager");
    const Judgement j = judge(e);
    EXPECT_EQ(j.verdict, Verdict::held) << name(fault) << ": " << broken(j);
    EXPECT_EQ(j.disturbed, 1u);
  }
}

TEST(Judge, AcceptsReturnedAttempts) {
  Evidence e = honest();
  const PodKey pod = plain(e), next = key(pod.index, 1);
  for (const bool end : {false, true}) {
    WitnessLine& moved = line(e, pod, end);
    moved.pod = next;
    moved.uid = uid_of(next);
  }
  row(e, pod).uid = uid_of(next);
  row(e, pod).pod = next;
  line(e, next, true).code = work_of(e.canary, next).code;
  std::erase_if(e.logs, [&](const Log& log) { return log.pod == pod; });
  EXPECT_EQ(judge(e).verdict, Verdict::held) << broken(judge(e));
}

TEST(Judge, ExcusesNoDisruptionWithoutMatchingFault) {
  Evidence other = honest();
  lose_node(other, Fault::node_loss, plain(other));
  other.faults.back().node = "n7";
  disrupt(other, plain(other), "DeletionByTaintManager");
  EXPECT_EQ(broken(judge(other)), "outlived") << "another node was lost";

  Evidence earlier = honest();
  const PodKey pod = plain(earlier);
  lose_node(earlier, Fault::node_loss, pod);
  earlier.faults.back().at_ms = line(earlier, pod, true).boot_ms + kDoubtMs + 10;
  earlier.faults.back().until_ms = earlier.faults.back().at_ms + 100;
  const WitnessLine end = line(earlier, pod, true);
  disrupt(earlier, pod, "DeletionByTaintManager");
  earlier.witness.lines.push_back(end);
  EXPECT_NE(broken(judge(earlier)).find("lost"), std::string::npos) << "it had ended long before";
}

TEST(Judge, IsInconclusiveWithoutProof) {
  const std::pair<const char*, std::function<void(Evidence&)>> kDoubts[] = {
      {"no fault", [](Evidence& e) { e.faults.clear(); }},
      {"unconfirmed", [](Evidence& e) { e.faults[0].confirmed = false; }},
      {"nothing in flight", [](Evidence& e) { e.faults[0].in_flight = 0; }},
      {"never read", [](Evidence& e) { e.reads = 0; }},
      {"unreadable witness", [](Evidence& e) { e.witness.unreadable = 1; }},
      {"any doubt", [](Evidence& e) { e.doubts.push_back("the coordinator ended by itself"); }},
  };
  for (const auto& [what, plant] : kDoubts) {
    Evidence e = honest();
    plant(e);
    const Judgement j = judge(e);
    EXPECT_EQ(j.verdict, Verdict::inconclusive) << what << " " << broken(j);
    EXPECT_EQ(j.doubts.size(), 1u) << what;
  }
  Evidence both = honest();
  both.faults[0].confirmed = false;
  both.went_back.push_back("succeeded went from 3 to 2");
  EXPECT_EQ(judge(both).verdict, Verdict::broken) << "what is broken is, whatever caused it";
}

TEST(Judge, VerdictIsInconclusiveWhenDaemonStaysAway) {
  Evidence e = honest();
  lose_node(e, Fault::agent_kill, plain(e));
  disrupt(e, plain(e), "DeletionByTaintManager");
  EXPECT_EQ(judge(e).verdict, Verdict::broken) << "a kill of an agent ends no pods";
  e.faults.back().absent = "the agent of n0 has not come back";
  const Judgement j = judge(e);
  EXPECT_EQ(j.verdict, Verdict::inconclusive) << broken(j);
  EXPECT_EQ(j.doubts, std::vector<std::string>{e.faults.back().absent});
}

TEST(Judge, RestoreMayLoseOnlyAttemptsAfterBackup) {
  Evidence e = honest();
  const PodKey pod = e.attempts.back().pod;
  // One attempt ended between backup and restore, and the cluster does not know of it.
  e.gap = Gap{line(e, pod, true).boot_ms - 1, line(e, pod, true).boot_ms + 1};
  e.faults[0].fault = Fault::restore;
  std::erase_if(e.attempts, [&](const CountedAttempt& one) { return one.pod == pod; });
  Judgement j = judge(e);
  EXPECT_EQ(j.verdict, Verdict::held) << broken(j);
  EXPECT_GE(j.excused, 1u);
  // An attempt that ended before the backup must be there.
  const auto gone = std::erase_if(e.attempts, [&](const CountedAttempt& one) {
    return line(e, one.pod, true).boot_ms < e.gap->backup_ms - kDoubtMs;
  });
  ASSERT_GT(gone, 0u);
  EXPECT_EQ(broken(judge(e)), "lost");
}

}  // namespace
}  // namespace muster::cli::drill
