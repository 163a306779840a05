// Prologs and epilogs under Node, as transcripts.
#include "core/job/fold/text.hpp"
#include "core/node/node.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace muster::core::node {
namespace {

constexpr Term kHookTerm{3, 77};
constexpr Millis kHookLease = 1'000'000, kPrologMs = 60'000, kEpilogMs = 30'000;

std::string step_text(Step step) {
  return step.container == kProlog ? "prolog"
         : step.container == kEpilog
             ? "epilog"
             : std::to_string(step.container) + "." + std::to_string(step.instance);
}

// "kill prolog; start 0.0; + 100; - exited/3; forget 5"
std::string hook_text(const Orders& orders) {
  std::string out;
  auto add = [&out](const std::string& part) { out += (out.empty() ? "" : "; ") + part; };
  for (const auto& k : orders.kills) add("kill " + step_text(k.step));
  for (const auto& s : orders.starts)
    add("start " + step_text(s.step) + (s.stop ? " " + std::string(name(*s.stop)) : ""));
  for (const auto& r : orders.reports) {
    for (const auto& s : r.starts) add("+ " + std::to_string(s.pid.value_or(0)));
    for (const auto& e : r.ends)
      add("- " + std::string(name(e.cause)) + "/" + std::to_string(e.exit_code) +
          (e.message.empty() ? "" : " " + e.message));
  }
  for (uint64_t entry : orders.forget) add("forget " + std::to_string(entry));
  return out;
}

struct HooksTest : testing::Test {
  std::unique_ptr<Node> node = std::make_unique<Node>(1);
  Millis now = 1'000;
  PodPlan hooks{.prolog_ms = kPrologMs, .epilog_ms = kEpilogMs};

  static PodId pod(uint32_t index = 0) { return {1, index, 0}; }
  void begin(uint32_t index = 0) {
    ASSERT_TRUE(node->registered({kHookTerm, {}, kHookLease}, now));
    ASSERT_TRUE(node->launch(kHookTerm,
                             {{pod(index), 30'000, std::make_shared<const PodPlan>(hooks)}}, now));
  }
  void started(uint16_t container, int pid = 100) {
    node->process_started({pod(), {container, 0}, pid, now});
  }
  ProcessEnd end_of(uint16_t container, int code, uint64_t entry = 0) const {
    ProcessEnd end{.pod = pod(),
                   .step = {container, 0},
                   .start = {{100, now}},
                   .exit_code = code,
                   .ended_at = now};
    if (entry != 0) end.entry = entry;
    return end;
  }
  void ended(uint16_t container, int code, uint64_t entry = 0, const std::string& line = "") {
    ProcessEnd end = end_of(container, code, entry);
    end.error = line;
    node->process_ended(end);
  }
  std::string next() { return hook_text(node->next(now)); }
  // To its container's start.
  void run() {
    begin();
    next();
    started(kProlog);
    ended(kProlog, 0, 1);
    next();
    started(0);
    next();
  }
};

TEST_F(HooksTest, RunBeforeAndAfterThePod) {
  begin();
  EXPECT_EQ(next(), "start prolog");
  started(kProlog);
  EXPECT_EQ(next(), "") << "the pod has not started";
  EXPECT_EQ(node->started(), 0u);
  ended(kProlog, 0, 1);
  EXPECT_EQ(next(), "start 0.0");
  started(0);
  EXPECT_EQ(next(), "+ 100");
  EXPECT_EQ(node->started(), 1u);
  ended(0, 3, 2);
  EXPECT_EQ(next(), "start epilog; + 100") << "not ready";
  ASSERT_TRUE(
      node->launch(kHookTerm, {{pod(1), 30'000, std::make_shared<const PodPlan>(hooks)}}, now));
  EXPECT_EQ(next(), "") << "its slot is not free";
  started(kEpilog);
  ended(kEpilog, 0, 3);
  EXPECT_EQ(next(), "start prolog; - exited/3");
  node->report_returned(3);
  EXPECT_EQ(next(), "forget 2; forget 1; forget 3");
}

TEST_F(HooksTest, EitherMayBeMissing) {
  hooks.prolog_ms.reset();
  begin();
  EXPECT_EQ(next(), "start 0.0");
  started(0);
  ended(0, 0);
  EXPECT_EQ(next(), "start epilog; + 100");
  started(kEpilog);
  ended(kEpilog, 1);
  EXPECT_EQ(next(), "- exited/0") << "a failure changes nothing about the pod";
}

TEST_F(HooksTest, AFailedPrologIsAStartThatFailedHere) {
  begin();
  next();
  started(kProlog);
  ended(kProlog, 1, 1, "no scratch");
  EXPECT_EQ(next(), "start epilog") << "what the prolog has begun is cleaned up";
  started(kEpilog);
  ended(kEpilog, 0, 2);
  EXPECT_EQ(next(), "- start-failed/125 prolog: no scratch");
}

TEST_F(HooksTest, APrologThatDoesNotStartHasFailedToo) {
  hooks.epilog_ms.reset();
  begin();
  next();
  node->process_ended({.pod = pod(),
                       .step = {kProlog, 0},
                       .exit_code = 127,
                       .error = "/site/prolog: No such file or directory",
                       .ended_at = now});
  EXPECT_EQ(next(), "- start-failed/125 prolog: /site/prolog: No such file or directory");
}

TEST_F(HooksTest, EndAtTheirTimeLimits) {
  begin();
  next();
  started(kProlog);
  EXPECT_EQ(node->next(now).again_at, now + kPrologMs);
  now += kPrologMs - 1;
  EXPECT_EQ(next(), "");
  ++now;
  EXPECT_EQ(next(), "kill prolog");
  EXPECT_EQ(next(), "") << "once";
  ProcessEnd end = end_of(kProlog, 137);
  end.signal = 9;
  end.start = {{100, now - kPrologMs}};
  end.error = "mounting";
  node->process_ended(end);
  EXPECT_EQ(next(), "start epilog");
  started(kEpilog);
  now += kEpilogMs;
  EXPECT_EQ(next(), "kill epilog");
  ended(kEpilog, 137);
  EXPECT_EQ(next(), "- start-failed/125 prolog: it took longer than 60 s: mounting");
}

TEST_F(HooksTest, ADeletedPodsPrologIsKilled) {
  begin();
  next();
  started(kProlog);
  next();
  node->kill(kHookTerm, {{pod(), 5'000}}, now);
  EXPECT_EQ(next(), "kill prolog");
  ended(kProlog, 143);
  EXPECT_EQ(next(), "start epilog killed");
  started(kEpilog);
  ended(kEpilog, 0);
  EXPECT_EQ(next(), "- never-started/0");
}

TEST_F(HooksTest, NothingEndsAnEpilogOrChangesTheEnd) {
  run();
  ended(0, 0);
  next();
  started(kEpilog);
  node->kill(kHookTerm, {{pod(), 0}}, now);
  node->evict(pod(), now);
  node->stop(now);
  EXPECT_EQ(next(), "");
  ended(kEpilog, 0);
  EXPECT_EQ(next(), "- exited/0");
}

TEST_F(HooksTest, AnEpilogFollowsEachEnd) {
  run();
  node->kill(kHookTerm, {{pod(), 5'000}}, now);
  EXPECT_EQ(next(), "kill 0.0");
  now += 2 * kHookLease;
  ended(0, 143);
  EXPECT_EQ(next(), "start epilog killed; + 100") << "outside the lease, too";
  started(kEpilog);
  ended(kEpilog, 0);
  EXPECT_EQ(next(), "- killed/143");
}

TEST_F(HooksTest, AnEpilogThatIsNotStartedIsTriedAgain) {
  run();
  ended(0, 0);
  next();
  node->process_ended({.pod = pod(),
                       .step = {kEpilog, 0},
                       .exit_code = kExitNotHere,
                       .error = "fork",
                       .ended_at = now,
                       .unstarted = true});
  EXPECT_EQ(next(), "");
  now += Node::kHoldMs;
  EXPECT_EQ(next(), "start epilog");
}

TEST_F(HooksTest, AContainerThatCannotStartHereIsFollowedByTheEpilog) {
  hooks.restarts = true;
  begin();
  next();
  started(kProlog);
  ended(kProlog, 0);
  EXPECT_EQ(next(), "start 0.0");
  node->process_ended(
      {.pod = pod(), .exit_code = kExitNotHere, .error = "cwd /x: No such file", .ended_at = now});
  EXPECT_EQ(next(), "start epilog");
  started(kEpilog);
  ended(kEpilog, 0);
  EXPECT_EQ(next(), "- start-failed/125 cwd /x: No such file");
}

TEST_F(HooksTest, WithoutAnExecutorPodsEndWithoutTheirEpilogs) {
  run();
  node->executor_lost(now);
  EXPECT_EQ(next(), "- keeper-lost/137 the keeper of its process was lost");
}

TEST_F(HooksTest, NoRestartInPlaceFollowsTheEpilog) {
  hooks.restarts = true;
  run();
  ended(0, 1);
  EXPECT_EQ(next(), "start 0.1");
  node->process_started({pod(), {0, 1}, 101, now});
  ProcessEnd end = end_of(0, 1);
  end.step.instance = 1;
  node->process_ended(end);
  next();
  now += 2 * kHookLease;
  EXPECT_EQ(next(), "") << "it would be restarted, but the lease is over";
  node->kill(kHookTerm, {{pod(), 0}}, now);
  EXPECT_EQ(next(), "start epilog killed");
}

TEST_F(HooksTest, NoEpilogFollowsAPodOfWhichNothingRan) {
  run();
  ASSERT_TRUE(
      node->launch(kHookTerm, {{pod(1), 30'000, std::make_shared<const PodPlan>(hooks)}}, now));
  EXPECT_EQ(next(), "") << "it waits for a slot";
  node->kill(kHookTerm, {{pod(1), 0}}, now);
  EXPECT_EQ(next(), "- never-started/0");
}

// A new agent on the same node, which finds these.
struct HooksOfLaterAgent : HooksTest {
  Origin origin(std::optional<EndCause> stop = {}) const {
    return {.plan = std::make_shared<const PodPlan>(hooks), .grace_ms = 30'000, .stop = stop};
  }
  void restart(std::vector<Living> living, std::vector<ProcessEnd> ended) {
    node = std::make_unique<Node>(1);
    for (ProcessEnd& end : ended) end.origin = origin();
    node->executor_connected(living, ended, now);
    ASSERT_TRUE(node->registered({kHookTerm, {}, kHookLease}, now));
  }
};

TEST_F(HooksOfLaterAgent, GoOnWhereTheyWere) {
  restart({{.pod = pod(), .step = {kProlog, 0}, .start = {{100, now}}, .origin = origin()}}, {});
  EXPECT_EQ(next(), "") << "the prolog is running";
  ended(kProlog, 0, 1);
  EXPECT_EQ(next(), "start 0.0");

  restart({}, {end_of(kProlog, 0, 1)});
  EXPECT_EQ(next(), "start 0.0");

  restart({{.pod = pod(), .step = {0, 0}, .start = {{100, now}}, .origin = origin()}},
          {end_of(kProlog, 0, 1)});
  EXPECT_EQ(next(), "+ 100");
  ended(0, 0, 2);
  EXPECT_EQ(next(), "start epilog; + 100");

  restart({{.pod = pod(), .step = {kEpilog, 0}, .start = {{100, now}}, .origin = origin()}},
          {end_of(kProlog, 0, 1), end_of(0, 3, 2)});
  next();
  ended(kEpilog, 0, 3);
  EXPECT_EQ(next(), "- exited/3");

  restart({}, {end_of(kProlog, 0, 1), end_of(0, 3, 2), end_of(kEpilog, 1, 3)});
  EXPECT_EQ(next(), "- exited/3");
}

TEST_F(HooksOfLaterAgent, RememberWhyThePodWasEnded) {
  restart({{.pod = pod(),
            .step = {kEpilog, 0},
            .start = {{100, now}},
            .origin = origin(EndCause::deadline)}},
          {end_of(0, 143, 2)});
  next();
  ended(kEpilog, 0, 3);
  EXPECT_EQ(next(), "- deadline/143");
}

TEST_F(HooksOfLaterAgent, AnEpilogAloneStartsNoContainer) {
  restart({}, {end_of(kEpilog, 0, 3)});
  EXPECT_EQ(next().find("start"), std::string::npos);
}

TEST_F(HooksOfLaterAgent, APrologKilledForItsTimeLimitStillFailsHere) {
  hooks.epilog_ms.reset();
  const Millis began = now;
  now += kPrologMs + 1;
  restart({{.pod = pod(),
            .step = {kProlog, 0},
            .start = {{100, began}},
            .killing = true,
            .origin = origin()}},
          {});
  EXPECT_EQ(next(), "kill prolog");
  ProcessEnd end = end_of(kProlog, 137);
  end.start = {{100, began}};
  node->process_ended(end);
  EXPECT_EQ(next(), "- start-failed/125 prolog: it took longer than 60 s");
}

TEST_F(HooksOfLaterAgent, WhatAKeeperTookWithItIsNoFault) {
  ProcessEnd lost = end_of(kProlog, 137, 1);
  lost.lost = true;
  hooks.epilog_ms.reset();
  restart({}, {lost});
  EXPECT_EQ(next(), "- returned/0 prolog: its keeper was lost");

  hooks.epilog_ms = kEpilogMs;
  lost = end_of(kEpilog, 137, 3);
  lost.lost = true;
  restart({}, {end_of(0, 0, 2), lost});
  EXPECT_EQ(next(), "- exited/0");
}

TEST_F(HooksOfLaterAgent, RunningPodsGetNoPrologButAnEpilog) {
  restart({{.pod = pod(), .step = {0, 0}, .start = {{100, now}}, .origin = origin()}}, {});
  EXPECT_EQ(next(), "+ 100") << "started before there were hooks";
  ended(0, 0);
  EXPECT_EQ(next(), "start epilog; + 100");
}

}  // namespace
}  // namespace muster::core::node
