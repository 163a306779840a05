// Which container of a pod a user's command joins, also where the agent is of an earlier version.
#include "coordinator/desks/exec_relay.hpp"

#include <gtest/gtest.h>
#include <kj/async-io.h>

#pragma GCC diagnostic ignored \
    "-Wnon-virtual-dtor"  // generated servers are never deleted through a base pointer

namespace muster::coordinator {
namespace {

class NoProcess final : public wire::Process::Server {};

// Starts nothing, and remembers which containers it was asked for.
class RecordingAgent final : public wire::Agent::Server {
 public:
  explicit RecordingAgent(std::vector<int>& asked) : asked_(asked) {}
  kj::Promise<void> exec(ExecContext context) override {
    asked_.push_back(context.getParams().getContainer());
    context.getResults().initResult().initRan().setProcess(kj::heap<NoProcess>());
    return kj::READY_NOW;
  }

 private:
  std::vector<int>& asked_;
};

class ExecRelayTest : public testing::Test {
 protected:
  ~ExecRelayTest() noexcept override = default;

  // "" if it started, else why not. Containers: prepare, main, side.
  std::string start(uint16_t container, std::vector<std::string> command = {"ls"}) {
    auto object = std::make_shared<core::JobObject>();
    object->meta.name = "j";
    object->spec.pod.init_containers.resize(1);
    object->spec.pod.containers.resize(2);
    api::ExecRequest request;
    request.session = {std::string(32, static_cast<char>('a' + started_++)), "default", "j-x", 7};
    request.node = 1;
    request.pod = {7, 0, 0};
    request.object = object;
    request.command = std::move(command);
    request.container = container;
    const auto answer = relay_.start(request).wait(io_.waitScope);
    return answer.ok() ? "" : answer.error().message;
  }

  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  HostDesk hosts_;
  AgentLinks::Takes takes_{.launches = true, .templates = true, .containers = true};
  std::vector<int> asked_;
  std::optional<PermitKey> no_key_;
  int started_ = 0;
  ExecRelay relay_{io_.provider->getTimer(), hosts_,
                   ExecRelay::Nodes{[](NodeId) { return std::string("c1"); },
                                    [this](NodeId) -> kj::Maybe<wire::Agent::Client> {
                                      return wire::Agent::Client(kj::heap<RecordingAgent>(asked_));
                                    },
                                    [](NodeId) { return core::NodeFigures(); },
                                    [this](NodeId) { return takes_; }},
                   ExecRelay::Coordinator{"c", 1, 1, &no_key_, nullptr, nullptr}};
};

TEST_F(ExecRelayTest, AsksForTheContainer) {
  for (const uint16_t container : {0, 1, 2}) EXPECT_EQ(start(container), "");
  EXPECT_EQ(asked_, (std::vector<int>{0, 1, 2}));
}

TEST_F(ExecRelayTest, AnEarlierAgentNeverGetsACommandForAnotherContainer) {
  takes_.containers = false;
  const std::string why =
      "the agent of this node is too old: commands there run in a pod's first container only";
  EXPECT_EQ(start(0), why);
  EXPECT_EQ(start(1), "");
  EXPECT_EQ(start(2), why);
  EXPECT_EQ(asked_, std::vector<int>{1});
  EXPECT_EQ(start(2, {}), "") << "a command that was started before is found by its session";
}

}  // namespace
}  // namespace muster::coordinator
