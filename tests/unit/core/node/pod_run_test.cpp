// Pods of several processes under Node, as transcripts: restarts in place, init containers, several
// containers, deadlines, devices, and an agent restarted midway.
#include "core/job/fold/text.hpp"
#include "core/node/node.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace muster::core::node {
namespace {

constexpr Term kTerm{3, 77};
constexpr Millis kLease = 1'000'000'000;

std::string text(Step step) {
  return std::to_string(step.container) + "." + std::to_string(step.instance);
}

// "kill 0.1 grace=5; start 1.0 [gpu=0,1]; + pid=100 restarts=1 ready; - exited/3 pid=100 restarts=1
// (exited/3 x1, never_started/0)"
std::string text(const Orders& orders) {
  std::string out;
  auto add = [&out](const std::string& part) { out += (out.empty() ? "" : "; ") + part; };
  for (const auto& k : orders.kills) {
    add("kill " + text(k.step) + " grace=" + std::to_string(k.grace_ms));
  }
  for (const auto& s : orders.starts) {
    std::string line = "start " + text(s.step);
    if (s.devices) {
      for (const auto& [resource, numbers] : *s.devices) {
        line += " " + resource + "=";
        for (size_t i = 0; i < numbers.size(); ++i) {
          line += (i == 0 ? "" : ",") + std::to_string(numbers[i]);
        }
      }
    }
    add(line);
  }
  for (const auto& r : orders.reports) {
    for (const auto& s : r.starts) {
      add("+ pid=" + (s.pid ? std::to_string(*s.pid) : "none") +
          " restarts=" + std::to_string(s.restarts) + " " + std::string(core::name(s.readiness)) +
          (s.cpus.empty() ? "" : " cpus=" + s.cpus));
    }
    for (const auto& e : r.ends) {
      std::string line = "- " + std::string(core::name(e.cause)) + "/" +
                         std::to_string(e.exit_code) +
                         " pid=" + (e.start ? std::to_string(e.start->pid) : "none") +
                         " restarts=" + std::to_string(e.restarts);
      for (size_t i = 0; i < e.containers.size(); ++i) {
        const auto& c = e.containers[i];
        line += (i == 0 ? " (" : ", ") + std::string(core::name(c.cause)) + "/" +
                std::to_string(c.exit_code);
        if (c.restarts > 0) line += " x" + std::to_string(c.restarts);
      }
      add(line + (e.containers.empty() ? "" : ")"));
    }
  }
  for (uint64_t entry : orders.forget) add("forget " + std::to_string(entry));
  return out;
}

PodPlanPtr plan(PodPlan plan) {
  return std::make_shared<const PodPlan>(std::move(plan));
}

struct PodRunTest : testing::Test {
  std::unique_ptr<Node> node = std::make_unique<Node>(4);
  Millis now = 1000;
  uint32_t job = 1;

  PodId pod(uint32_t index = 0) const { return {job, index, 0}; }
  void welcome() { ASSERT_TRUE(node->registered({kTerm, {}, kLease}, now)); }
  void launch(const PodPlanPtr& with, uint32_t index = 0) {
    ASSERT_TRUE(node->launch(kTerm, {{pod(index), 30'000, with}}, now));
  }
  void begin(PodPlan with) {
    welcome();
    launch(plan(std::move(with)));
  }
  ProcessStart start(Step step, int pid) const { return {pod(), step, pid, now}; }
  void started(Step step, int pid) { node->process_started(start(step, pid)); }
  ProcessEnd end(Step step, int code, uint64_t entry, Millis ran = 1) const {
    return {.pod = pod(),
            .step = step,
            .entry = entry,
            .start = {{100 + step.container * 10 + step.instance, now - ran}},
            .exit_code = code,
            .ended_at = now};
  }
  void ended(Step step, int code, uint64_t entry, Millis ran = 1) {
    node->process_ended(end(step, code, entry, ran));
  }
  // The agent finds a pod of this plan as an earlier one left it.
  void restart_agent(const PodPlanPtr& with, std::vector<Living> living,
                     std::vector<ProcessEnd> ends) {
    node = std::make_unique<Node>(4);
    for (Living& one : living) one.origin = {.plan = with};
    for (ProcessEnd& one : ends) one.origin = {.plan = with, .grace_ms = 30'000};
    node->executor_connected(living, ends, now);
    welcome();
  }
  // The same, with a process of container 0 that is being killed.
  void restart_while_ended(PodPlan with, std::vector<ProcessEnd> ends) {
    Living first{.pod = pod(), .step = {0, 0}, .start = {{100, now}}, .grace_ms = 30'000};
    first.killing = true;
    restart_agent(plan(std::move(with)), {first}, std::move(ends));
  }
  // Reports that contain only starts return at once.
  std::string next() {
    Orders orders = node->next(now);
    for (const auto& report : orders.reports) {
      if (report.ends.empty()) node->report_returned(report.id);
    }
    return text(orders);
  }
};

TEST_F(PodRunTest, FirstRestartAtOnceThenDelaysThatDouble) {
  begin({.restarts = true, .restart_delay_ms = 100'000});
  EXPECT_EQ(next(), "start 0.0");
  started({0, 0}, 100);
  EXPECT_EQ(next(), "+ pid=100 restarts=0 ready");
  ended({0, 0}, 1, 1);
  EXPECT_EQ(next(), "start 0.1") << "the restart counts when the instance has started";
  started({0, 1}, 101);
  EXPECT_EQ(next(), "+ pid=101 restarts=1 ready; forget 1");
  Millis delay = 100'000;
  for (uint16_t n = 1; n < 5; ++n, delay = std::min<Millis>(delay * 2, 300'000)) {
    ended({0, n}, 1, n + 1);
    EXPECT_EQ(next(),
              "+ pid=" + std::to_string(100 + n) + " restarts=" + std::to_string(n) + " not-ready");
    now += delay - 1;
    Orders early = node->next(now);
    EXPECT_EQ(text(early), "") << n;
    EXPECT_EQ(early.again_at, now + 1);
    now += 1;
    EXPECT_EQ(next(), "start 0." + std::to_string(n + 1));
    started({0, static_cast<uint16_t>(n + 1)}, 101 + n);
    EXPECT_EQ(next(), "+ pid=" + std::to_string(101 + n) + " restarts=" + std::to_string(n + 1) +
                          " ready; forget " + std::to_string(n + 1));
  }
  now += 600'000;
  ended({0, 5}, 1, 6, 600'000);
  EXPECT_EQ(next(), "start 0.6") << "ten minutes of running forget the delay";
  started({0, 6}, 106);
  ended({0, 6}, 0, 7);
  EXPECT_EQ(next(), "- exited/0 pid=106 restarts=6 (exited/0 x6); forget 6");
  EXPECT_TRUE(node->idle());
}

// Of every process but the last, whether or not its start was ever reported.
TEST_F(PodRunTest, AnEndTellsTheRunsBeforeIt) {
  begin({.init_containers = 1, .containers = 1, .restarts = true, .restart_delay_ms = 0});
  node->next(now);
  uint64_t entry = 0;
  const auto run = [&](Step step, int code) {
    ProcessEnd one = end(step, code, ++entry);
    one.used = {uint64_t{100} + entry, 0, 4096};
    node->process_ended(one);
    PodEnded last;
    for (const auto& report : node->next(++now).reports) {
      if (report.ends.empty())
        node->report_returned(report.id);
      else
        last = report.ends[0];
    }
    return last;
  };
  run({0, 0}, 3);
  run({0, 1}, 0);
  const int failures = static_cast<int>(kRunsMax) + 2;
  for (int n = 0; n < failures; ++n) run({1, static_cast<uint16_t>(n)}, 40 + n);
  const PodEnded last = run({1, static_cast<uint16_t>(failures)}, 0);
  EXPECT_EQ(last.containers.size(), 2u);
  ASSERT_EQ(last.runs.size(), kRunsMax) << "the newest of them";
  for (size_t i = 0; i < kRunsMax; ++i) {
    EXPECT_EQ(last.runs[i].container, 1);
    EXPECT_EQ(last.runs[i].end.restarts, static_cast<int>(i) + 2);
    EXPECT_EQ(last.runs[i].end.exit_code, static_cast<int>(i) + 42);
    EXPECT_EQ(last.runs[i].used.user_us, 100 + 2 + i + 3) << "of this process alone";
  }
}

// Container 0 is a sidecar, 1 an init container, 2 the pod's container.
PodPlan with_sidecar() {
  return {.init_containers = 2, .sidecars = {0}, .containers = 1, .restart_delay_ms = 10'000};
}

TEST_F(PodRunTest, SidecarStartsFirstAndIsEndedLast) {
  begin(with_sidecar());
  EXPECT_EQ(next(), "start 0.0");
  started({0, 0}, 100);
  EXPECT_EQ(next(), "start 1.0; + pid=100 restarts=0 initializing") << "it only has to start";
  started({1, 0}, 110);
  ended({1, 0}, 0, 1);
  EXPECT_EQ(next(), "start 2.0; + pid=110 restarts=0 ready");
  started({2, 0}, 120);
  EXPECT_EQ(next(), "+ pid=120 restarts=0 ready");
  ended({2, 0}, 0, 2);
  EXPECT_EQ(next(), "kill 0.0 grace=30000; + pid=120 restarts=0 not-ready");
  ended({0, 0}, 143, 3);
  EXPECT_EQ(next(), "- exited/0 pid=120 restarts=0 (exited/143, exited/0, exited/0)")
      << "how it ended decides nothing";
  EXPECT_TRUE(node->idle());
}

TEST_F(PodRunTest, SidecarIsRestartedWhateverThePolicy) {
  begin(with_sidecar());
  next();
  started({0, 0}, 100);
  EXPECT_EQ(next(), "start 1.0; + pid=100 restarts=0 initializing");
  ended({0, 0}, 0, 1);
  EXPECT_EQ(next(), "start 0.1; + pid=100 restarts=0 initializing");
  started({0, 1}, 101);
  started({1, 0}, 110);
  ended({1, 0}, 9, 2);
  EXPECT_EQ(next(), "kill 0.1 grace=30000; + pid=110 restarts=1 initializing; forget 1")
      << "an init container failed for good";
  ended({0, 1}, 143, 3);
  EXPECT_EQ(next(), "- exited/9 pid=110 restarts=1 (exited/143 x1, exited/9, never-started/0)");
}

TEST_F(PodRunTest, SidecarThatStartsTooLateIsEnded) {
  begin({.init_containers = 1, .sidecars = {0}, .containers = 1, .restart_delay_ms = 10'000});
  next();
  started({0, 0}, 100);
  next();
  started({1, 0}, 110);
  ended({0, 0}, 1, 1);
  EXPECT_EQ(next(), "start 0.1; + pid=110 restarts=0 ready");
  ended({1, 0}, 0, 2);
  EXPECT_EQ(next(), "kill 0.1 grace=30000; + pid=110 restarts=0 not-ready");
  started({0, 1}, 101);
  EXPECT_EQ(next().substr(0, 22), "kill 0.1 grace=30000; ") << "the kill may have overtaken it";
  ended({0, 1}, 143, 3);
  EXPECT_EQ(next().substr(0, 26), "- exited/0 pid=110 restart");
}

// While the sidecar is being ended, the pod is not stopped.
TEST_F(PodRunTest, AgentThatRestartsFinishesWhatSidecarsDelay) {
  begin(with_sidecar());
  restart_while_ended(with_sidecar(), {end({1, 0}, 0, 1), end({2, 0}, 5, 2)});
  EXPECT_NE(next().find("kill 0.0 grace=30000"), std::string::npos);
  ended({0, 0}, 143, 3);
  EXPECT_NE(next().find("- exited/5 "), std::string::npos);
}

// The start of the sidecar is known only from the process that followed it.
TEST_F(PodRunTest, AgentThatRestartsKnowsThatASidecarHasRun) {
  begin(with_sidecar());
  ProcessEnd sidecar = end({0, 1}, 127, 1);
  sidecar.start.reset();
  restart_agent(plan(with_sidecar()), {}, {sidecar, end({1, 0}, 0, 2), end({2, 0}, 0, 3)});
  EXPECT_NE(next().find("- exited/0 "), std::string::npos) << "the pod is over";
}

// Not only the sidecar is being ended: the pod's container was to be, and is not started again.
TEST_F(PodRunTest, AgentThatRestartsKnowsThatThePodIsBeingEnded) {
  PodPlan restarts = with_sidecar();
  restarts.restarts = true;
  begin(restarts);
  restart_while_ended(restarts, {end({1, 0}, 0, 1), end({2, 0}, 143, 2)});
  const std::string did = next();
  EXPECT_EQ(did.find("start 2."), std::string::npos) << did;
  ended({0, 0}, 143, 3);
  EXPECT_NE(next().find("- killed/143 "), std::string::npos);
}

// Another node may run the pod.
TEST_F(PodRunTest, PodWhoseSidecarCannotStartHereIsReturned) {
  begin(with_sidecar());
  next();
  ProcessEnd refused = end({0, 0}, kExitNotHere, 1);
  refused.start.reset();
  refused.error = "no memory";
  node->process_ended(refused);
  EXPECT_EQ(next().substr(0, 18), "- start-failed/125");
}

// As if a shell had tried to start it.
TEST_F(PodRunTest, PodWhoseInputIsTooLongHasExited) {
  begin({});
  next();
  ProcessEnd refused = end({0, 0}, kExitOfIndex, 1);
  refused.start.reset();
  refused.error = "the input is too long";
  node->process_ended(refused);
  EXPECT_EQ(next().substr(0, 13), "- exited/126 ");
}

// What two starts of one pod change is told, though it is ready from the first.
TEST_F(PodRunTest, EveryStartOfAReadyPodIsTold) {
  begin({.containers = 2});
  EXPECT_EQ(next(), "start 0.0; start 1.0");
  started({0, 0}, 100);
  EXPECT_EQ(next(), "+ pid=100 restarts=0 ready");
  started({1, 0}, 110);
  EXPECT_EQ(next(), "+ pid=100 restarts=0 ready");
}

TEST_F(PodRunTest, TellsTheCpusOfItsContainers) {
  begin({.containers = 2});
  next();
  node->process_started({pod(), {0, 0}, 100, now, {4, 5}});
  node->process_started({pod(), {1, 0}, 110, now, {1, 6}});
  EXPECT_EQ(next(), "+ pid=100 restarts=0 ready cpus=1,4-6");
  // What has ended has none.
  ended({1, 0}, 0, 1);
  EXPECT_EQ(next(), "+ pid=100 restarts=0 not-ready cpus=4-5");
  // The next agent is told by the executor, and tells it again.
  const auto with = plan({.containers = 2});
  Living first{.pod = pod(), .step = {0, 0}, .start = {{100, now}}, .grace_ms = 30'000};
  first.cpus = {4, 5};
  restart_agent(with, {first}, {end({1, 0}, 0, 1)});
  EXPECT_EQ(next(), "+ pid=100 restarts=0 not-ready cpus=4-5");
}

TEST_F(PodRunTest, ShowsEachContainerOfSeveral) {
  begin({.init_containers = 1, .containers = 1, .restarts = true, .restart_delay_ms = 10'000});
  const auto shown = [this] {
    std::string text;
    for (const auto& report : node->next(now).reports)
      for (const auto& start : report.starts)
        for (const auto& one : start.containers)
          text += std::string(core::name(one.phase)) +
                  (one.last ? ":" + std::to_string(one.last->exit_code) : "") + " ";
    return text;
  };
  node->next(now);
  started({0, 0}, 100);
  EXPECT_EQ(shown(), "running unborn ");
  ended({0, 0}, 7, 1);
  started({0, 1}, 101);
  ended({0, 1}, 7, 2);
  node->report_returned(1);
  EXPECT_EQ(shown(), "waiting:7 unborn ");
}

TEST_F(PodRunTest, SignalComesOnceBeforeTheDeadline) {
  begin({.containers = 2,
         .restarts = true,
         .restart_delay_ms = 0,
         .deadline_ms = 5'000,
         .signal = LimitSignal{10, 2'000, true}});
  next();
  started({0, 0}, 100);
  started({1, 0}, 110);
  now += 2'999;
  EXPECT_EQ(node->next(now).again_at, now + 1);
  now += 1;
  Orders orders = node->next(now);
  ASSERT_EQ(orders.signals.size(), 2u);
  EXPECT_EQ(orders.signals[1].step, (Step{1, 0}));
  EXPECT_EQ(orders.signals[1].number, 10);
  EXPECT_TRUE(orders.signals[1].first_only);
  EXPECT_EQ(orders.again_at, now + 2'000) << "the deadline";
  ended({0, 0}, 1, 1);
  orders = node->next(now);
  ASSERT_EQ(orders.starts.size(), 1u);
  started({0, 1}, 101);
  now += 1'000;
  EXPECT_TRUE(node->next(now).signals.empty()) << "the restarted container gets none";
  now += 1'000;
  EXPECT_EQ(node->next(now).kills.size(), 2u);
}

TEST_F(PodRunTest, UsageOfAllProcessesIsThePods) {
  const auto with =
      plan({.init_containers = 1, .containers = 2, .restarts = true, .restart_delay_ms = 0});
  const auto ends = [this](Step step, int code, uint64_t entry, Usage used) {
    ProcessEnd one = end(step, code, entry);
    one.used = used;
    node->process_ended(one);
  };
  welcome();
  launch(with);
  next();
  started({0, 0}, 100);
  ends({0, 0}, 0, 1, {10, 1, 500});
  next();
  started({1, 0}, 101);
  started({2, 0}, 102);
  ends({1, 0}, 1, 2, {20, 2, 900});
  Orders orders = node->next(now);
  ASSERT_EQ(orders.starts.size(), 1u);
  EXPECT_EQ(orders.starts[0].used, (Usage{20, 2, 900})) << "kept for the next agent";
  // Which knows only the ends that are still in the spool, and what each process was started with.
  node = std::make_unique<Node>(4);
  ProcessEnd init = end({0, 0}, 0, 1);
  init.used = {10, 1, 500};
  init.origin.plan = with;
  Living app{pod(), {1, 1}, {{103, now}}, 30'000, false, {.plan = with, .used = {20, 2, 900}}};
  Living other{pod(), {2, 0}, {{102, now}}, 30'000, false, {.plan = with}};
  node->executor_connected({app, other}, {init}, now);
  welcome();
  next();
  ends({1, 1}, 0, 3, {30, 3, 700});
  ends({2, 0}, 0, 4, {40, 4, 100});
  orders = node->next(now);
  ASSERT_EQ(orders.reports.size(), 1u);
  ASSERT_EQ(orders.reports[0].ends.size(), 1u);
  EXPECT_EQ(orders.reports[0].ends[0].used, (Usage{100, 10, 900}));
}

TEST_F(PodRunTest, NothingIsRestartedOutsideTheLease) {
  ASSERT_TRUE(node->registered({kTerm, {}, 5'000}, now));
  launch(plan({.restarts = true}));
  next();
  started({0, 0}, 100);
  next();
  now += 5'000;
  ended({0, 0}, 1, 1);
  EXPECT_EQ(next(), "+ pid=100 restarts=0 not-ready");
  EXPECT_EQ(node->next(now).again_at, std::nullopt) << "no busy loop";
  ASSERT_TRUE(node->heartbeat_answered(kTerm, now));
  EXPECT_EQ(next(), "start 0.1");
}

TEST_F(PodRunTest, KillDuringRestartDelayEndsPodAtOnce) {
  begin({.restarts = true});
  next();
  started({0, 0}, 100);
  ended({0, 0}, 7, 1);
  next();
  started({0, 1}, 101);
  ended({0, 1}, 8, 2);
  next();
  ASSERT_TRUE(node->kill(kTerm, {{pod(), 30'000}}, now));
  Orders orders = node->next(now);
  EXPECT_EQ(text(orders), "- killed/8 pid=101 restarts=1 (exited/8 x1)");
  node->report_returned(orders.reports.at(0).id);
  EXPECT_EQ(next(), "forget 2");
  now += 100'000;
  EXPECT_EQ(next(), "");
}

TEST_F(PodRunTest, ACommandThatCannotBeStartedIsTriedAgain) {
  begin({.restarts = true});
  next();
  node->process_ended({.pod = pod(), .entry = 1, .exit_code = 127, .error = "no such file"});
  EXPECT_EQ(next(), "start 0.1");
  node->process_ended({.pod = pod(),
                       .step = {0, 1},
                       .entry = 2,
                       .exit_code = 127,
                       .error = "no such file",
                       .ended_at = now});
  EXPECT_EQ(next(), "+ pid=none restarts=1 not-ready; forget 1")
      << "told, so that the job's backoffLimit can end it";
}

TEST_F(PodRunTest, InitContainersRunOneAfterAnother) {
  begin({.init_containers = 2, .containers = 2});
  EXPECT_EQ(next(), "start 0.0");
  started({0, 0}, 100);
  EXPECT_EQ(next(), "+ pid=100 restarts=0 initializing");
  ended({0, 0}, 0, 1);
  EXPECT_EQ(next(), "start 1.0; + pid=100 restarts=0 initializing");
  started({1, 0}, 110);
  EXPECT_EQ(next(), "+ pid=110 restarts=0 initializing");
  ended({1, 0}, 0, 2);
  EXPECT_EQ(next(), "start 2.0; start 3.0; + pid=110 restarts=0 ready");
  started({3, 0}, 130);
  started({2, 0}, 120);
  EXPECT_EQ(next(), "+ pid=120 restarts=0 ready");
  ended({3, 0}, 9, 3);
  EXPECT_EQ(next(), "+ pid=120 restarts=0 not-ready") << "the other goes on";
  ended({2, 0}, 0, 4);
  Orders orders = node->next(now);
  EXPECT_EQ(text(orders), "- exited/9 pid=120 restarts=0 (exited/0, exited/0, exited/0, exited/9)");
  node->report_returned(orders.reports.at(0).id);
  EXPECT_EQ(next(), "forget 1; forget 2; forget 4; forget 3");
}

TEST_F(PodRunTest, AFailedInitContainerFailsThePod) {
  begin({.init_containers = 1, .containers = 1});
  next();
  started({0, 0}, 100);
  ended({0, 0}, 5, 1);
  EXPECT_EQ(next(), "- exited/5 pid=100 restarts=0 (exited/5, never-started/0)");
}

TEST_F(PodRunTest, AFailedInitContainerIsRestartedInPlace) {
  begin({.init_containers = 1, .containers = 1, .restarts = true, .restart_delay_ms = 10});
  next();
  started({0, 0}, 100);
  ended({0, 0}, 5, 1);
  EXPECT_EQ(next(), "start 0.1; + pid=100 restarts=0 initializing");
  started({0, 1}, 101);
  ended({0, 1}, 0, 2);
  EXPECT_EQ(next(), "start 1.0; + pid=101 restarts=1 ready; forget 1");
  started({1, 0}, 110);
  ended({1, 0}, 0, 3);
  EXPECT_EQ(next(), "- exited/0 pid=110 restarts=1 (exited/0 x1, exited/0)");
}

// As while a health check fails.
TEST_F(PodRunTest, AFailedContainerIsRestartedWhileNewPodsAreHeld) {
  begin({.restarts = true, .restart_delay_ms = 10'000});
  EXPECT_EQ(next(), "start 0.0");
  started({0, 0}, 100);
  EXPECT_EQ(next(), "+ pid=100 restarts=0 ready");
  node->hold_new_pods(true);
  launch(nullptr, 1);
  ended({0, 0}, 1, 1);
  EXPECT_EQ(next(), "start 0.1") << "the other pod is new";
  started({0, 1}, 101);
  EXPECT_EQ(next(), "+ pid=101 restarts=1 ready; forget 1");
  ended({0, 1}, 1, 2);
  EXPECT_EQ(next(), "+ pid=101 restarts=1 not-ready");
  now += 10'000;
  ASSERT_TRUE(node->heartbeat_answered(kTerm, now));
  EXPECT_EQ(next().substr(0, 9), "start 0.2") << "nor does a delay change anything";
}

TEST_F(PodRunTest, ExitCodeIsThatOfFirstFailedContainer) {
  begin({.containers = 3});
  EXPECT_EQ(next(), "start 0.0; start 1.0; start 2.0");
  for (uint16_t c : {0, 1, 2}) started({c, 0}, 100 + 10 * c);
  ended({2, 0}, 3, 1);
  ended({1, 0}, 2, 2);
  ended({0, 0}, 0, 3);
  EXPECT_EQ(next(), "- exited/2 pid=100 restarts=0 (exited/0, exited/2, exited/3)");
}

TEST_F(PodRunTest, AKillReachesEveryContainer) {
  begin({.containers = 2, .restarts = true});
  next();
  started({0, 0}, 100);
  started({1, 0}, 110);
  next();
  ASSERT_TRUE(node->kill(kTerm, {{pod(), 500}}, now));
  EXPECT_EQ(next(), "kill 0.0 grace=500; kill 1.0 grace=500");
  ended({0, 0}, 143, 1);
  EXPECT_EQ(next(), "+ pid=100 restarts=0 not-ready") << "no restart of a pod that is killed";
  ended({1, 0}, 0, 2);
  EXPECT_EQ(next(), "- killed/143 pid=100 restarts=0 (killed/143, killed/0)");
}

TEST_F(PodRunTest, KilledBetweenItsInitContainersIsNoSuccess) {
  begin({.init_containers = 1, .containers = 1});
  next();
  started({0, 0}, 100);
  ASSERT_TRUE(node->kill(kTerm, {{pod(), 500}}, now));
  ended({0, 0}, 0, 1);
  EXPECT_EQ(next(),
            "kill 0.0 grace=500; - killed/137 pid=100 restarts=0 (killed/0, "
            "never-started/0)");
}

TEST_F(PodRunTest, TheDeadlineRunsFromTheFirstProcess) {
  begin({.init_containers = 1, .containers = 1, .deadline_ms = 5'000});
  next();
  started({0, 0}, 100);
  next();
  now += 4'000;
  ended({0, 0}, 0, 1);
  next();
  started({1, 0}, 110);
  Orders orders = node->next(now);
  EXPECT_EQ(orders.again_at, 6'000);
  now += 999;
  EXPECT_EQ(next(), "");
  now += 1;
  EXPECT_EQ(next(), "kill 1.0 grace=30000");
  ended({1, 0}, 143, 2);
  EXPECT_EQ(next(), "- deadline/143 pid=110 restarts=0 (exited/0, deadline/143)");
}

TEST_F(PodRunTest, ANewLimitIsThatOfARunningPod) {
  auto limit = [this](std::optional<Millis> limit_ms, Term term = kTerm) {
    return node->limit(term, {{pod(), limit_ms}, {pod(9), limit_ms}}, now);
  };
  begin({.deadline_ms = 5'000});
  next();
  started({0, 0}, 100);
  next();
  now += 4'000;
  EXPECT_TRUE(limit(10'000));
  EXPECT_FALSE(limit(1, {2, 77})) << "of an earlier coordinator";
  EXPECT_EQ(node->next(now).again_at, 11'000);
  EXPECT_TRUE(limit(std::nullopt));
  EXPECT_EQ(node->next(now).again_at, std::nullopt);
  EXPECT_TRUE(limit(3'000));
  EXPECT_EQ(next(), "kill 0.0 grace=30000") << "it has run for longer";
  EXPECT_TRUE(limit(60'000));
  ended({0, 0}, 143, 1);
  EXPECT_EQ(next(), "- deadline/143 pid=100 restarts=0") << "too late, and no pod is started";
}

TEST_F(PodRunTest, ALimitForAPodThatHadNone) {
  welcome();
  launch(nullptr);
  next();
  EXPECT_TRUE(node->limit(kTerm, {{pod(), 5'000}}, now));
  now += 1'000;
  started({0, 0}, 100);
  EXPECT_EQ(node->next(now).again_at, 7'000);
}

// The signal announces the limit.
TEST_F(PodRunTest, ALaterLimitHasItsOwnSignal) {
  auto signals = [this] { return node->next(now).signals.size(); };
  begin({.deadline_ms = 5'000, .signal = LimitSignal{10, 1'000}});
  next();
  started({0, 0}, 100);
  now += 4'000;
  EXPECT_EQ(signals(), 1u);
  EXPECT_TRUE(node->limit(kTerm, {{pod(), 4'500}}, now));
  EXPECT_EQ(signals(), 0u) << "it knows";
  EXPECT_TRUE(node->limit(kTerm, {{pod(), 9'000}}, now));
  EXPECT_EQ(signals(), 0u);
  now += 4'000;
  EXPECT_EQ(signals(), 1u);
}

TEST_F(PodRunTest, DeadlineEndsPodDuringRestartDelay) {
  begin({.restarts = true, .restart_delay_ms = 100'000, .deadline_ms = 5'000});
  next();
  started({0, 0}, 100);
  ended({0, 0}, 1, 1);
  next();
  started({0, 1}, 101);
  ended({0, 1}, 4, 2);
  EXPECT_EQ(node->next(now).again_at, 6'000);
  now += 5'000;
  EXPECT_EQ(next(), "- deadline/4 pid=101 restarts=1 (exited/4 x1)");
}

TEST_F(PodRunTest, OutOfMemoryKillIsReported) {
  begin({});
  next();
  started({0, 0}, 100);
  ProcessEnd killed = end({0, 0}, 137, 1);
  killed.signal = 9;
  killed.out_of_memory = true;
  node->process_ended(killed);
  EXPECT_EQ(next(), "- out-of-memory/137 pid=100 restarts=0");
}

TEST_F(PodRunTest, ChangeDuringReportIsReportedAgain) {
  begin({.restarts = true});
  next();
  started({0, 0}, 100);
  Orders first = node->next(now);
  ended({0, 0}, 1, 1);
  next();
  started({0, 1}, 101);
  node->report_returned(first.reports.at(0).id);  // for the first instance
  Orders second = node->next(now);
  EXPECT_EQ(text(second), "+ pid=101 restarts=1 ready; forget 1");
  node->disconnected();
  welcome();
  EXPECT_EQ(next(), "+ pid=101 restarts=1 ready") << "it was not acked";
}

TEST_F(PodRunTest, DevicesAreHeldUntilThePodEnds) {
  node = std::make_unique<Node>(4, Term{}, 0, Devices({{"gpu", 3}}));
  welcome();
  auto two = plan({.restarts = true, .devices = {{"gpu", 2}}});
  auto one = plan({.devices = {{"gpu", 1}}});
  launch(two, 0);
  launch(two, 1);
  launch(one, 2);
  launch(nullptr, 3);
  launch(plan({.devices = {{"gpu", 4}}}), 4);
  EXPECT_EQ(
      next(),
      "start 0.0 gpu=0,1; start 0.0 gpu=2; start 0.0; - start-failed/126 pid=none restarts=0");
  started({0, 0}, 100);
  ended({0, 0}, 1, 1);
  EXPECT_EQ(next(), "start 0.1 gpu=0,1; + pid=100 restarts=0 ready")
      << "between two processes, too";
  started({0, 1}, 101);
  ended({0, 1}, 0, 2);
  EXPECT_EQ(next(), "start 0.0 gpu=0,1; - exited/0 pid=101 restarts=1 (exited/0 x1); forget 1");
}

// After an agent restart, the spool shows how far the pod got, and the pod continues from there.
TEST_F(PodRunTest, ARestartedAgentGoesOnWithTheDelay) {
  auto with = plan({.restarts = true, .restart_delay_ms = 1'000});
  ProcessEnd last = end({0, 2}, 1, 5);
  last.origin = {with, 30'000, 400, 2, nullptr};
  node->executor_connected({}, {last}, now);
  EXPECT_EQ(node->running(), std::vector<PodId>{pod()});
  welcome();
  EXPECT_EQ(next(), "+ pid=102 restarts=2 not-ready");
  now += 1'999;
  EXPECT_EQ(next(), "");
  now += 1;
  Orders orders = node->next(now);
  EXPECT_EQ(text(orders), "start 0.3");
  EXPECT_EQ(orders.starts.at(0).level, 3);
  EXPECT_EQ(orders.starts.at(0).pod_started_at, 400);
}

TEST_F(PodRunTest, RestartedAgentResumesPodAtItsStep) {
  auto with = plan({.init_containers = 1, .containers = 2, .deadline_ms = 10'000});
  ProcessEnd init = end({0, 0}, 0, 5), app = end({1, 0}, 4, 6);
  init.origin = {with, 30'000, 0, 0, nullptr};
  app.origin = {with, 30'000, 200, 0, nullptr};
  for (bool init_first : {true, false}) {
    node = std::make_unique<Node>(4);
    Living other{pod(), {2, 0}, {{120, now}}, 30'000, false, {with, 30'000, 200, 0, nullptr}};
    std::vector<ProcessEnd> ends = {init_first ? init : app, init_first ? app : init};
    node->executor_connected({other}, ends, now);
    welcome();
    Orders orders = node->next(now);
    EXPECT_EQ(text(orders), "+ pid=110 restarts=0 not-ready");
    EXPECT_EQ(orders.again_at, 10'200) << "the deadline counts from the pod's start";
    ended({2, 0}, 0, 7);
    EXPECT_EQ(next(), "- exited/4 pid=110 restarts=0 (exited/0, exited/4, exited/0)");
  }
  node = std::make_unique<Node>(4);
  node->executor_connected({}, {init}, now);
  welcome();
  EXPECT_EQ(next(), "start 1.0; start 2.0; + pid=100 restarts=0 ready")
      << "it had died between the init container and the others";
}

TEST_F(PodRunTest, RestartedAgentForgetsEndOfEarlierInstance) {
  auto with = plan({.restarts = true, .devices = {{"gpu", 1}}});
  auto held = std::make_shared<const DeviceMap>(DeviceMap{{"gpu", {0}}});
  node = std::make_unique<Node>(4, Term{}, 0, Devices({{"gpu", 2}}));
  ProcessEnd old = end({0, 0}, 1, 5);
  old.origin = {with, 30'000, 0, 0, held};
  Living living{pod(), {0, 1}, {{101, now}}, 30'000, false, {with, 30'000, 300, 1, held}};
  node->executor_connected({living}, {old}, now);
  welcome();
  launch(plan({.devices = {{"gpu", 1}}}), 1);
  EXPECT_EQ(next(), "start 0.0 gpu=1; + pid=101 restarts=1 ready; forget 5");
}

TEST_F(PodRunTest, DeadlineSurvivesAgentRestart) {
  auto with = plan({.deadline_ms = 5'000});
  Living living{pod(), {0, 0}, {{100, now}}, 30'000, true, {with, 30'000, 0, 0, nullptr}};
  now += 5'000;
  node->executor_connected({living}, {}, now);
  welcome();
  next();
  ended({0, 0}, 143, 1);
  EXPECT_EQ(next(), "- deadline/143 pid=100 restarts=0");
}

TEST_F(PodRunTest, LostKeeperEndsPodOfSeveralContainers) {
  begin({.containers = 2, .restarts = true});
  next();
  started({0, 0}, 100);
  started({1, 0}, 110);
  next();
  ProcessEnd lost = end({0, 0}, 137, 1);
  lost.lost = true;
  ProcessEnd other = end({1, 0}, 137, 2);
  other.lost = true;
  node->executor_connected({}, {lost, other}, now);
  EXPECT_EQ(next(),
            "kill 1.0 grace=0; - keeper-lost/137 pid=100 restarts=0 (keeper-lost/137, "
            "keeper-lost/137)");
}

TEST_F(PodRunTest, ARestartThatDidNotReachTheOldKeeperIsOrderedAgain) {
  begin({.restarts = true});
  next();
  started({0, 0}, 100);
  next();
  ProcessEnd failed = end({0, 0}, 1, 1);
  node->process_ended(failed);
  EXPECT_EQ(next(), "start 0.1");
  node->executor_connected({}, {failed}, now);  // a new keeper knows only the old end
  EXPECT_EQ(next(), "start 0.1");
}

}  // namespace
}  // namespace muster::core::node
