// Node: tables of events and the orders that follow each.
#include "core/node/node.hpp"

#include "core/job/fold/text.hpp"
#include "core/node/pulse.hpp"

#include <gtest/gtest.h>

#include <string>

namespace muster::core::node {
namespace {

constexpr Term kTerm{3, 77};
constexpr Millis kLease = 20'000;

PodId pod(uint32_t index, uint32_t attempt = 0) {
  return {1, index, attempt};
}

// Orders as one line:
// "kill j1/0#0 grace=0; start j1/1#0; report 1 +j1/1#0 -j1/0#0 killed/137; forget 5".
std::string text(const Orders& orders) {
  std::string out;
  auto add = [&out](const std::string& part) { out += (out.empty() ? "" : "; ") + part; };
  for (const auto& k : orders.kills) {
    add("kill " + to_string(k.pod) + " grace=" + std::to_string(k.grace_ms));
  }
  if (orders.room) add("room " + std::to_string(*orders.room));
  for (PodId pod : orders.withdrawn) add("withdraw " + to_string(pod));
  for (const auto& s : orders.starts) add((s.queued ? "queue " : "start ") + to_string(s.pod));
  for (const auto& r : orders.reports) {
    std::string line = "report " + std::to_string(r.id);
    for (const auto& s : r.starts) line += " +" + to_string(s.pod);
    for (const auto& e : r.ends) {
      line += " -" + to_string(e.pod) + " " + std::string(name(e.cause)) + "/" +
              std::to_string(e.exit_code);
    }
    add(line);
  }
  for (uint64_t entry : orders.forget) add("forget " + std::to_string(entry));
  return out;
}

struct NodeTest : testing::Test {
  Node node{2};
  Millis now = 1000;

  void welcome(std::vector<PodId> end = {}) {
    ASSERT_TRUE(node.registered({kTerm, std::move(end), kLease}, now));
  }
  void launch(std::vector<uint32_t> indexes) {
    std::vector<Launch> pods;
    for (uint32_t i : indexes) pods.push_back({pod(i), 30'000});
    ASSERT_TRUE(node.launch(kTerm, pods, now));
  }
  void started(uint32_t index) { node.process_started({pod(index), {}, 100 + int(index), now}); }
  void ended(uint32_t index, int code, uint64_t entry) {
    node.process_ended({.pod = pod(index),
                        .entry = entry,
                        .start = {{100 + int(index), now}},
                        .exit_code = code,
                        .ended_at = now});
  }
  std::string next() { return text(node.next(now)); }
};

TEST_F(NodeTest, RunsAtMostSlotsInLaunchOrder) {
  welcome();
  launch({4, 2, 9});
  EXPECT_EQ(next(), "start j1/4#0; start j1/2#0");
  started(4);
  EXPECT_EQ(next(), "report 1 +j1/4#0");
  ended(4, 0, 11);
  EXPECT_EQ(next(), "start j1/9#0; report 2 -j1/4#0 exited/0");
  node.report_returned(2);
  EXPECT_EQ(next(), "forget 11");
  EXPECT_FALSE(node.knows(pod(4)));
}

TEST_F(NodeTest, ReturnsPodsThatWaitTooLongForSlot) {
  welcome();
  launch({0, 1, 2});
  EXPECT_EQ(next(), "start j1/0#0; start j1/1#0");
  now += Node::kWaitMaxMs / 2;
  node.heartbeat_answered(kTerm, now);
  launch({3, 4});
  now += Node::kWaitMaxMs / 2;
  node.heartbeat_answered(kTerm, now);
  Orders orders = node.next(now - 1);
  EXPECT_EQ(text(orders), "");
  EXPECT_EQ(orders.again_at, now);
  EXPECT_EQ(next(), "report 1 -j1/2#0 returned/0") << "the others came later";
  launch({2});
  ended(0, 0, 7);
  EXPECT_EQ(next(), "start j1/3#0; report 2 -j1/0#0 exited/0") << "it is not begun after all";
  node.report_returned(1);
  EXPECT_FALSE(node.knows(pod(2)));
  now += Node::kWaitMaxMs;
  node.heartbeat_answered(kTerm, now);
  node.disconnected();
  EXPECT_EQ(next(), "") << "nobody would take it";
}

TEST_F(NodeTest, KeepsWaitingPodsWhileSlotsAreFree) {
  launch({0});
  now += 2 * Node::kWaitMaxMs;
  welcome({});
  EXPECT_EQ(next(), "start j1/0#0") << "it waited for the lease";
}

TEST_F(NodeTest, StartsNothingOutsideTheLease) {
  launch({0});
  EXPECT_EQ(next(), "") << "not registered yet";
  welcome();
  now += kLease;
  EXPECT_EQ(next(), "") << "the lease is over";
  EXPECT_TRUE(node.heartbeat_answered(kTerm, now - kLease));
  EXPECT_EQ(next(), "") << "what counts is when it was sent";
  EXPECT_TRUE(node.heartbeat_answered(kTerm, now - kLease + 1));
  EXPECT_EQ(next(), "start j1/0#0");
}

// An executor that starts queued orders by itself.
struct QueueTest : NodeTest {
  QueueTest() {
    node.executor_queues(true);
    node.executor_connected({}, {}, now);
  }
  void unstarted(uint32_t index) {
    node.process_ended({.pod = pod(index), .error = "why", .ended_at = now, .unstarted = true});
  }
  void later(Millis ms) {
    now += ms;
    ASSERT_TRUE(node.heartbeat_answered(kTerm, now));
  }
};

TEST_F(QueueTest, AllWaitingPodsAreQueuedAtOnce) {
  welcome();
  launch({4, 2, 9});
  EXPECT_EQ(next(), "room 2; queue j1/4#0; queue j1/2#0; queue j1/9#0");
  started(4);
  ended(4, 0, 11);
  EXPECT_EQ(next(), "report 1 -j1/4#0 exited/0") << "the executor fills the slot";
  launch({1});
  EXPECT_EQ(next(), "queue j1/1#0");
  EXPECT_EQ(node.running().size(), 3u);
}

TEST_F(QueueTest, StartOrdersCarryEndOfLease) {
  launch({0});
  EXPECT_EQ(next(), "room 2");
  welcome();
  Orders orders = node.next(now);
  ASSERT_EQ(orders.starts.size(), 1u);
  EXPECT_EQ(orders.starts[0].not_after, now + kLease);
}

TEST_F(QueueTest, PodsThatMissedLeaseAreQueuedAgainInOrder) {
  welcome();
  launch({4, 2, 9});
  next();
  now += kLease;
  for (uint32_t index : {4, 2, 9}) unstarted(index);
  launch({1});
  later(Node::kHoldMs);
  EXPECT_EQ(next(), "queue j1/4#0; queue j1/2#0; queue j1/9#0; queue j1/1#0");
}

TEST_F(QueueTest, APodOfSeveralProcessesTakesASlotFromTheRoom) {
  welcome();
  auto plan = std::make_shared<PodPlan>();
  plan->containers = 2;
  launch({0, 1});
  ASSERT_TRUE(node.launch(kTerm, {{pod(2), 30'000, plan}}, now));
  launch({3});
  EXPECT_EQ(next(), "room 2; queue j1/0#0; queue j1/1#0") << "neither that pod nor those after it";
  started(0);
  ended(0, 0, 11);
  EXPECT_EQ(next(), "room 1; start j1/2#0; start j1/2#0; queue j1/3#0; report 1 -j1/0#0 exited/0");
  for (uint16_t container : {0, 1})
    node.process_ended({.pod = pod(2),
                        .step = {container, 0},
                        .entry = 20u + container,
                        .start = {{7, now}},
                        .ended_at = now});
  EXPECT_EQ(next(), "room 2; report 2 -j1/2#0 exited/0");
}

TEST_F(QueueTest, PodsThatWaitTooLongAreWithdrawnAndReturned) {
  welcome();
  launch({0, 1, 2, 3});
  next();
  started(0);
  started(1);
  later(Node::kWaitMaxMs - 1);
  EXPECT_EQ(node.next(now).again_at, now + 1);
  later(1);
  EXPECT_EQ(next(), "withdraw j1/2#0; withdraw j1/3#0");
  EXPECT_EQ(next(), "") << "once";
  started(2);  // it had started before the withdrawal arrived
  unstarted(3);
  launch({4});
  EXPECT_EQ(next(), "queue j1/4#0; report 2 +j1/2#0 -j1/3#0 returned/0") << "and nothing is held";
  EXPECT_TRUE(node.runs(pod(2)));
}

TEST_F(QueueTest, NothingIsWithdrawnWhileThereAreSlots) {
  welcome();
  launch({0, 1});
  next();
  later(2 * Node::kWaitMaxMs);
  EXPECT_EQ(next(), "") << "the executor is about to start them";
  node.executor_in_trouble(true);
  EXPECT_EQ(next(), "withdraw j1/0#0; withdraw j1/1#0");
}

TEST_F(QueueTest, QueuedPodThatIsKilledNeverStarts) {
  welcome();
  launch({0, 1, 2});
  next();
  ASSERT_TRUE(node.kill(kTerm, {{pod(2), 5'000}}, now));
  EXPECT_EQ(next(), "kill j1/2#0 grace=5000");
  unstarted(2);
  launch({3});
  EXPECT_EQ(next(), "queue j1/3#0; report 1 -j1/2#0 never-started/0") << "and nothing is held";
}

TEST_F(QueueTest, NewExecutorGetsRoomAndUndeliveredOrders) {
  welcome();
  launch({0, 1, 2});
  next();
  started(0);
  node.executor_connected({}, {{.pod = pod(0), .entry = 5, .start = {{100, now}}, .lost = true}},
                          now);
  EXPECT_EQ(next(), "room 2; queue j1/1#0; queue j1/2#0; report 1 -j1/0#0 keeper-lost/137");
}

TEST_F(QueueTest, PodsQueuedByEarlierAgentAreWithdrawnAfterTimeout) {
  Living waits{.pod = pod(0), .grace_ms = 30'000};
  waits.queued = true;
  Living runs = waits;
  runs.pod = pod(1);
  runs.start = {7, now};
  Living runs_too = runs;
  runs_too.pod = pod(2);
  runs_too.start = {8, now};
  node.executor_connected({runs, runs_too, waits}, {}, now);
  welcome();
  EXPECT_EQ(next(), "room 2; report 1 +j1/1#0 +j1/2#0");
  later(Node::kWaitMaxMs);
  EXPECT_EQ(next(), "withdraw j1/0#0");
  node.executor_connected({runs, runs_too, waits}, {}, now);
  EXPECT_EQ(next(), "room 2; withdraw j1/0#0") << "that order may have been lost";
  unstarted(0);
  EXPECT_EQ(next(), "report 2 -j1/0#0 returned/0");
}

TEST_F(QueueTest, PodsQueuedByEarlierAgentAreReturnedWithoutKeeper) {
  Living waits{.pod = pod(0), .grace_ms = 30'000};
  waits.queued = true;
  node.executor_connected({waits}, {}, now);
  welcome();
  EXPECT_EQ(next(), "room 2");
  node.executor_connected({}, {}, now);
  EXPECT_EQ(next(), "room 2; report 1 -j1/0#0 returned/0") << "it never ran: its intent is missing";
}

// The executor could not start the process for a reason of the node.
struct P15Faults : NodeTest {
  void fault(uint32_t index, bool any = true) {
    node.process_ended({.pod = pod(index),
                        .entry = any ? std::nullopt : std::optional<uint64_t>(7),
                        .exit_code = kExitNotHere,
                        .error = any ? "fork: Resource temporarily unavailable" : "cwd /data: gone",
                        .ended_at = now,
                        .unstarted = any});
  }
  void pass(Millis ms) {
    now += ms;
    node.heartbeat_answered(kTerm, now);
  }
};

TEST_F(P15Faults, StartFaultPausesStartsAndReturnsWaitingPods) {
  welcome();
  launch({0, 1, 2});
  EXPECT_EQ(next(), "start j1/0#0; start j1/1#0");
  EXPECT_FALSE(node.start_trouble(now));
  fault(0);
  EXPECT_EQ(next(), "") << "it waits in its place";
  EXPECT_EQ(node.start_trouble(now).reason, "CannotStartPods");
  EXPECT_NE(node.start_trouble(now).message.find("fork: Resource"), std::string::npos);
  fault(1);
  pass(Node::kFaultHoldMinMs);
  EXPECT_EQ(next(), "start j1/0#0; start j1/1#0; report 1 -j1/2#0 returned/0")
      << "a second fault of one burst changes nothing";
  fault(0);
  pass(Node::kFaultHoldMinMs);
  Orders orders = node.next(now);
  EXPECT_EQ(text(orders), "report 2 -j1/0#0 returned/0")
      << "the hold has doubled, and another node may have room";
  EXPECT_EQ(orders.reports[0].ends[0].message,
            "its node cannot start pods: fork: Resource temporarily unavailable");
  started(1);
  pass(2 * Node::kFaultHoldMinMs);
  launch({3});
  EXPECT_EQ(next(), "start j1/3#0; report 3 +j1/1#0");
  fault(3);
  pass(Node::kFaultHoldMinMs);
  EXPECT_EQ(next(), "start j1/3#0") << "a start has ended the doubling";
}

TEST_F(P15Faults, StartFaultPausesQueueOfExecutor) {
  node.executor_queues(true);
  welcome();
  launch({0, 1, 2});
  EXPECT_EQ(next(), "room 2; queue j1/0#0; queue j1/1#0; queue j1/2#0");
  fault(0);
  EXPECT_EQ(next(), "room 0");
  pass(Node::kFaultHoldMinMs);
  EXPECT_NE(next().find("room 2"), std::string::npos);
}

TEST_F(P15Faults, StartFaultOfOnePodEndsOnlyThatPod) {
  welcome();
  auto plan = std::make_shared<PodPlan>();
  plan->restarts = true;
  ASSERT_TRUE(node.launch(kTerm, {{pod(0), 30'000, plan}}, now));
  launch({1});
  EXPECT_EQ(next(), "start j1/0#0; start j1/1#0");
  fault(0, false);
  fault(1, false);
  EXPECT_EQ(next(), "report 1 -j1/0#0 start-failed/125 -j1/1#0 start-failed/125")
      << "it is not restarted in place";
  EXPECT_FALSE(node.start_trouble(now));
  launch({2});
  EXPECT_EQ(next(), "start j1/2#0");
}

TEST_F(P15Faults, StartFaultAfterInitContainerIsFailure) {
  welcome();
  auto plan = std::make_shared<PodPlan>();
  plan->init_containers = 1;
  ASSERT_TRUE(node.launch(kTerm, {{pod(0), 30'000, plan}}, now));
  EXPECT_EQ(next(), "start j1/0#0");
  ended(0, 0, 5);
  EXPECT_EQ(next().substr(0, 11), "start j1/0#");
  node.process_ended({.pod = pod(0),
                      .step = {1, 0},
                      .entry = 6,
                      .exit_code = kExitNotHere,
                      .error = "cwd /data: gone",
                      .ended_at = now});
  EXPECT_NE(next().find("-j1/0#0 start-failed/126"), std::string::npos);
}

// As while a health check fails.
TEST_F(P15Faults, HeldNewPodsAreReturnedAndOthersGoOn) {
  welcome();
  auto plan = std::make_shared<PodPlan>();
  plan->init_containers = 1;
  ASSERT_TRUE(node.launch(kTerm, {{pod(0), 30'000, plan}}, now));
  EXPECT_EQ(next(), "start j1/0#0");
  node.hold_new_pods(true);
  launch({1});
  EXPECT_EQ(next(), "") << "a slot is free, but the pod is new";
  ended(0, 0, 5);
  EXPECT_EQ(next().substr(0, 12), "start j1/0#0") << "its next container";
  pass(Node::kWaitMaxMs);
  EXPECT_EQ(next(), "report 2 -j1/1#0 returned/0");
  node.hold_new_pods(false);
  launch({2});
  EXPECT_EQ(next(), "start j1/2#0");
}

TEST_F(P15Faults, HeldNewPodsLeaveTheQueueOfTheExecutor) {
  node.executor_queues(true);
  welcome();
  launch({0, 1, 2});
  EXPECT_EQ(next(), "room 2; queue j1/0#0; queue j1/1#0; queue j1/2#0");
  started(0);
  EXPECT_EQ(next(), "report 1 +j1/0#0");
  node.hold_new_pods(true);
  EXPECT_EQ(next(), "room 0");
  pass(Node::kWaitMaxMs);
  EXPECT_EQ(next(), "withdraw j1/1#0; withdraw j1/2#0") << "the first one runs";
  node.hold_new_pods(false);
  EXPECT_EQ(next(), "room 2");
}

// The agent holds the order of a pod that needs a config map.
TEST_F(P15Faults, HeldNewPodsDoNotStartOnceTheirOrderIsPassedOn) {
  welcome();
  auto plan = std::make_shared<PodPlan>();
  plan->init_containers = 1;
  ASSERT_TRUE(node.launch(kTerm, {{pod(0), 30'000, plan}}, now));
  EXPECT_EQ(next(), "start j1/0#0");
  node.hold_new_pods(true);
  EXPECT_EQ(node.start_by(pod(0), {}, now), now);
  node.hold_new_pods(false);
  EXPECT_EQ(node.start_by(pod(0), {}, now), now + kLease);
  node.hold_new_pods(true);
  ended(0, 0, 5);
  EXPECT_EQ(next().substr(0, 12), "start j1/0#0");
  EXPECT_EQ(node.start_by(pod(0), {1, 0}, now), now + kLease) << "the pod has begun";
}

TEST_F(P15Faults, HeldPodOfSeveralProcessesGoesOnOnceOneHasStarted) {
  welcome();
  auto plan = std::make_shared<PodPlan>();
  plan->containers = 2;
  ASSERT_TRUE(node.launch(kTerm, {{pod(0), 30'000, plan}}, now));
  EXPECT_EQ(next(), "start j1/0#0; start j1/0#0");
  node.hold_new_pods(true);
  node.process_ended({.pod = pod(0), .ended_at = now, .unstarted = true});
  pass(Node::kHoldMs);
  EXPECT_EQ(next(), "") << "nothing of it is known to run";
  node.process_started({pod(0), {1, 0}, 100, now});
  EXPECT_EQ(next().substr(0, 12), "start j1/0#0");
}

TEST_F(P15Faults, P27WithoutSuccessorStartedPodsAreLostAndOthersReturned) {
  node.executor_queues(true);
  welcome();
  launch({0, 1, 2});
  EXPECT_EQ(next(), "room 2; queue j1/0#0; queue j1/1#0; queue j1/2#0");
  started(0);
  next();
  node.executor_in_trouble(true);
  launch({3});
  ASSERT_EQ(node.living().size(), 1u);
  EXPECT_EQ(node.living()[0].pid, 100);
  pass(Node::kWaitMaxMs);
  EXPECT_NE(next().find("-j1/3#0 returned/0"), std::string::npos) << "it was never ordered";
  node.executor_lost(now);
  EXPECT_NE(next().find("-j1/0#0 keeper-lost/137 -j1/1#0 keeper-lost/137 -j1/2#0 keeper-lost/137"),
            std::string::npos)
      << "each may have begun";
  EXPECT_TRUE(node.idle());
}

struct P12NotAfter : NodeTest {
  // The executor reports that the order arrived after the lease had expired.
  void unstarted(uint32_t index, Step step = {}) {
    node.process_ended({.pod = pod(index), .step = step, .ended_at = now, .unstarted = true});
  }
};

TEST_F(P12NotAfter, AnOrderCarriesTheEndOfTheLease) {
  welcome();
  launch({0, 1});
  now += 5;
  ASSERT_TRUE(node.heartbeat_answered(kTerm, now - 3));
  Orders orders = node.next(now);
  ASSERT_EQ(orders.starts.size(), 2u);
  for (const auto& start : orders.starts) EXPECT_EQ(start.not_after, now - 3 + kLease);
}

TEST_F(P12NotAfter, LateOrderWaitsForNextLease) {
  welcome();
  launch({0, 1});
  EXPECT_EQ(next(), "start j1/0#0; start j1/1#0");
  started(1);
  EXPECT_EQ(next(), "report 1 +j1/1#0");
  now += kLease;
  unstarted(0);
  unstarted(0);  // reported twice
  EXPECT_EQ(next(), "") << "no lease, and nothing to report: it has neither started nor failed";
  EXPECT_EQ(node.waiting(), std::vector<PodId>{pod(0)});
  now += Node::kHoldMs;
  ASSERT_TRUE(node.heartbeat_answered(kTerm, now));
  EXPECT_EQ(next(), "start j1/0#0");
  unstarted(1);
  EXPECT_EQ(next(), "") << "that one runs";
}

TEST_F(P12NotAfter, LateOrderThatIsFencedOrKilledNeverRuns) {
  welcome();
  launch({0, 1});
  EXPECT_EQ(next(), "start j1/0#0; start j1/1#0");
  now += kLease;
  ASSERT_TRUE(node.kill(kTerm, {{pod(1), 0}}, now));
  node.disconnected();
  welcome({pod(0)});
  EXPECT_EQ(next(), "kill j1/1#0 grace=0; kill j1/0#0 grace=0");
  unstarted(0);
  unstarted(1);
  EXPECT_EQ(next(), "report 1 -j1/0#0 fenced/137 -j1/1#0 never-started/0");
  EXPECT_TRUE(node.idle());
}

TEST_F(P12NotAfter, LateOrderOfEarlierAgentIsReturned) {
  node.executor_connected({{.pod = pod(0), .grace_ms = 30'000}}, {}, now);
  welcome();
  EXPECT_EQ(next(), "");
  unstarted(0);
  EXPECT_EQ(next(), "report 1 -j1/0#0 returned/0") << "how it is started is not known here";
}

TEST_F(P12NotAfter, ARestartInPlaceWaitsForALeaseToo) {
  welcome();
  auto plan = std::make_shared<PodPlan>();
  plan->restarts = true;
  ASSERT_TRUE(node.launch(kTerm, {{pod(0), 30'000, plan}}, now));
  EXPECT_EQ(next(), "start j1/0#0");
  started(0);
  ended(0, 1, 5);
  Orders orders = node.next(now);
  ASSERT_EQ(orders.starts.size(), 1u);
  EXPECT_EQ(orders.starts[0].step.instance, 1);
  EXPECT_EQ(orders.starts[0].not_after, now + kLease);
  now += kLease;
  unstarted(0, {0, 1});
  EXPECT_TRUE(node.next(now).starts.empty());
  EXPECT_EQ(node.running(), std::vector<PodId>{pod(0)}) << "it keeps its slot";
  now += Node::kHoldMs;
  ASSERT_TRUE(node.heartbeat_answered(kTerm, now));
  orders = node.next(now);
  ASSERT_EQ(orders.starts.size(), 1u);
  EXPECT_EQ(orders.starts[0].step.instance, 1);
}

struct FenceAfter : NodeTest {
  FenceAfter() { plan->fence_after_ms = kLease / 2; }
  void launch_fenced(uint32_t index) {
    ASSERT_TRUE(node.launch(kTerm, {{pod(index), 30'000, plan}}, now));
  }
  ProcessEnd fenced(uint32_t index) const {
    return {.pod = pod(index),
            .entry = 5,
            .start = {{100 + int(index), now}},
            .exit_code = 143,
            .signal = 15,
            .ended_at = now,
            .fenced = true};
  }
  std::shared_ptr<PodPlan> plan = std::make_shared<PodPlan>();
};

TEST_F(FenceAfter, TheExecutorIsNotifiedOfEachContact) {
  EXPECT_FALSE(node.next(now).contact_at);
  welcome();
  EXPECT_EQ(node.next(now).contact_at, now);
  EXPECT_FALSE(node.next(now).contact_at);
  now += 100;
  ASSERT_TRUE(node.heartbeat_answered(kTerm, now - 60));
  EXPECT_EQ(node.next(now).contact_at, now - 60) << "what counts is when it was sent";
  node.executor_connected({}, {}, now);
  EXPECT_EQ(node.next(now).contact_at, now - 60) << "another executor does not know";
}

TEST_F(FenceAfter, FencedPodStartsOnlyBeforeItsFence) {
  welcome();
  launch_fenced(0);
  Orders orders = node.next(now);
  ASSERT_EQ(orders.starts.size(), 1u);
  EXPECT_EQ(orders.starts[0].not_after, now + kLease / 2) << "before the lease ends";
  now += kLease / 2;
  launch_fenced(1);
  launch({2});
  EXPECT_EQ(next(), "start j1/2#0") << "others start while the lease lasts";
  ended(2, 0, 7);
  ASSERT_TRUE(node.heartbeat_answered(kTerm, now));
  EXPECT_EQ(next(), "start j1/1#0; report 1 -j1/2#0 exited/0");
}

TEST_F(FenceAfter, FencedPodEndsWithoutRestart) {
  plan->containers = 2;
  plan->restarts = true;
  welcome();
  launch_fenced(0);
  EXPECT_EQ(next(), "start j1/0#0; start j1/0#0");
  started(0);
  node.process_started({pod(0), {1, 0}, 101, now});
  next();
  node.process_ended(fenced(0));
  EXPECT_EQ(next(), "kill j1/0#0 grace=30000; report 2 +j1/0#0") << "it is not restarted";
  node.process_ended({.pod = pod(0),
                      .step = {1, 0},
                      .entry = 6,
                      .start = {{101, now}},
                      .exit_code = 143,
                      .signal = 15,
                      .ended_at = now});
  Orders orders = node.next(now);
  ASSERT_EQ(orders.reports.size(), 1u);
  ASSERT_EQ(orders.reports[0].ends.size(), 1u);
  EXPECT_EQ(orders.reports[0].ends[0].cause, EndCause::fenced);
  EXPECT_NE(orders.reports[0].ends[0].message.find("no contact"), std::string::npos);
}

TEST_F(FenceAfter, LaterAgentReportsFencedEnd) {
  for (bool ending : {true, false}) {
    Node later{2};
    ASSERT_TRUE(later.registered({kTerm, {}, kLease}, now));
    if (ending)
      later.executor_connected(
          {{.pod = pod(0), .start = {{100, now}}, .grace_ms = 30'000, .killing = true}}, {}, now);
    ProcessEnd end = fenced(0);
    end.origin.plan = plan;
    if (ending)
      later.process_ended(end);
    else
      later.executor_connected({}, {end}, now);
    const Orders orders = later.next(now);
    ASSERT_EQ(orders.reports.size(), 1u) << ending;
    EXPECT_EQ(orders.reports[0].ends.at(0).cause, EndCause::fenced) << ending;
  }
}

TEST(P13Pulse, UnansweredQuestionsMakeKeeperUnresponsive) {
  Pulse pulse;
  for (uint32_t i = 0; i < Pulse::kSilentMax; ++i) {
    EXPECT_FALSE(pulse.trouble()) << i;
    pulse.asked();
  }
  EXPECT_EQ(pulse.trouble().reason, "KeeperNotResponding");
  pulse.answered("spool: write: No space left on device");
  EXPECT_EQ(pulse.trouble().reason, "SpoolNotWritable");
  EXPECT_NE(pulse.trouble().message.find("No space left"), std::string::npos);
  pulse.asked();
  EXPECT_EQ(pulse.trouble().reason, "SpoolNotWritable") << "the newest answer counts";
  pulse.answered("");
  EXPECT_FALSE(pulse.trouble());
}

TEST_F(NodeTest, P13ExecutorInTroubleStartsNothingAndReturnsWaitingPods) {
  welcome();
  launch({0});
  EXPECT_EQ(next(), "start j1/0#0");
  started(0);
  EXPECT_EQ(next(), "report 1 +j1/0#0");
  node.executor_in_trouble(true);
  launch({1});
  EXPECT_EQ(next(), "");
  node.executor_in_trouble(false);
  EXPECT_EQ(next(), "start j1/1#0") << "it was short";
  started(1);
  EXPECT_EQ(next(), "report 2 +j1/1#0");
  ended(1, 0, 5);
  EXPECT_EQ(next(), "report 3 -j1/1#0 exited/0");
  node.executor_in_trouble(true);
  launch({2});
  now += Node::kWaitMaxMs;
  EXPECT_EQ(next(), "report 4 -j1/2#0 returned/0") << "though a slot is free";
  EXPECT_EQ(node.running(), std::vector<PodId>{pod(0)}) << "what runs stays";
}

TEST_F(NodeTest, P13ExecutorThatCouldNotStartIsRetriedLater) {
  welcome();
  launch({0});
  EXPECT_EQ(next(), "start j1/0#0");
  node.process_ended(
      {.pod = pod(0), .error = "spool: no room", .ended_at = now, .unstarted = true});
  Orders orders = node.next(now);
  EXPECT_EQ(text(orders), "");
  EXPECT_EQ(orders.again_at, now + Node::kHoldMs);
  now += Node::kHoldMs;
  EXPECT_EQ(next(), "start j1/0#0");
}

TEST_F(NodeTest, LeaseOutlivesTheConnection) {
  welcome();
  node.disconnected();
  launch({0});
  now += kLease - 1;
  EXPECT_EQ(next(), "start j1/0#0");
}

TEST_F(NodeTest, LaunchIsIdempotent) {
  welcome();
  launch({0, 0, 1, 2});
  EXPECT_EQ(next(), "start j1/0#0; start j1/1#0");
  launch({0, 1, 2});
  ended(0, 0, 1);
  launch({0});
  EXPECT_EQ(next(), "start j1/2#0; report 1 -j1/0#0 exited/0");
  launch({0});
  ended(1, 0, 2);
  EXPECT_EQ(next(), "report 2 -j1/1#0 exited/0");
}

TEST_F(NodeTest, KillIsAlwaysAnsweredByAnEnd) {
  welcome();
  launch({0, 1, 2});
  EXPECT_EQ(next(), "start j1/0#0; start j1/1#0");
  started(0);
  EXPECT_TRUE(node.kill(kTerm, {{pod(0), 5000}, {pod(2), 5000}, {pod(7), 5000}}, now));
  EXPECT_EQ(
      next(),
      "kill j1/0#0 grace=5000; report 1 +j1/0#0 -j1/2#0 never-started/0 -j1/7#0 never-started/0");
  EXPECT_TRUE(node.kill(kTerm, {{pod(0), 9000}, {pod(7), 0}}, now));
  EXPECT_EQ(next(), "") << "a longer grace, and an end that is under way";
  EXPECT_TRUE(node.kill(kTerm, {{pod(0), 0}}, now));
  EXPECT_EQ(next(), "kill j1/0#0 grace=0");
  ended(0, 137, 4);
  launch({7});
  EXPECT_EQ(next(), "report 2 -j1/0#0 killed/137") << "a launch that its kill overtook";
}

TEST_F(NodeTest, KillThatOvertookTheStartIsRepeated) {
  welcome();
  launch({0});
  next();
  EXPECT_TRUE(node.kill(kTerm, {{pod(0), 10}}, now));
  EXPECT_EQ(next(), "kill j1/0#0 grace=10");
  started(0);
  EXPECT_EQ(next(), "kill j1/0#0 grace=10; report 1 +j1/0#0");
}

TEST_F(NodeTest, NothingStartsWhileAFencedPodLives) {
  welcome();
  launch({0, 1, 2, 3});
  next();
  started(0);
  node.disconnected();
  welcome({pod(0), pod(2), pod(55)});
  EXPECT_EQ(next(), "kill j1/0#0 grace=0; report 1 +j1/0#0 -j1/2#0 fenced/137");
  ended(1, 0, 1);
  EXPECT_EQ(next(), "report 2 -j1/1#0 exited/0") << "a slot is free, yet j1/0#0 lives";
  ended(0, 137, 2);
  EXPECT_EQ(next(), "start j1/3#0; report 3 -j1/0#0 fenced/137");
}

TEST_F(NodeTest, UnackedEndsAreReportedAgain) {
  welcome();
  launch({0, 1});
  next();
  ended(0, 3, 1);
  EXPECT_EQ(next(), "report 1 -j1/0#0 exited/3");
  ended(1, 4, 2);
  EXPECT_EQ(next(), "report 2 -j1/1#0 exited/4");
  node.disconnected();
  EXPECT_EQ(next(), "");
  node.report_returned(1);  // from the old session, so it has no effect
  EXPECT_EQ(node.ended(), (std::vector<PodId>{pod(0), pod(1)}));
  welcome();
  EXPECT_EQ(next(), "report 3 -j1/0#0 exited/3 -j1/1#0 exited/4");
  node.report_returned(3);
  EXPECT_EQ(next(), "forget 1; forget 2");
  EXPECT_TRUE(node.empty());
}

TEST_F(NodeTest, P14RejectedEndsAreReportedAfterNextRegistration) {
  welcome();
  launch({0, 1});
  next();
  ended(0, 3, 1);
  ended(1, 0, 2);
  EXPECT_EQ(next(), "report 1 -j1/0#0 exited/3 -j1/1#0 exited/0");
  node.report_returned(1, {pod(0)});
  EXPECT_EQ(next(), "forget 2") << "nobody would take the other one now";
  EXPECT_EQ(node.ended(), (std::vector<PodId>{pod(0)}));
  node.disconnected();
  welcome();
  EXPECT_EQ(next(), "report 2 -j1/0#0 exited/3");
  node.report_returned(2);
  EXPECT_EQ(next(), "forget 1");
  EXPECT_TRUE(node.empty());
}

TEST_F(NodeTest, ListsAndReportsInFlightAreBounded) {
  Node big(3000);
  ASSERT_TRUE(big.registered({kTerm, {}, kLease}, now));
  std::vector<Launch> pods;
  for (uint32_t i = 0; i < 3000; ++i) pods.push_back({pod(i), 0});
  ASSERT_TRUE(big.launch(kTerm, pods, now));
  EXPECT_EQ(big.next(now).starts.size(), 3000u);
  for (uint32_t i = 0; i < 3000; ++i) {
    big.process_started({pod(i), {}, 1, now});
    big.process_ended({.pod = pod(i), .entry = i + 1, .start = {{1, now}}});
  }
  auto orders = big.next(now);
  ASSERT_EQ(orders.reports.size(), Node::kReportsMax);
  for (const auto& report : orders.reports) {
    EXPECT_EQ(report.ends.size(), kListMax);
    EXPECT_TRUE(report.starts.empty()) << "their ends are known";
  }
  big.report_returned(orders.reports[2].id);
  orders = big.next(now);
  EXPECT_EQ(orders.reports.size(), 1u);
  EXPECT_EQ(orders.forget.size(), kListMax);
}

TEST_F(NodeTest, ObeysOnlyCurrentOrLaterTerm) {
  struct Row {
    Term term;
    bool obeyed;
  };
  Node n(1, {5, 42});
  for (const Row& row : {Row{{4, 42}, false},
                         {{5, 43}, false},
                         {{5, 42}, true},
                         {{7, 1}, true},
                         {{5, 42}, false},
                         {{7, 2}, false},
                         {{7, 1}, true}}) {
    EXPECT_EQ(n.launch(row.term, {}, now), row.obeyed) << row.term.epoch << "/" << row.term.nonce;
    EXPECT_EQ(n.kill(row.term, {}, now), row.obeyed);
    EXPECT_EQ(n.heartbeat_answered(row.term, now), row.obeyed);
    EXPECT_EQ(n.registered({row.term, {}, kLease}, now), row.obeyed);
  }
  EXPECT_EQ(n.term(), (Term{7, 1}));
}

TEST_F(NodeTest, FailedStartIsReportedWithMessage) {
  welcome();
  launch({0});
  next();
  node.process_ended({.pod = pod(0), .entry = 1, .exit_code = 127, .error = "no such file"});
  auto orders = node.next(now);
  EXPECT_EQ(text(orders), "report 1 -j1/0#0 start-failed/127");
  EXPECT_EQ(orders.reports[0].ends[0].message, "no such file");
}

TEST_F(NodeTest, AnEvictedPodEndsAtOnce) {
  welcome();
  launch({0, 1});
  next();
  started(0);
  started(1);
  next();
  ASSERT_EQ(node.processes().size(), 2u);
  EXPECT_EQ(node.processes()[0].first, pod(0));
  node.evict(pod(0), now);
  node.evict(pod(7), now);
  EXPECT_EQ(next(), "kill j1/0#0 grace=0");
  EXPECT_EQ(node.processes().size(), 1u) << "one that goes is not chosen again";
  ended(0, 137, 1);
  EXPECT_EQ(next(), "report 2 -j1/0#0 evicted/137");
}

TEST_F(NodeTest, GivenUpPodIsKilledWithGraceAndReportedWithReason) {
  welcome();
  launch({0, 1});
  next();
  started(0);
  next();
  const std::string why = "index 3 (attempt 1) did not answer for 60 s";
  node.give_up(pod(0), EndCause::worker_unreachable, why, now);
  node.give_up(pod(0), EndCause::worker_unreachable, "again", now);
  node.give_up(pod(1), EndCause::worker_unreachable, "it has not started", now);
  node.give_up(pod(7), EndCause::worker_unreachable, "it is unknown", now);
  EXPECT_EQ(next(), "kill j1/0#0 grace=30000");
  ended(0, 143, 1);
  auto orders = node.next(now);
  EXPECT_EQ(text(orders), "report 2 -j1/0#0 worker-unreachable/143");
  EXPECT_EQ(orders.reports[0].ends[0].message, why);
}

TEST_F(NodeTest, DrainEndsAllPodsAndRefusesNewOnes) {
  welcome();
  launch({0, 1, 2});
  next();
  started(0);
  next();
  node.stop(now);
  EXPECT_EQ(next(),
            "kill j1/0#0 grace=30000; kill j1/1#0 grace=30000; report 2 -j1/2#0 agent-stopped/137");
  launch({3});
  EXPECT_EQ(next(), "report 3 -j1/3#0 agent-stopped/137");
  ended(0, 143, 1);
  ended(1, 0, 2);
  EXPECT_EQ(next(), "report 4 -j1/0#0 agent-stopped/143 -j1/1#0 agent-stopped/0");
  EXPECT_TRUE(node.idle());
  EXPECT_FALSE(node.empty());
}

TEST_F(NodeTest, RestartedAgentTakesItsPodsBack) {
  node.executor_connected({{pod(0), {}, {{100, 500}}, 30'000, false}},
                          {{.pod = pod(1), .entry = 8, .start = {{101, now}}, .exit_code = 2}},
                          now);
  EXPECT_EQ(node.running(), std::vector<PodId>{pod(0)});
  EXPECT_EQ(node.ended(), std::vector<PodId>{pod(1)});
  welcome();
  launch({0, 1, 2, 3});
  EXPECT_EQ(next(), "start j1/2#0; report 1 +j1/0#0 -j1/1#0 exited/2");
}

TEST_F(NodeTest, PodsUnknownToNewKeeperAreReportedAsKeeperLost) {
  Node n(5);
  ASSERT_TRUE(n.registered({kTerm, {}, kLease}, now));
  ASSERT_TRUE(n.launch(kTerm, {{pod(0)}, {pod(1)}, {pod(2)}, {pod(3)}, {pod(4)}}, now));
  n.next(now);
  for (uint32_t i : {0u, 1u, 2u}) n.process_started({pod(i), {}, 1 + int(i), now});
  n.next(now);
  ASSERT_TRUE(n.kill(kTerm, {{pod(4), 0}}, now));
  n.next(now);
  // 0: lost, in the spool. 1: alive. 2: not even in the spool. 3, 4: their orders never arrived.
  n.executor_connected({{pod(1), {}, {{2, now}}, 0, false}},
                       {{.pod = pod(0), .entry = 3, .start = {{1, now}}, .lost = true}}, now);
  EXPECT_EQ(text(n.next(now)),
            "start j1/3#0; report 2 -j1/0#0 keeper-lost/137 -j1/2#0 keeper-lost/137 -j1/4#0 "
            "never-started/0");
}

TEST_F(NodeTest, AnEndNotifiedTwiceIsReportedOnce) {
  welcome();
  launch({0});
  next();
  ended(0, 1, 5);
  ended(0, 1, 5);
  EXPECT_EQ(next(), "report 1 -j1/0#0 exited/1");
  ended(0, 1, 6);  // both entries of the pod are forgotten together
  node.report_returned(1);
  EXPECT_EQ(next(), "forget 5; forget 6");
}

}  // namespace
}  // namespace muster::core::node
