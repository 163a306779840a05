// The agents' port of a whole coordinator, as somebody meets it who speaks the protocol and keeps
// no rule of it.
#include "coordinator/coordinator.hpp"
#include "schema/agent.capnp.h"

#include <capnp/rpc-twoparty.h>
#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#pragma GCC diagnostic ignored \
    "-Wnon-virtual-dtor"  // of generated servers: nobody deletes one by its base

namespace muster::coordinator {
namespace {

class NoAgent final : public wire::Agent::Server {};

// One connection.
struct Caller {
  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyVatNetwork network;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc;
  Caller(kj::AsyncIoContext& io, const std::string& address)
      : stream(io.provider->getNetwork()
                   .parseAddress(address)
                   .wait(io.waitScope)
                   ->connect()
                   .wait(io.waitScope)),
        network(*stream, capnp::rpc::twoparty::Side::CLIENT),
        rpc(capnp::makeRpcClient(network)) {}
  wire::Coordinator::Client coordinator() {
    capnp::MallocMessageBuilder message;
    auto vat = message.getRoot<capnp::rpc::twoparty::VatId>();
    vat.setSide(capnp::rpc::twoparty::Side::SERVER);
    return rpc.bootstrap(vat).castAs<wire::Coordinator>();
  }
};

class AgentsPortTest : public testing::Test {
 protected:
  using Edit = std::function<void(wire::Hello::Builder)>;
  using Answer = capnp::Response<wire::Coordinator::RegisterResults>;

  ~AgentsPortTest() noexcept override = default;
  void SetUp() override {
    std::string path = testing::TempDir() + "muster-port-XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    dir_ = path;
    Options options;
    options.data_dir = dir_ + "/data";
    options.api = options.listen = "127.0.0.1:0";
    auto started = Coordinator::start(options);
    ASSERT_TRUE(started.ok()) << started.error().message;
    coordinator_ = std::move(*started);
  }
  void TearDown() override {
    if (coordinator_) coordinator_->stop();
    std::filesystem::remove_all(dir_);
  }

  Answer call(Caller& caller, const std::string& node, const Edit& edit = nullptr) {
    auto request = caller.coordinator().registerRequest();
    auto hello = request.initHello();
    hello.setProtocol(wire::PROTOCOL_VERSION);
    hello.setNode(node);
    hello.setWorkDirId("dir of " + node);
    hello.setBootId("boot");
    hello.setSlots(1);
    if (edit) edit(hello);
    request.setAgent(kj::heap<NoAgent>());
    return request.send().wait(io_.waitScope);
  }
  Caller caller() { return {io_, coordinator_->listen_address()}; }
  // On a connection of its own.
  Answer call(const std::string& node, const Edit& edit = nullptr) {
    Caller one = caller();
    return call(one, node, edit);
  }

  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  std::string dir_;
  std::unique_ptr<Coordinator> coordinator_;
};

using Why = wire::Refusal::Why;

class P02StrangersHello : public AgentsPortTest {};

TEST_F(P02StrangersHello, WithAPodOfAnUnknownJobStopsNobody) {
  for (const char* cluster : {"", "0123456789abcdef"}) {
    auto answer = call("n1", [cluster](wire::Hello::Builder hello) {
      hello.setClusterId(cluster);
      hello.initRunning(1)[0].setJob(77);
    });
    ASSERT_TRUE(answer.getResult().isRefused());
    EXPECT_EQ(answer.getResult().getRefused().getWhy(), Why::OTHER_CLUSTER);
    EXPECT_EQ(answer.getResult().getRefused().getEnd().size(), 0u);
  }
  EXPECT_TRUE(call("n1").getResult().isWelcome());
}

class P03NodeName : public AgentsPortTest {};

TEST_F(P03NodeName, IsNotGivenToWhoLacksTheSecret) {
  Caller holder = caller();
  auto secret = [](const char* text) {
    return [text](wire::Hello::Builder hello) { hello.setSecret(text); };
  };
  auto welcome = call(holder, "n1", secret("abc"));
  ASSERT_TRUE(welcome.getResult().isWelcome());
  EXPECT_EQ(welcome.getResult().getWelcome().getWelcome().getClusterKey().size(), 64u);
  for (const char* other : {"", "abd"}) {
    auto answer = call("n1", secret(other));
    ASSERT_TRUE(answer.getResult().isRefused());
    EXPECT_EQ(answer.getResult().getRefused().getWhy(), Why::NAME_TAKEN);
    std::string message = answer.getResult().getRefused().getMessage();
    EXPECT_EQ(message.find("dir of n1"), std::string::npos) << message;
  }
  EXPECT_TRUE(call("n1", secret("abc")).getResult().isWelcome());
}

}  // namespace
}  // namespace muster::coordinator
