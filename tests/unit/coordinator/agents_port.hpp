// A complete coordinator, and clients of its agents' port that speak the protocol but break its
// rules.
#pragma once

#include "coordinator/coordinator.hpp"
#include "schema/agent.capnp.h"
#include "trust/tls/link.hpp"

#include <capnp/rpc-twoparty.h>
#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#pragma GCC diagnostic ignored \
    "-Wnon-virtual-dtor"  // generated servers are never deleted through a base pointer

namespace muster::coordinator {

class NoAgent final : public wire::Agent::Server {};

struct Caller {
  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyVatNetwork network;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc;
  // Without TLS if `context` is null.
  Caller(kj::AsyncIoContext& io, const std::string& address, kj::TlsContext* context = nullptr)
      : stream(connect(io, address, context)),
        network(*stream, capnp::rpc::twoparty::Side::CLIENT),
        rpc(capnp::makeRpcClient(network)) {}
  static kj::Own<kj::AsyncIoStream> connect(kj::AsyncIoContext& io, const std::string& address,
                                            kj::TlsContext* context) {
    auto at = io.provider->getNetwork().parseAddress(address).wait(io.waitScope);
    if (context != nullptr) at = tls::encrypted(kj::mv(at), *context);
    return at->connect().wait(io.waitScope);
  }
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
  virtual void prepare(Options&) {}
  void SetUp() override {
    std::string path = testing::TempDir() + "muster-port-XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    dir_ = path;
    Options options;
    options.data_dir = dir_ + "/data";
    options.api = options.listen = "127.0.0.1:0";
    prepare(options);
    auto started = Coordinator::start(options);
    ASSERT_TRUE(started.ok()) << started.error().message;
    coordinator_ = std::move(*started);
  }
  void TearDown() override {
    coordinator_.reset();
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
  // Calls on a new connection.
  Answer call(const std::string& node, const Edit& edit = nullptr) {
    Caller one = caller();
    return call(one, node, edit);
  }

  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  std::string dir_;
  std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace muster::coordinator
