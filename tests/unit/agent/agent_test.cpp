// A hollow agent against a fake coordinator, over a real connection.
#include "tests/unit/agent/fake_coordinator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace muster::agent {
namespace {

class AgentTest : public FakeCoordinatorTest {
 protected:
  ~AgentTest() noexcept override = default;
};

TEST_F(AgentTest, EveryEndIsReportedOnce) {
  AgentThread agent(options());
  wait_for("registration", [&] { return world.agent != nullptr; });
  for (uint32_t from = 0; from < 1000; from += 500) launch(from, 500);
  wait_for("1000 ends", [&] { return world.ends.size() >= 1000; });
  for (const auto& [pod, times] : world.ends) EXPECT_EQ(times, 1) << to_string(pod);
  EXPECT_EQ(world.code, 3);
  EXPECT_LE(world.list_max, 512u);
  wait_for("heartbeats", [&] { return world.heartbeats >= 3; });
  agent.drain();
  wait_for("leave", [&] { return world.left == 1; });
  EXPECT_EQ(*agent.join(), 0);
}

TEST_F(AgentTest, StartsPodsLaunchedInReplyToReport) {
  AgentThread agent(options());
  wait_for("registration", [&] { return world.agent != nullptr; });
  world.launch = {{7, 1, 0}};
  launch(0, 1);
  wait_for("the second", [&] { return world.ends.contains({7, 1, 0}); });
  world.launch = {{7, 2, 0}};
  launch(3, 1);
  wait_for("the third", [&] { return world.ends.contains({7, 2, 0}); });
  EXPECT_EQ((world.ends[{7, 1, 0}]), 1);
  EXPECT_EQ(world.registrations.size(), 1u);
}

TEST_F(AgentTest, LaunchesOfAnUnknownTemplateEndTheConnection) {
  AgentThread agent(options());
  wait_for("registration", [&] { return world.agent != nullptr; });
  world.launch = {{8, 0, 0}};
  launch(0, 1);
  wait_for("re-registration", [&] { return world.registrations.size() == 2; });
  EXPECT_FALSE(world.ends.contains({8, 0, 0}));
}

TEST_F(AgentTest, ReportsUnacknowledgedEndsAgainAfterReconnect) {
  AgentThread agent(options());
  wait_for("registration", [&] { return world.agent != nullptr; });
  EXPECT_EQ(world.registrations[0].node, "n1");
  EXPECT_EQ(world.registrations[0].epoch, 0u);
  world.ack = false;
  launch(0, 100);
  wait_for("ends", [&] { return !world.ends.empty(); });
  // Reports never return here, and at most four are in flight, so some ends are still unreported.
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

TEST_F(AgentTest, EndsPodsFencedByReregistration) {
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
  EXPECT_EQ((world.causes[{7, 0, 0}]), wire::EndCause::FENCED);
  EXPECT_EQ((world.causes[{7, 3, 0}]), wire::EndCause::FENCED);
  EXPECT_EQ(world.registrations[1].running, (std::set<PodId>{{7, 0, 0}, {7, 1, 0}}));
  EXPECT_EQ(world.registrations[1].waiting, (std::set<PodId>{{7, 2, 0}, {7, 3, 0}}));
  wait_for("the slot is used", [&] { return world.starts.contains({7, 2, 0}); });
}

TEST_F(AgentTest, PodsWaitForTheirConfigMaps) {
  world.missing = "configmap \"settings\" not found";
  AgentOptions many = options();
  many.slots = 200;
  AgentThread agent(many);
  wait_for("registration", [&] { return world.agent != nullptr; });
  launch(0, 100, write_config_job);
  launched = 8;
  launch(0, 20);
  wait_for("the others", [&] { return world.ends.size() == 20; });
  auto request = KJ_ASSERT_NONNULL(world.agent).killRequest();
  request.setEpoch(3);
  request.setNonce(11);
  write_pod({7, 5, 0}, request.initKills(1)[0].initPod());
  request.send().wait(io.waitScope);
  wait_for("the killed one", [&] { return world.ends.size() == 21; });
  EXPECT_EQ((world.causes[{7, 5, 0}]), wire::EndCause::NEVER_STARTED);
  EXPECT_TRUE(world.starts.empty() || world.starts.begin()->job == 8);
  EXPECT_EQ(world.configs_sent, 0);
  disconnect();
  wait_for("re-registration",
           [&] { return world.registrations.size() == 2 && world.agent != nullptr; });
  world.missing.clear();
  wait_for("all", [&] { return world.ends.size() == 120; });
  EXPECT_EQ(world.configs_sent, 1) << "once, for all pods";
  for (const auto& [pod, times] : world.ends) EXPECT_EQ(times, 1) << to_string(pod);
}

TEST_F(AgentTest, UnchangedConfigMapsAreNotSentAgain) {
  AgentOptions few = options();
  few.slots = 2;
  few.hollow_duration_ms = 50;
  AgentThread agent(few);
  wait_for("registration", [&] { return world.agent != nullptr; });
  launch(0, 50, write_config_job);
  wait_for("a second question", [&] { return world.configs_asked >= 2; });
  EXPECT_EQ(world.configs_sent, 1);
  world.config_version = 2;
  wait_for("the new data", [&] { return world.configs_sent == 2; });
  wait_for("all", [&] { return world.ends.size() == 50; });
  EXPECT_LT(world.configs_asked, 50) << "not for each pod";
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
  for (const auto& [pod, cause] : world.causes) EXPECT_EQ(cause, wire::EndCause::AGENT_STOPPED);
  wait_for("leave", [&] { return world.left == 1; });
  EXPECT_EQ(*agent.join(), 0);
}

TEST_F(AgentTest, RefusesOrdersOfPastEpoch) {
  AgentThread agent(options());
  wait_for("registration", [&] { return world.agent != nullptr; });
  EXPECT_ANY_THROW(launch(0, 1, 2, 11));
  EXPECT_ANY_THROW(launch(0, 1, 3, 12));
  launch(1, 1);
  wait_for("the end", [&] { return world.ends.size() == 1; });
  EXPECT_TRUE(world.ends.contains({7, 1, 0}));
  world.epoch = 2;  // a coordinator with old data
  disconnect();
  wait_for("it is left alone", [&] { return world.registrations.size() >= 2; });
  world.epoch = 4;
  size_t before = world.registrations.size();
  wait_for("another try", [&] { return world.registrations.size() > before; });
  EXPECT_EQ(world.registrations.back().epoch, 3u);
}

TEST_F(AgentTest, PermanentRefusalEndsAgent) {
  world.refuse = "this is cluster c2";
  world.why = wire::Refusal::Why::OTHER_CLUSTER;
  AgentThread agent(options());
  wait_for("registration", [&] { return !world.registrations.empty(); });
  auto result = agent.join();
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("this is cluster c2"), std::string::npos);
}

TEST_F(AgentTest, P01RegistersOnlyWithACoordinatorThatHasTheKeyOfItsCluster) {
  world.key = std::string(64, 'a');
  AgentThread agent(options());
  wait_for("registration", [&] { return world.agent != nullptr; });
  EXPECT_EQ(world.challenges, 0) << "a new work-dir has no key yet";
  wait_for("the key in the work-dir", [&] {
    std::ifstream identity(temp / "work/identity");
    std::stringstream text;
    text << identity.rdbuf();
    return text.str().find("cluster-key " + world.key) != std::string::npos;
  });
  disconnect();
  wait_for("another registration", [&] { return world.registrations.size() == 2; });
  EXPECT_EQ(world.challenges, 1);
  EXPECT_EQ(world.registrations.back().cluster_key, world.key);
  world.key = std::string(64, 'b');
  disconnect();
  wait_for("two more tries", [&] { return world.challenges >= 3; });
  EXPECT_EQ(world.registrations.size(), 2u) << "it told an impostor nothing";
  world.key = std::string(64, 'a');
  wait_for("the real one is back", [&] { return world.registrations.size() == 3; });
}

TEST_F(AgentTest, P01DoesNotRevealItsClustersKeyToAnotherCluster) {
  world.key = std::string(64, 'a');
  AgentThread agent(options());
  wait_for("registration", [&] { return world.agent != nullptr; });
  world.cluster = "c2";
  world.key = std::string(64, 'b');
  disconnect();
  wait_for("another registration", [&] { return world.registrations.size() == 2; });
  EXPECT_EQ(world.registrations.back().cluster_key, "");
}

TEST_F(AgentTest, P01DoesNotConnectToAnotherMachineWithoutTls) {
  AgentOptions remote = options();
  remote.coordinators = {"unix:" + temp / "socket", "203.0.113.1:7118"};
  auto result = AgentThread(remote).join();
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, testing::HasSubstr("--coordinator 203.0.113.1:7118"));
  EXPECT_THAT(result.error().message, testing::HasSubstr("--token-file"));
}

// --- several coordinators

class ManyCoordinators : public AgentTest {
 protected:
  AgentOptions options_of(std::vector<std::string> addresses) {
    AgentOptions with = options();
    with.coordinators = std::move(addresses);
    return with;
  }
  std::string here() { return "unix:" + temp / "socket"; }
  std::string nowhere() { return "unix:" + temp / "nobody"; }
};

TEST_F(ManyCoordinators, TheNextIsTriedAtOnce) {
  std::vector<std::string> many;  // with a pause after each, they would take longer than kDeadline
  for (int i = 0; i < 100; ++i) many.push_back(nowhere() + std::to_string(i));
  many.push_back(here());
  AgentThread agent(options_of(many));
  wait_for("registration", [&] { return world.agent != nullptr; });
  disconnect();
  wait_for("another registration", [&] { return world.registrations.size() == 2; });
}

// A coordinator that does not serve is no reason to wait: the other is tried in the same round.
TEST_F(ManyCoordinators, OneThatDoesNotServeIsPassedOver) {
  World follower;
  follower.refuse = "it does not lead";
  auto other = io.provider->getNetwork()
                   .parseAddress(("unix:" + temp / "follower").c_str())
                   .wait(io.waitScope)
                   ->listen();
  std::vector<kj::Own<Peer>> links;
  std::function<kj::Promise<void>()> take = [&]() -> kj::Promise<void> {
    return other->accept().then([&](kj::Own<kj::AsyncIoStream> stream) {
      links.push_back(kj::heap<Peer>(kj::mv(stream), kj::heap<FakeCoordinator>(follower)));
      return take();
    });
  };
  auto taking = take().eagerlyEvaluate(nullptr);
  AgentThread agent(options_of({"unix:" + temp / "follower", here()}));
  wait_for("registration", [&] { return world.agent != nullptr; });
  EXPECT_EQ(follower.registrations.size(), 1u);
  disconnect();
  wait_for("another registration", [&] { return world.registrations.size() == 2; });
  EXPECT_EQ(follower.registrations.size(), 1u) << "a round begins at the one that last served";
}

// Another one may have taken over. An only coordinator is waited for as long as the lease lasts.
TEST_F(ManyCoordinators, ASilentOneIsLeftSoon) {
  world.silent = true;
  AgentThread agent(options_of({here(), nowhere()}));
  wait_for("registration", [&] { return world.agent != nullptr; });
  wait_for("another registration", [&] { return world.registrations.size() == 2; });
}

TEST_F(ManyCoordinators, AStateIsSaidOnce) {
  testing::internal::CaptureStdout();
  {
    world.refuse = "folding jobs";
    AgentThread agent(options_of({nowhere(), here()}));
    wait_for("three tries", [&] { return world.registrations.size() >= 3; });
    world.refuse.clear();
    wait_for("registration", [&] { return world.agent != nullptr; });
  }
  const std::string log = testing::internal::GetCapturedStdout();
  size_t lines = 0;
  for (size_t at = 0; (at = log.find("no connection to", at)) != log.npos; ++at) ++lines;
  EXPECT_EQ(lines, 1u) << log;
  EXPECT_THAT(log, testing::HasSubstr("no connection to " + nowhere() + ": "));
  EXPECT_THAT(log, testing::HasSubstr("; " + here() + ": it rejects node n1: folding jobs"));
}

TEST_F(AgentTest, RetriesRegistrationUntilCoordinatorServes) {
  world.refuse = "folding jobs";
  AgentThread agent(options());
  wait_for("two tries", [&] { return world.registrations.size() >= 2; });
  world.refuse.clear();
  wait_for("registration", [&] { return world.agent != nullptr; });
}

TEST_F(AgentTest, HollowContainersAreRestartedAndReported) {
  AgentThread agent(options());
  wait_for("registration", [&] { return world.agent != nullptr; });
  launch(0, 1, [](wire::PodTemplate::Builder job) {
    job.setRestartPolicy("OnFailure");
    job.setRestartDelayMs(1);
  });
  wait_for("restarts", [&] {
    return std::any_of(
        world.reported.begin(), world.reported.end(), [](const std::string& reported) {
          return reported.starts_with("#0 restarts=4 ");  // the pod may have ended since
        });
  });
  auto request = KJ_ASSERT_NONNULL(world.agent).killRequest();
  request.setEpoch(3);
  request.setNonce(11);
  auto kill = request.initKills(1)[0];
  write_pod({7, 0, 0}, kill.initPod());
  request.send().wait(io.waitScope);
  wait_for("the end", [&] { return world.ends.size() == 1; });
  EXPECT_EQ((world.causes[{7, 0, 0}]), wire::EndCause::KILLED);
  EXPECT_THAT((world.containers[{7, 0, 0}]), testing::HasSubstr(" x"));
}

// Both containers of a pod that waits for a slot. A hollow executor refuses every command.
TEST_F(AgentTest, CommandsInTheFirstContainerAreLeftToTheExecutor) {
  AgentOptions full = options();
  full.slots = 1;
  full.hollow_duration_ms = 3'600'000;
  AgentThread agent(full);
  wait_for("registration", [&] { return world.agent != nullptr; });
  auto two = [](wire::PodTemplate::Builder job) {
    auto containers = job.initContainers(2);
    for (unsigned i : {0u, 1u}) {
      containers[i].setName(i == 0 ? "main" : "other");
      containers[i].initCommand(1).set(0, "true");
    }
  };
  launch(0, 2, two);
  wait_for("the first pod", [&] { return world.starts.contains({7, 0, 0}); });
  auto refusal = [&](PodId pod, int32_t container) {
    auto request = KJ_ASSERT_NONNULL(world.agent).execRequest();
    request.setEpoch(3);
    request.setNonce(11);
    auto job = request.initTemplate();
    job.setJob(7);
    job.setGeneration(1);
    job.setJobName("j");
    job.setJobUid("u");
    two(job);
    write_pod(pod, request.initPod());
    request.setSession("0123456789abcdef0123456789abcdef");
    request.initCommand(1).set(0, "true");
    request.setContainer(container);
    auto answer = request.send().wait(io.waitScope);
    return to_string(answer.getResult().getRefused().getMessage());
  };
  const std::string asked = "this node starts no processes";
  for (int32_t container : {-1, 0}) EXPECT_EQ(refusal({7, 1, 0}, container), asked);
  EXPECT_EQ(refusal({7, 1, 0}, 1), "container other is not running");
  EXPECT_EQ(refusal({7, 0, 0}, 1), asked) << "it runs there";
}

TEST_F(AgentTest, ReportsExtendedResourcesAndNeverOvercommitsThem) {
  AgentOptions with = options();
  with.resources = {{"nvidia.com/gpu", 3}};
  with.hollow_duration_ms = 3'600'000;
  AgentThread agent(with);
  wait_for("registration", [&] { return world.agent != nullptr; });
  EXPECT_EQ(world.resources, (std::map<std::string, uint64_t>{{"nvidia.com/gpu", 3}}));
  launch(0, 2, [](wire::PodTemplate::Builder job) {
    auto want = job.getContainers()[0].initResources(1)[0];
    want.setName("nvidia.com/gpu");
    want.setCount(2);
  });
  wait_for("the first", [&] { return world.starts.contains({7, 0, 0}); });
  int heartbeats = world.heartbeats;
  wait_for("some turns", [&] { return world.heartbeats >= heartbeats + 3; });
  EXPECT_FALSE(world.starts.contains({7, 1, 0})) << "one is left, it wants two";
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
