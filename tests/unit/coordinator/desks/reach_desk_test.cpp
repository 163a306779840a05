// When the nodes of an MPI job try each other, and what becomes of what they find.
#include "coordinator/desks/reach_desk.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kj/async-io.h>
#include <kj/timer.h>

#include <optional>
#include <set>
#include <utility>

#pragma GCC diagnostic ignored \
    "-Wnon-virtual-dtor"  // generated servers are never deleted through a base pointer

namespace muster::coordinator {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr JobId kRing = 7;

// What the nodes c1, c2, … do; their ports are 1001, 1002, …
struct Wires {
  std::set<std::pair<NodeId, NodeId>> cut;  // the first does not reach the second
  std::set<NodeId> old, silent;             // agents that do not know the calls, or do not answer
  std::vector<std::pair<NodeId, NodeId>> tries;
  std::function<void()> before_answer;  // of reach
};

class FakePeer final : public wire::Agent::Server {
 public:
  FakePeer(Wires& wires, NodeId node) : wires_(wires), node_(node) {}
  kj::Promise<void> meet(MeetContext context) override {
    if (wires_.old.contains(node_)) return wire::Agent::Server::meet(context);
    if (wires_.silent.contains(node_)) return kj::NEVER_DONE;
    context.getResults().setPort(static_cast<uint16_t>(1'000 + node_));
    context.getResults().setGreeting("hello");
    return kj::READY_NOW;
  }
  kj::Promise<void> reach(ReachContext context) override {
    const auto peers = context.getParams().getPeers();
    auto failures = context.getResults().initFailures(peers.size());
    for (unsigned i = 0; i < peers.size(); ++i) {
      EXPECT_EQ(peers[i].getGreeting(), "hello");
      const NodeId to = static_cast<NodeId>(peers[i].getPort() - 1'000);
      EXPECT_EQ(std::string(peers[i].getIp().cStr()), "10.0.0." + std::to_string(to));
      wires_.tries.emplace_back(node_, to);
      if (wires_.cut.contains({node_, to})) failures.set(i, "no route to host");
    }
    if (wires_.before_answer) std::exchange(wires_.before_answer, nullptr)();
    return kj::READY_NOW;
  }

 private:
  Wires& wires_;
  const NodeId node_;
};

class ReachDeskTest : public testing::Test, kj::TaskSet::ErrorHandler {
 protected:
  ~ReachDeskTest() noexcept override = default;
  void connect(NodeId node) {
    core::NodeFigures figures;
    figures.ip = "10.0.0." + std::to_string(node);
    links_.connect(
        node,
        {++number_, "c" + std::to_string(node), figures, {}, kj::heap<FakePeer>(wires_, node)});
    desk_.connected(node);
  }
  void hosts(const std::vector<NodeId>& nodes, const std::string& mpi = "openmpi") {
    auto object = std::make_shared<core::JobObject>();
    object->meta.ns = "default";
    object->meta.name = "ring";
    object->meta.annotations["muster.dev/mpi"] = mpi;
    core::HostList list{object, static_cast<uint32_t>(nodes.size()), {}, {}};
    for (uint32_t i = 0; i < nodes.size(); ++i) list.hosts.push_back({{i, 0}, nodes[i], false});
    desk_.set(kRing, list);
    pass(200);
  }
  void pass(Millis ms) {
    io_.waitScope.poll();
    timer_.advanceTo(timer_.now() + ms * kj::MILLISECONDS);
    io_.waitScope.poll();
  }
  void next_round() { pass(ReachDesk::kReachEachMs); }
  // What a launcher that goes to other pods now waits for.
  kj::Promise<void> launcher() { return desk_.first_try(kRing); }
  bool may_go(kj::Promise<void>& launcher) { return launcher.poll(io_.waitScope); }
  // The pairs that were tried since the last call.
  std::vector<std::pair<NodeId, NodeId>> tries() {
    auto all = std::exchange(wires_.tries, {});
    std::ranges::sort(all);
    return all;
  }
  // What was shown since the last call: for each change the pairs, "-" if nothing is known any
  // more.
  std::vector<std::string> shown() { return std::exchange(shown_, {}); }

  Wires wires_;
  ReachDesk& desk() { return desk_; }
  AgentLinks& links() { return links_; }

 private:
  void taskFailed(kj::Exception&& e) override { ADD_FAILURE() << e.getDescription().cStr(); }
  void show(JobId job, const std::optional<std::vector<core::Unreached>>& pairs) {
    EXPECT_EQ(job, kRing);
    std::string text = pairs ? "" : "-";
    if (pairs)
      for (const core::Unreached& one : *pairs)
        text += one.from.node + ">" + one.to.node + " (" + one.to.ip + ": " + one.why + ")";
    shown_.push_back(text);
  }

  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  kj::TimerImpl timer_{kj::origin<kj::TimePoint>()};
  RpcOptions options_ = [this] {
    RpcOptions options;
    options.show_unreached = [this](JobId job, const auto& pairs) { show(job, pairs); };
    return options;
  }();
  Replies replies_{std::make_shared<Door>()};
  kj::TaskSet tasks_{*this};
  RpcContext context_{options_, replies_, tasks_, timer_};
  AgentLinks links_{context_};
  ReachDesk desk_{context_, links_};
  uint64_t number_ = 0;
  std::vector<std::string> shown_;
};

TEST_F(ReachDeskTest, NodesTryEachOtherAtTheStartAndAgain) {
  for (NodeId node : {1, 2, 3}) connect(node);
  hosts({2, 1, 2, 3});
  const std::vector<std::pair<NodeId, NodeId>> all = {{1, 2}, {1, 3}, {2, 1},
                                                      {2, 3}, {3, 1}, {3, 2}};
  EXPECT_EQ(tries(), all);
  EXPECT_THAT(tries(), IsEmpty());
  next_round();
  EXPECT_EQ(tries(), all);
  EXPECT_THAT(shown(), IsEmpty()) << "all is well";
  hosts({});
  next_round();
  EXPECT_THAT(tries(), IsEmpty()) << "the job is over";
  EXPECT_THAT(shown(), IsEmpty());
}

TEST_F(ReachDeskTest, ALauncherWaitsForTheFirstTry) {
  for (NodeId node : {1, 2}) connect(node);
  auto of_no_job = launcher();
  EXPECT_TRUE(may_go(of_no_job));
  wires_.silent = {2};
  hosts({1, 2});
  auto waiting = launcher();
  EXPECT_FALSE(may_go(waiting));
  wires_.silent = {};
  connect(2);  // again
  pass(200);
  EXPECT_EQ(tries().size(), 2u);
  EXPECT_TRUE(may_go(waiting));
  auto later = launcher();
  EXPECT_TRUE(may_go(later));
}

TEST_F(ReachDeskTest, ALauncherDoesNotWaitForLong) {
  for (NodeId node : {1, 2}) connect(node);
  wires_.silent = {2};
  hosts({1, 2});
  auto waiting = launcher();
  pass(ReachDesk::kFirstTryMs - 201);
  EXPECT_FALSE(may_go(waiting));
  pass(1);
  EXPECT_TRUE(may_go(waiting));
  auto later = launcher();
  EXPECT_TRUE(may_go(later));
  wires_.silent = {1};
  hosts({1, 3});
  auto of_other_nodes = launcher();
  EXPECT_FALSE(may_go(of_other_nodes));
  hosts({});
  EXPECT_TRUE(may_go(of_other_nodes)) << "nobody tries any more";
}

TEST_F(ReachDeskTest, AChangeIsShownOnce) {
  for (NodeId node : {1, 2}) connect(node);
  wires_.cut = {{1, 2}};
  hosts({1, 2});
  EXPECT_THAT(shown(), ElementsAre("c1>c2 (10.0.0.2: no route to host)"));
  next_round();
  EXPECT_THAT(shown(), IsEmpty());
  wires_.cut = {};
  next_round();
  EXPECT_THAT(shown(), ElementsAre("")) << "they reach each other again";
  wires_.cut = {{2, 1}};
  next_round();
  EXPECT_THAT(shown(), ElementsAre("c2>c1 (10.0.0.1: no route to host)"));
  hosts({1, 2});
  EXPECT_THAT(shown(), IsEmpty()) << "the same nodes";
  hosts({});
  EXPECT_THAT(shown(), ElementsAre("-")) << "not known, since nobody has tried";
}

TEST_F(ReachDeskTest, ANodeThatIsReplacedIsForgotten) {
  for (NodeId node : {1, 2, 3}) connect(node);
  wires_.cut = {{1, 2}};
  hosts({1, 2});
  EXPECT_THAT(shown(), ElementsAre("c1>c2 (10.0.0.2: no route to host)"));
  hosts({1, 3});
  EXPECT_THAT(shown(), ElementsAre("-"));
}

TEST_F(ReachDeskTest, NodesThatCannotBeAskedAreLeftOut) {
  for (NodeId node : {1, 2, 3, 4}) connect(node);
  wires_.old = {3};
  wires_.silent = {4};
  hosts({1, 2, 3, 4, 5});  // 5 is not connected
  pass(5'000);             // until 4 is not waited for any longer
  EXPECT_THAT(tries(), ElementsAre(std::pair(1, 2), std::pair(2, 1)));
  connect(5);
  pass(200);
  pass(5'000);
  EXPECT_EQ(tries().size(), 6u) << "at once";
  EXPECT_THAT(shown(), IsEmpty());
}

TEST_F(ReachDeskTest, WhatIsFoundWhileAnAgentRestartsSaysNothing) {
  for (NodeId node : {1, 2}) connect(node);
  wires_.cut = {{1, 2}, {2, 1}};
  wires_.before_answer = [this] { links().disconnect(2); };
  hosts({1, 2});
  EXPECT_EQ(tries().size(), 2u);
  EXPECT_THAT(shown(), IsEmpty());
}

TEST_F(ReachDeskTest, JobsWithTheirOwnNetworkAreLeftAlone) {
  for (NodeId node : {1, 2}) connect(node);
  hosts({1, 2}, "openmpi,iface=ib0");
  next_round();
  EXPECT_THAT(tries(), IsEmpty());
}

}  // namespace
}  // namespace muster::coordinator
