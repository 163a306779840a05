// A fake coordinator for a real agent, over a real connection.
#pragma once

#include "agent/agent.hpp"
#include "agent/link/wire.hpp"
#include "base/clock.hpp"
#include "tests/unit/agent/temp_dir.hpp"
#include "trust/tls/proof.hpp"

#include <capnp/rpc-twoparty.h>
#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <algorithm>
#include <functional>
#include <map>
#include <schema/agent.capnp.h>
#include <set>
#include <string>
#include <vector>

#pragma GCC diagnostic ignored \
    "-Wnon-virtual-dtor"  // generated servers are never deleted through a base pointer

namespace muster::agent {

inline constexpr Millis kDeadline = 20'000;

struct Seen {  // one registration
  std::string node, work_dir_id;
  std::set<PodId> running, waiting, ended;
  uint64_t epoch = 0;
  std::string cluster_key;
};

// What the fake coordinator has received, and how it behaves.
struct World {
  std::vector<Seen> registrations;
  std::map<PodId, int> ends;  // how often each was reported
  std::map<PodId, wire::EndCause> causes;
  std::set<PodId> starts;
  std::vector<std::string> reported;        // starts: "#INDEX restarts=1 ready"
  std::map<PodId, int> pids;                // the latest
  std::map<PodId, std::string> containers;  // of the ends: "0,3 x2,-" (-: never ran)
  std::map<PodId, int> codes;
  std::map<std::string, uint64_t> resources;  // of the latest hello
  int code = -1;                              // exit code of the last end
  int heartbeats = 0, left = 0;
  bool silent = false;  // heartbeats are not answered
  size_t list_max = 0;
  bool ack = true;            // if false, reports never return
  std::vector<PodId> launch;  // with the answer to the next report
  std::string refuse;
  wire::Refusal::Why why = wire::Refusal::Why::NOT_SERVING;
  uint64_t epoch = 3, nonce = 11;
  std::string cluster = "c1", key;  // no key: of a version that cannot prove that it has one
  int challenges = 0;
  std::vector<PodId> end;
  kj::Maybe<wire::Agent::Client> agent;  // of the latest registration
  std::string missing;                   // why pods that use config maps must wait
  uint64_t config_version = 1;
  int configs_asked = 0, configs_sent = 0;
};

// Job 7, whose pods use a config map.
inline void write_config_job(wire::PodTemplate::Builder job) {
  job.setJob(7);
  job.setGeneration(1);
  job.setJobName("j");
  job.setJobUid("u");
  job.setGraceMs(30'000);
  auto container = job.initContainers(1)[0];
  container.initCommand(1).set(0, "true");
  container.initEnvFrom(1)[0].setConfigMap("settings");
}

class FakeSession final : public wire::Session::Server {
 public:
  explicit FakeSession(World& world) : world_(world) {}
  kj::Promise<void> heartbeat(HeartbeatContext context) override {
    ++world_.heartbeats;
    if (world_.silent) return kj::NEVER_DONE;
    auto results = context.getResults();
    results.setEpoch(world_.epoch);
    results.setNonce(world_.nonce);
    return kj::READY_NOW;
  }
  kj::Promise<void> report(ReportContext context) override {
    auto params = context.getParams();
    for (auto start : params.getStarts()) {
      constexpr const char* kReadiness[] = {"ready", "initializing", "not_ready"};
      PodId pod = read_pod(start.getPod());
      world_.starts.insert(pod);
      world_.pids[pod] = static_cast<int>(start.getPid());
      world_.reported.push_back("#" + std::to_string(pod.index) +
                                " restarts=" + std::to_string(start.getRestarts()) + " " +
                                kReadiness[static_cast<size_t>(start.getReadiness())]);
    }
    for (auto end : params.getEnds()) {
      PodId pod = read_pod(end.getPod());
      ++world_.ends[pod];
      world_.causes[pod] = end.getCause();
      world_.code = world_.codes[pod] = end.getExitCode();
      std::string ends;
      for (auto one : end.getContainers()) {
        ends += (ends.empty() ? "" : ",") +
                (one.getStarted() != 0 ? std::to_string(one.getExitCode()) : "-");
        if (one.getRestarts() > 0) ends += " x" + std::to_string(one.getRestarts());
      }
      world_.containers[pod] = ends;
    }
    world_.list_max = std::max<size_t>(world_.list_max, params.getEnds().size());
    if (!world_.ack) return kj::NEVER_DONE;
    const auto next = std::exchange(world_.launch, {});
    auto launches = context.getResults().initLaunches(static_cast<unsigned>(next.size()));
    for (unsigned i = 0; i < next.size(); ++i) {
      write_pod(next[i], launches[i].initPod());
      launches[i].setGeneration(1);
    }
    return kj::READY_NOW;
  }
  kj::Promise<void> configs(ConfigsContext context) override {
    ++world_.configs_asked;
    auto results = context.getResults();
    results.setVersion(world_.config_version);
    results.setMissing(world_.missing);
    if (!world_.missing.empty() || context.getParams().getHave() == world_.config_version)
      return kj::READY_NOW;
    ++world_.configs_sent;
    auto job = results.initTemplate();
    write_config_job(job);
    auto map = job.initConfigs(1)[0];
    map.setName("settings");
    auto entry = map.initEntries(1)[0];
    entry.setKey("k");
    entry.setValue(kj::StringPtr("v").asBytes());
    return kj::READY_NOW;
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
  kj::Promise<void> prove(ProveContext context) override {
    if (world_.key.empty()) KJ_UNIMPLEMENTED("an earlier version");
    ++world_.challenges;
    const auto bytes = context.getParams().getChallenge().asChars();
    const std::string challenge(bytes.begin(), bytes.size());
    context.getResults().setClusterId(world_.cluster);
    context.getResults().setProof(tls::proof_of_key(world_.key, world_.cluster, challenge));
    return kj::READY_NOW;
  }
  kj::Promise<void> register_(RegisterContext context) override {
    auto hello = context.getParams().getHello();
    EXPECT_TRUE(hello.getTakesLaunches());
    world_.resources.clear();
    for (auto one : hello.getResources()) {
      world_.resources[to_string(one.getName())] = one.getCount();
    }
    auto set = [](capnp::List<wire::PodId>::Reader in) {
      auto pods = read_pods(in);
      return std::set<PodId>(pods.begin(), pods.end());
    };
    world_.registrations.push_back({to_string(hello.getNode()), to_string(hello.getWorkDirId()),
                                    set(hello.getRunning()), set(hello.getWaiting()),
                                    set(hello.getEnded()), hello.getHighestEpoch(),
                                    to_string(hello.getClusterKey())});
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
    welcome.setClusterId(world_.cluster);
    welcome.setClusterKey(world_.key);
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

class FakeCoordinatorTest : public testing::Test {
 protected:
  ~FakeCoordinatorTest() noexcept override = default;

  void SetUp() override {
    auto address = io.provider->getNetwork()
                       .parseAddress(("unix:" + temp / "socket").c_str())
                       .wait(io.waitScope);
    port = address->listen();
    accepting = accept().eagerlyEvaluate(nullptr);
  }

  AgentOptions options() {
    return {.coordinators = {"unix:" + temp / "socket"},
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

  // Runs the loop until `holds` is true; fails the test after kDeadline.
  void wait_for(const char* what, const std::function<bool()>& holds) {
    Millis deadline = boot_now() + kDeadline;
    while (!holds()) {
      ASSERT_LT(boot_now(), deadline) << what;
      io.provider->getTimer().afterDelay(1 * kj::MILLISECONDS).wait(io.waitScope);
    }
  }

  void launch(uint32_t from, uint32_t count, uint64_t epoch = 3, uint64_t nonce = 11) {
    launch(
        from, count, [](wire::PodTemplate::Builder) {}, epoch, nonce);
  }

  // `edit` adapts the template.
  void launch(uint32_t from, uint32_t count,
              const std::function<void(wire::PodTemplate::Builder)>& edit, uint64_t epoch = 3,
              uint64_t nonce = 11) {
    auto request = KJ_ASSERT_NONNULL(world.agent).launchRequest();
    request.setEpoch(epoch);
    request.setNonce(nonce);
    auto job = request.initTemplates(1)[0];
    job.setJob(launched);
    job.setGeneration(1);
    job.setJobName("j");
    job.setJobUid("u");
    job.setGraceMs(30'000);
    job.initContainers(1)[0].initCommand(1).set(0, "true");
    edit(job);
    auto pods = request.initPods(count);
    for (uint32_t i = 0; i < count; ++i) {
      write_pod({launched, from + i, 0}, pods[i].initPod());
      pods[i].setGeneration(1);
    }
    request.send().wait(io.waitScope);
  }

  void disconnect() {
    world.agent = nullptr;
    peers.clear();
  }

  JobId launched = 7;
  TempDir temp;
  kj::AsyncIoContext io = kj::setupAsyncIo();
  World world;
  kj::Own<kj::ConnectionReceiver> port;
  std::vector<kj::Own<Peer>> peers;
  kj::Promise<void> accepting = nullptr;
};

}  // namespace muster::agent
