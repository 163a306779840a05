// Pods of several processes: an agent with a keeper and real processes, against a fake coordinator.
#include "tests/unit/agent/fake_coordinator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <unistd.h>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class PodsTest : public FakeCoordinatorTest {
 protected:
  ~PodsTest() noexcept override = default;

  void SetUp() override {
    FakeCoordinatorTest::SetUp();
    setenv("MUSTER_KEEPER_IDLE_MS", "300", 1);
    unsetenv("MUSTER_KEEPER_CGROUP");
    connect();
  }
  void TearDown() override {
    agent->stop_now();
    EXPECT_EQ(*agent->join(), 0);
  }

  // Starts a new agent after the old one has left its pods running.
  void connect() {
    agent.reset();
    world.agent = nullptr;
    AgentOptions real = options();
    real.hollow = false;
    real.resources = {{"nvidia.com/gpu", 4}};
    agent.emplace(real);
    wait_for("registration", [&] { return world.agent != nullptr; });
  }

  static void shell(wire::Container::Builder container, const std::string& name,
                    const std::string& script, const std::string& dir) {
    container.setName(name);
    container.setWorkingDir(dir);
    auto command = container.initCommand(3);
    command.set(0, "sh");
    command.set(1, "-c");
    command.set(2, script);
  }
  // Launches a pod with these containers.
  void run(std::vector<std::string> init, std::vector<std::string> apps,
           const std::function<void(wire::PodTemplate::Builder)>& edit = {}) {
    launch(0, 1, [&](wire::PodTemplate::Builder job) {
      auto inits = job.initInitContainers(static_cast<unsigned>(init.size()));
      for (unsigned i = 0; i < init.size(); ++i) {
        shell(inits[i], "init" + std::to_string(i), init[i], temp / "");
      }
      auto containers = job.initContainers(static_cast<unsigned>(apps.size()));
      for (unsigned i = 0; i < apps.size(); ++i) {
        shell(containers[i], "app" + std::to_string(i), apps[i], temp / "");
      }
      if (edit) edit(job);
    });
  }
  void kill(Millis grace_ms) {
    auto request = KJ_ASSERT_NONNULL(world.agent).killRequest();
    request.setEpoch(3);
    request.setNonce(11);
    auto kill = request.initKills(1)[0];
    write_pod(kPod, kill.initPod());
    kill.setGraceMs(grace_ms);
    request.send().wait(io.waitScope);
  }
  std::string file(const std::string& name) {
    std::ifstream in(temp / name);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  void wait_for_file(const std::string& name) {
    wait_for(name.c_str(), [&] { return file(name).find('\n') != std::string::npos; });
  }
  void wait_for_end() {
    wait_for("the end", [&] { return world.ends.contains(kPod); });
  }
  bool was_reported(const std::string& what) {
    return std::find(world.reported.begin(), world.reported.end(), what) != world.reported.end();
  }
  std::string log_of(const std::string& container) {
    auto request = KJ_ASSERT_NONNULL(world.agent).readLogRequest();
    write_pod(kPod, request.initPod());
    request.setContainer(container);
    request.setLimit(1000);
    auto name = request.initTemplate();
    name.setJobUid("u");
    for (const auto& entry : fs::directory_iterator(temp / "work/logs/u")) {
      std::string path = entry.path().filename().string();
      name.setPodName(path.substr(0, path.find('.')));
    }
    auto answer = request.send().wait(io.waitScope);
    auto data = answer.getData().asChars();
    return {data.begin(), data.size()};
  }

  static constexpr PodId kPod{7, 0, 0};
  std::optional<AgentThread> agent;
};

void restart_fast(wire::PodTemplate::Builder job) {
  job.setRestartPolicy("OnFailure");
  job.setRestartDelayMs(1);
}

TEST_F(PodsTest, AFailedContainerIsRestartedUntilItSucceeds) {
  run({}, {"echo $$ >> runs; echo run; test $(wc -l < runs) -ge 4"}, restart_fast);
  wait_for_end();
  EXPECT_EQ(world.codes[kPod], 0);
  EXPECT_EQ(world.causes[kPod], wire::EndCause::EXITED);
  EXPECT_EQ(world.containers[kPod], "0 x3");
  EXPECT_EQ(log_of("app0"), "run\nrun\nrun\nrun\n") << "one log for all its instances";
}

TEST_F(PodsTest, InitContainersRunInOrderThenOthersTogether) {
  // Each of the two waits for the other.
  run({"echo one >> order", "echo two >> order"},
      {"echo $$ > a; until test -s b; do sleep 0.01; done; exit 3",
       "echo $$ > b; until test -s a; do sleep 0.01; done; pwd"});
  wait_for_end();
  EXPECT_EQ(file("order"), "one\ntwo\n");
  EXPECT_EQ(world.codes[kPod], 3);
  EXPECT_EQ(world.containers[kPod], "0,0,3,0");
  EXPECT_EQ(fs::canonical(log_of("app1").substr(0, log_of("app1").size() - 1)),
            fs::canonical(temp / ""));
}

TEST_F(PodsTest, OrphansOfContainerEndWithIt) {
  run({}, {"sleep 1000 & echo $! > left; exit 0", "until test -s go; do sleep 0.01; done; exit 5"});
  wait_for_file("left");
  wait_for("not ready", [&] { return was_reported("#0 restarts=0 not_ready"); });
  wait_for("its child's end", [&] { return ::kill(std::atoi(file("left").c_str()), 0) != 0; });
  EXPECT_FALSE(world.ends.contains(kPod));
  std::ofstream(temp / "go") << "go\n";
  wait_for_end();
  EXPECT_EQ(world.containers[kPod], "0,5");
}

TEST_F(PodsTest, KillReachesAllContainers) {
  run({},
      {"echo $$ > a; exec sleep 1000", "trap '' TERM; echo $$ > b; while :; do sleep 0.01; done"});
  wait_for_file("a");
  wait_for_file("b");
  kill(100);
  wait_for_end();
  EXPECT_EQ(world.codes[kPod], 143);
  EXPECT_EQ(world.containers[kPod], "143,137");
  EXPECT_EQ(world.causes[kPod], wire::EndCause::KILLED);
}

TEST_F(PodsTest, AKillEndsADelayAtOnce) {
  run({}, {"echo $$ >> runs; exit 9"}, [](wire::PodTemplate::Builder job) {
    job.setRestartPolicy("OnFailure");
    job.setRestartDelayMs(3'600'000);
  });
  wait_for("the delay", [&] { return was_reported("#0 restarts=1 not_ready"); });
  kill(30'000);
  wait_for_end();
  EXPECT_EQ(world.codes[kPod], 9);
  EXPECT_EQ(world.containers[kPod], "9 x1");
}

TEST_F(PodsTest, RestartedAgentResumesPod) {
  run({"echo $$ >> init"},
      {"echo $$ >> runs; until test -s go; do sleep 0.01; done; test -s ok", "exit 0"},
      restart_fast);
  wait_for_file("runs");
  wait_for("not ready", [&] { return was_reported("#0 restarts=0 not_ready"); });
  connect();
  EXPECT_EQ(world.registrations.back().running, (std::set<PodId>{kPod}));
  std::ofstream(temp / "go") << "go\n";
  wait_for("restarts by the new agent", [&] {
    return was_reported("#0 restarts=2 ready") || was_reported("#0 restarts=2 not_ready");
  });
  connect();
  std::ofstream(temp / "ok") << "ok\n";
  wait_for_end();
  EXPECT_EQ(world.codes[kPod], 0);
  EXPECT_THAT(world.containers[kPod], testing::StartsWith("0,0 x"));
  std::string init = file("init");
  EXPECT_EQ(std::count(init.begin(), init.end(), '\n'), 1) << "ran once";
}

TEST_F(PodsTest, ADeadlineOutlivesTheAgent) {
  run({}, {"echo $$ > up; exec sleep 1000"},
      [](wire::PodTemplate::Builder job) { job.setActiveDeadlineMs(1'500); });
  wait_for_file("up");
  Millis up = boot_now();
  connect();
  wait_for_end();
  EXPECT_EQ(world.causes[kPod], wire::EndCause::DEADLINE);
  EXPECT_EQ(world.codes[kPod], 143);
  EXPECT_GE(boot_now() - up, 1'000);
}

TEST_F(PodsTest, DevicesAreInTheEnvironmentAndKept) {
  run({}, {"echo $CUDA_VISIBLE_DEVICES/$MUSTER_RESOURCE_nvidia_com_gpu > devices; exec sleep 1000"},
      [](wire::PodTemplate::Builder job) {
        auto want = job.getContainers()[0].initResources(1)[0];
        want.setName("nvidia.com/gpu");
        want.setCount(3);
      });
  wait_for_file("devices");
  EXPECT_EQ(file("devices"), "0,1,2/0,1,2\n");
  connect();
  launch(1, 1, [&](wire::PodTemplate::Builder job) {
    job.setGeneration(1);
    auto container = job.initContainers(1)[0];
    shell(container, "c", "echo $NVIDIA_VISIBLE_DEVICES > others", temp / "");
    auto want = container.initResources(1)[0];
    want.setName("nvidia.com/gpu");
    want.setCount(1);
  });
  wait_for("another pod's end", [&] { return world.ends.contains({7, 1, 0}); });
  EXPECT_EQ(file("others"), "3\n") << "the first pod has kept its own";
}

}  // namespace
}  // namespace muster::agent
