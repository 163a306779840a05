// Which launches leave with the answer to a report, and which by a call.
#include "coordinator/links/agent_links.hpp"

#include "coordinator/links/wire_convert.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kj/async-io.h>

#pragma GCC diagnostic ignored \
    "-Wnon-virtual-dtor"  // generated servers are never deleted through a base pointer

namespace muster::coordinator {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr NodeId kNode = 1;
constexpr uint64_t kLink = 5;

struct Calls {
  std::vector<PodId> launched, killed;
  std::vector<std::pair<PodId, int64_t>> limits;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> accepting;
  bool old = false;     // an agent that does not know limit
  bool accepts = true;  // else a launch is in flight until accepting is fulfilled
};

class FakeAgent final : public wire::Agent::Server {
 public:
  explicit FakeAgent(Calls& calls) : calls_(calls) {}
  kj::Promise<void> launch(LaunchContext context) override {
    for (auto one : context.getParams().getPods())
      calls_.launched.push_back(read_pod(one.getPod()));
    if (calls_.accepts) return kj::READY_NOW;
    auto paf = kj::newPromiseAndFulfiller<void>();
    calls_.accepting.push_back(kj::mv(paf.fulfiller));
    return kj::mv(paf.promise);
  }
  kj::Promise<void> kill(KillContext context) override {
    for (auto one : context.getParams().getKills()) calls_.killed.push_back(read_pod(one.getPod()));
    return kj::READY_NOW;
  }
  kj::Promise<void> limit(LimitContext context) override {
    if (calls_.old) return wire::Agent::Server::limit(context);
    for (auto one : context.getParams().getLimits())
      calls_.limits.emplace_back(read_pod(one.getPod()), one.getLimitMs());
    return kj::READY_NOW;
  }

 private:
  Calls& calls_;
};

class AgentLinksTest : public testing::Test, kj::TaskSet::ErrorHandler {
 protected:
  AgentLinksTest() { connect(true); }
  ~AgentLinksTest() noexcept override = default;

  void connect(bool takes_launches) {
    links_.connect(kNode, {kLink, "n1", {}, {takes_launches}, kj::heap<FakeAgent>(calls_)});
  }
  Order launch(uint32_t index, bool by_call = false) {
    return {Order::What::launch, kNode, kLink, {7, index, 0}, object_, by_call, 0};
  }
  Order kill(uint32_t index) {
    return {Order::What::kill, kNode, 0, {7, index, 0}, nullptr, true, 0};
  }
  Order limit(uint32_t index, Millis limit_ms) {
    return {Order::What::limit, kNode, 0, {7, index, 0}, nullptr, true, limit_ms};
  }
  std::vector<uint32_t> take(uint64_t number = kLink) {
    std::vector<uint32_t> indexes;
    for (const Order& o : links_.take_launches(kNode, number)) indexes.push_back(o.pod.index);
    return indexes;
  }
  std::vector<uint32_t> launched() {
    io_.waitScope.poll();
    std::vector<uint32_t> indexes;
    for (PodId pod : std::exchange(calls_.launched, {})) indexes.push_back(pod.index);
    return indexes;
  }
  // The agent has the template from now on.
  void launch_the_first() {
    links_.deliver({launch(0)});
    EXPECT_THAT(launched(), ElementsAre(0));
  }

  Calls calls_;
  AgentLinks& links() { return links_; }

 private:
  void taskFailed(kj::Exception&& e) override { ADD_FAILURE() << e.getDescription().cStr(); }

  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  std::shared_ptr<core::JobObject> object_ = [] {
    auto object = std::make_shared<core::JobObject>();
    object->meta.generation = 1;
    return object;
  }();
  RpcOptions options_ = [] {
    RpcOptions options;
    options.last_commit = [] { return uint64_t{1}; };
    return options;
  }();
  Replies replies_{std::make_shared<Door>()};
  kj::TaskSet tasks_{*this};
  RpcContext context_{options_, replies_, tasks_, io_.provider->getTimer()};
  AgentLinks links_{context_};
};

TEST_F(AgentLinksTest, LaunchesOfKnownTemplateLeaveInReply) {
  launch_the_first();
  links().deliver({launch(1), launch(2)});
  EXPECT_THAT(take(), ElementsAre(1, 2));
  EXPECT_THAT(launched(), IsEmpty());
  EXPECT_THAT(take(), IsEmpty()) << "once";
}

TEST_F(AgentLinksTest, LaunchesLeaveByCallWithoutReply) {
  launch_the_first();
  links().deliver({launch(1)});
  links().deliver({launch(2)});
  EXPECT_THAT(launched(), ElementsAre(1, 2));
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(AgentLinksTest, ReplyDoesNotOvertakeCall) {
  links().deliver({launch(0)});
  EXPECT_THAT(take(), IsEmpty()) << "its template has not been sent";
  calls_.accepts = false;
  EXPECT_THAT(launched(), ElementsAre(0));
  links().deliver({launch(1)});
  EXPECT_THAT(take(), IsEmpty()) << "a list is in flight";
  EXPECT_THAT(launched(), ElementsAre(1));
  for (auto& accepting : calls_.accepting) accepting->fulfill();
  EXPECT_THAT(launched(), IsEmpty());
  links().deliver({launch(2), kill(2), launch(3)});
  EXPECT_THAT(take(), ElementsAre(2));
  EXPECT_THAT(launched(), ElementsAre(3));
  EXPECT_EQ(calls_.killed, std::vector<PodId>{(PodId{7, 2, 0})});
}

TEST_F(AgentLinksTest, LimitsFollowTheLaunchesBeforeThem) {
  launch_the_first();
  links().deliver({launch(1), limit(0, 60'000), limit(1, 0), launch(2)});
  EXPECT_THAT(take(), ElementsAre(1)) << "no launch overtakes a limit";
  EXPECT_THAT(launched(), ElementsAre(2));
  EXPECT_THAT(calls_.limits, ElementsAre(std::pair(PodId{7, 0, 0}, int64_t{60'000}),
                                         std::pair(PodId{7, 1, 0}, int64_t{0})));
  calls_.old = true;
  links().deliver({limit(1, 5), launch(3)});
  EXPECT_THAT(launched(), ElementsAre(3));
}

TEST_F(AgentLinksTest, LaunchThatNeedsCallDoesNotLeaveInReply) {
  launch_the_first();
  links().deliver({launch(1, true)});
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_THAT(launched(), ElementsAre(1));
}

TEST_F(AgentLinksTest, ReplyOnOldConnectionTakesNoLaunches) {
  launch_the_first();
  links().deliver({launch(1)});
  EXPECT_THAT(take(kLink + 1), IsEmpty());
  EXPECT_THAT(launched(), ElementsAre(1));
}

TEST_F(AgentLinksTest, AgentWithoutSupportGetsLaunchesByCall) {
  connect(false);
  launch_the_first();
  links().deliver({launch(1)});
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_THAT(launched(), ElementsAre(1));
}

}  // namespace
}  // namespace muster::coordinator
