// A hollow agent against a coordinator that the test plays, over a real connection.
#include "agent/agent.hpp"

#include "agent/wire.hpp"
#include "base/clock.hpp"
#include "tests/unit/agent/temp_dir.hpp"

#include <capnp/rpc-twoparty.h>
#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <functional>
#include <map>
#include <schema/agent.capnp.h>
#include <set>
#include <string>
#include <vector>

#pragma GCC diagnostic ignored \
    "-Wnon-virtual-dtor"  // of generated servers: nobody deletes one by its base

namespace muster::agent {
namespace {

constexpr Millis kDeadline = 20'000;

struct Seen {  // of one registration
  std::string node, work_dir_id;
  std::set<PodId> running, waiting, ended;
  uint64_t epoch = 0;
};

// What the test's coordinator knows and how it is to behave.
struct World {
  std::vector<Seen> registrations;
  std::map<PodId, int> ends;  // how often each was told
  std::map<PodId, wire::PodEnd::Cause> causes;
  std::set<PodId> starts;
  int code = -1;  // exit code of the last end
  int heartbeats = 0, left = 0;
  size_t list_max = 0;
  bool ack = true;  // else reports never return
  std::string refuse;
  wire::Refusal::Why why = wire::Refusal::Why::NOT_SERVING;
  uint64_t epoch = 3, nonce = 11;
  std::vector<PodId> end;
  kj::Maybe<wire::Agent::Client> agent;  // of the newest registration
};

class FakeSession final : public wire::Session::Server {
 public:
  explicit FakeSession(World& world) : world_(world) {}
  kj::Promise<void> heartbeat(HeartbeatContext context) override {
    ++world_.heartbeats;
    auto results = context.getResults();
    results.setEpoch(world_.epoch);
    results.setNonce(world_.nonce);
    return kj::READY_NOW;
  }
  kj::Promise<void> report(ReportContext context) override {
    auto params = context.getParams();
    for (auto start : params.getStarts()) world_.starts.insert(read_pod(start.getPod()));
    for (auto end : params.getEnds()) {
      PodId pod = read_pod(end.getPod());
      ++world_.ends[pod];
      world_.causes[pod] = end.getCause();
      world_.code = end.getExitCode();
    }
    world_.list_max = std::max<size_t>(world_.list_max, params.getEnds().size());
    if (world_.ack) return kj::READY_NOW;
    return kj::NEVER_DONE;
  }
  kj::Promise<void> leave(LeaveContext) override {
    ++world_.left;
    return kj::READY_NOW;
  }

 private:
  World& world_;
};

class FakeCoordinator final : public wire::Coordinator::Server {
 public:
  explicit FakeCoordinator(World& world) : world_(world) {}
  kj::Promise<void> register_(RegisterContext context) override {
    auto hello = context.getParams().getHello();
    auto set = [](capnp::List<wire::PodId>::Reader in) {
      auto pods = read_pods(in);
      return std::set<PodId>(pods.begin(), pods.end());
    };
    world_.registrations.push_back({to_string(hello.getNode()), to_string(hello.getWorkDirId()),
                                    set(hello.getRunning()), set(hello.getWaiting()),
                                    set(hello.getEnded()), hello.getHighestEpoch()});
    auto result = context.getResults().initResult();
    if (!world_.refuse.empty()) {
      auto refused = result.initRefused();
      refused.setWhy(world_.why);
      refused.setMessage(world_.refuse);
      return kj::READY_NOW;
    }
    world_.agent = context.getParams().getAgent();
    auto in = result.initWelcome();
    in.setSession(kj::heap<FakeSession>(world_));
    auto welcome = in.initWelcome();
    welcome.setClusterId("c1");
    welcome.setEpoch(world_.epoch);
    welcome.setNonce(world_.nonce);
    welcome.setNodeId(1);
    welcome.setHeartbeatMs(50);
    welcome.setLeaseMs(20'000);
    write_pods(world_.end, welcome.initEnd(static_cast<unsigned>(world_.end.size())));
    return kj::READY_NOW;
  }

 private:
  World& world_;
};

struct Peer {
  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyVatNetwork net;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc;
  Peer(kj::Own<kj::AsyncIoStream> s, capnp::Capability::Client boot)
      : stream(kj::mv(s)),
        net(*stream, capnp::rpc::twoparty::Side::SERVER),
        rpc(capnp::makeRpcServer(net, kj::mv(boot))) {}
};

class AgentTest : public testing::Test {
 protected:
  ~AgentTest() noexcept override = default;

  void SetUp() override {
    auto address = io.provider->getNetwork()
                       .parseAddress(("unix:" + temp / "socket").c_str())
                       .wait(io.waitScope);
    port = address->listen();
    accepting = accept().eagerlyEvaluate(nullptr);
  }

  AgentOptions options() {
    return {.coordinator = "unix:" + temp / "socket",
            .name = "n1",
            .slots = 50,
            .work_dir = temp / "work",
            .hollow = true,
            .hollow_exit_code = 3};
  }

  kj::Promise<void> accept() {
    return port->accept().then([this](kj::Own<kj::AsyncIoStream> stream) {
      peers.push_back(kj::heap<Peer>(kj::mv(stream), kj::heap<FakeCoordinator>(world)));
      return accept();
    });
  }

  // The loop runs until it holds, or the test fails.
  void wait_for(const char* what, const std::function<bool()>& holds) {
    Millis deadline = boot_now() + kDeadline;
    while (!holds()) {
      ASSERT_LT(boot_now(), deadline) << what;
      io.provider->getTimer().afterDelay(1 * kj::MILLISECONDS).wait(io.waitScope);
    }
  }

  void launch(uint32_t from, uint32_t count, uint64_t epoch = 3, uint64_t nonce = 11) {
    auto request = KJ_ASSERT_NONNULL(world.agent).launchRequest();
    request.setEpoch(epoch);
    request.setNonce(nonce);
    auto job = request.initTemplates(1)[0];
    job.setJob(7);
    job.setGeneration(1);
    job.setJobName("j");
    job.setJobUid("u");
    job.initContainers(1)[0].initCommand(1).set(0, "true");
    auto pods = request.initPods(count);
    for (uint32_t i = 0; i < count; ++i) {
      write_pod({7, from + i, 0}, pods[i].initPod());
      pods[i].setGeneration(1);
    }
    request.send().wait(io.waitScope);
  }

  void disconnect() {
    world.agent = nullptr;
    peers.clear();
  }

  TempDir temp;
  kj::AsyncIoContext io = kj::setupAsyncIo();
  World world;
  kj::Own<kj::ConnectionReceiver> port;
  std::vector<kj::Own<Peer>> peers;
  kj::Promise<void> accepting = nullptr;
};

TEST_F(AgentTest, EveryEndIsReportedOnce) {
  AgentThread agent(options());
  wait_for("registration", [&] { return world.agent != nullptr; });
  for (uint32_t from = 0; from < 1000; from += 500) launch(from, 500);
  // started after it
  wait_for("1000 ends", [&] { return world.ends.size() >= 1000; });
  for (const auto& [pod, times] : world.ends) EXPECT_EQ(times, 1) << to_string(pod);
  EXPECT_EQ(world.code, 3);
  EXPECT_LE(world.list_max, 512u);
  wait_for("heartbeats", [&] { return world.heartbeats >= 3; });
  agent.drain();
  wait_for("leave", [&] { return world.left == 1; });
  EXPECT_EQ(*agent.join(), 0);
}

TEST_F(AgentTest, WhatWasNotAckedIsReportedAgain) {
  AgentThread agent(options());
  wait_for("registration", [&] { return world.agent != nullptr; });
  EXPECT_EQ(world.registrations[0].node, "n1");
  EXPECT_EQ(world.registrations[0].epoch, 0u);
  world.ack = false;
  launch(0, 100);
  wait_for("ends", [&] { return !world.ends.empty(); });
  // All have ended by then: each report is at most what one turn brought, and four may be under
  // way.
  disconnect();
  wait_for("re-registration",
           [&] { return world.registrations.size() == 2 && world.agent != nullptr; });
  const Seen& again = world.registrations[1];
  EXPECT_EQ(again.epoch, 3u);
  EXPECT_EQ(again.work_dir_id, world.registrations[0].work_dir_id);
  EXPECT_EQ(again.running.size() + again.waiting.size() + again.ended.size(), 100u);
  for (const auto& [pod, times] : world.ends) {
    EXPECT_TRUE(again.ended.contains(pod)) << to_string(pod) << " was told " << times << " times";
  }
  world.ack = true;
  disconnect();
  wait_for("all ends", [&] { return world.ends.size() == 100; });
  agent.stop_now();
  EXPECT_EQ(*agent.join(), 0);
}

TEST_F(AgentTest, PodsThatAreNotOpenAreEndedFirst) {
  AgentOptions slow = options();
  slow.slots = 2;
  slow.hollow_duration_ms = 3'600'000;
  AgentThread agent(slow);
  wait_for("registration", [&] { return world.agent != nullptr; });
  launch(0, 4);
  wait_for("starts", [&] { return world.starts.size() == 2; });
  world.end = {{7, 0, 0}, {7, 3, 0}};
  disconnect();
  wait_for("fenced ends", [&] { return world.ends.size() == 2; });
  EXPECT_EQ((world.causes[{7, 0, 0}]), wire::PodEnd::Cause::FENCED);
  EXPECT_EQ((world.causes[{7, 3, 0}]), wire::PodEnd::Cause::FENCED);
  EXPECT_EQ(world.registrations[1].running, (std::set<PodId>{{7, 0, 0}, {7, 1, 0}}));
  EXPECT_EQ(world.registrations[1].waiting, (std::set<PodId>{{7, 2, 0}, {7, 3, 0}}));
  wait_for("the slot is used", [&] { return world.starts.contains({7, 2, 0}); });
}

TEST_F(AgentTest, DrainEndsPodsAndReportsThem) {
  AgentOptions slow = options();
  slow.slots = 2;
  slow.hollow_duration_ms = 3'600'000;
  AgentThread agent(slow);
  wait_for("registration", [&] { return world.agent != nullptr; });
  launch(0, 3);
  wait_for("starts", [&] { return world.starts.size() == 2; });
  agent.drain();
  wait_for("ends", [&] { return world.ends.size() == 3; });
  for (const auto& [pod, cause] : world.causes)
    EXPECT_EQ(cause, wire::PodEnd::Cause::AGENT_STOPPED);
  wait_for("leave", [&] { return world.left == 1; });
  EXPECT_EQ(*agent.join(), 0);
}

TEST_F(AgentTest, ObeysNoPastEpoch) {
  AgentThread agent(options());
  wait_for("registration", [&] { return world.agent != nullptr; });
  EXPECT_ANY_THROW(launch(0, 1, 2, 11));
  EXPECT_ANY_THROW(launch(0, 1, 3, 12));
  launch(1, 1);
  wait_for("the end", [&] { return world.ends.size() == 1; });
  EXPECT_TRUE(world.ends.contains({7, 1, 0}));
  world.epoch = 2;  // a coordinator on old data
  disconnect();
  wait_for("it is left alone", [&] { return world.registrations.size() >= 2; });
  world.epoch = 4;
  size_t before = world.registrations.size();
  wait_for("another try", [&] { return world.registrations.size() > before; });
  EXPECT_EQ(world.registrations.back().epoch, 3u);
}

TEST_F(AgentTest, RefusalsThatNothingCuresEndIt) {
  world.refuse = "this is cluster c2";
  world.why = wire::Refusal::Why::OTHER_CLUSTER;
  AgentThread agent(options());
  wait_for("registration", [&] { return !world.registrations.empty(); });
  auto result = agent.join();
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("this is cluster c2"), std::string::npos);
}

TEST_F(AgentTest, NotServingIsTriedAgain) {
  world.refuse = "folding jobs";
  AgentThread agent(options());
  wait_for("two tries", [&] { return world.registrations.size() >= 2; });
  world.refuse.clear();
  wait_for("registration", [&] { return world.agent != nullptr; });
}

TEST_F(AgentTest, SecondAgentOnAWorkDirIsRefused) {
  AgentThread agent(options());
  wait_for("registration", [&] { return world.agent != nullptr; });
  AgentThread second(options());
  auto result = second.join();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Errc::conflict);
}

}  // namespace
}  // namespace muster::agent
