// How a port admits connections: failing accept(), limits, and which connection makes room.
#include "api/http/admission.hpp"

#include <gtest/gtest.h>
#include <kj/debug.h>

#include <string>

namespace muster::api {
namespace {

// A port whose accept() follows a script: f fails in the promise, F fails at once, c connects.
class Port final : public kj::ConnectionReceiver {
 public:
  Port(kj::AsyncIoContext& io, std::string script) : io_(io), script_(std::move(script)) {}
  kj::Promise<kj::Own<kj::AsyncIoStream>> accept() override {
    if (at_ == script_.size()) return kj::NEVER_DONE;
    switch (script_[at_++]) {
      case 'f':
        return KJ_EXCEPTION(FAILED, "accept: Too many open files");
      case 'F':
        kj::throwFatalException(KJ_EXCEPTION(FAILED, "accept: Too many open files"));
      default: {
        auto pipe = io_.provider->newTwoWayPipe();
        return kj::mv(pipe.ends[0]);
      }
    }
  }
  kj::uint getPort() override { return 0; }

 private:
  kj::AsyncIoContext& io_;
  std::string script_;
  size_t at_ = 0;
};

TEST(P06Accept, ContinuesAfterAnyErrorOfAccept) {
  auto io = kj::setupAsyncIo();
  kj::Timer& timer = io.provider->getTimer();
  Port port(io, "cfFffc" + std::string(100, 'c') + "!fc");
  int came = 0;
  Acceptor acceptor(timer, "a port", [&](kj::Own<kj::AsyncIoStream>) {
    if (++came == 2) kj::throwFatalException(KJ_EXCEPTION(FAILED, "no descriptor for this one"));
  });
  auto running = acceptor.run(port).eagerlyEvaluate(
      [](kj::Exception&& e) { ADD_FAILURE() << "it has ended: " << e.getDescription().cStr(); });
  const auto deadline = timer.now() + 20 * kj::SECONDS;
  while (came < 104 && timer.now() < deadline)
    timer.afterDelay(1 * kj::MILLISECONDS).wait(io.waitScope);
  EXPECT_EQ(came, 104);
}

TEST(P06Crowd, OnePeerLeavesRoomForOthers) {
  Crowd crowd(8);
  uint64_t id = 0;
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(crowd.make_room("uid 1").ok);
    crowd.enter(++id, "uid 1");
    crowd.busy(id);
  }
  EXPECT_FALSE(crowd.make_room("uid 1").ok) << "three quarters, all in use";
  for (int i = 0; i < 2; ++i) {
    const auto room = crowd.make_room("uid 2");
    ASSERT_TRUE(room.ok);
    EXPECT_FALSE(room.instead);
    crowd.enter(++id, "uid 2");
    crowd.busy(id);
  }
  EXPECT_FALSE(crowd.make_room("uid 2").ok) << "all in use";
  crowd.leave(1);
  EXPECT_TRUE(crowd.make_room("uid 1").ok);
  EXPECT_EQ(crowd.size(), 7u);
}

TEST(P06Crowd, LongestIdleConnectionOfBiggestPeerIsClosedForAnother) {
  Crowd crowd(8);
  crowd.enter(100, "uid 2");
  for (uint64_t id = 1; id <= 6; ++id) crowd.enter(id, "uid 1");
  crowd.enter(101, "uid 2");
  crowd.busy(1);
  crowd.busy(2);
  crowd.idle(2);
  auto room = crowd.make_room("uid 2");
  ASSERT_TRUE(room.ok);
  EXPECT_EQ(room.instead, 3u) << "not 100, which is of a small peer; not 1 and 2, which were used";
  crowd.leave(3);
  EXPECT_EQ(crowd.size(), 7u) << "it had left already";
  crowd.enter(102, "uid 2");
  for (uint64_t id : {4u, 5u, 6u, 2u}) crowd.busy(id);
  crowd.busy(100);
  room = crowd.make_room("uid 3");
  EXPECT_EQ(room.instead, 101u);
}

TEST(P06Crowd, PeerAtItsMaximumReplacesItsOwnIdleConnection) {
  Crowd crowd(8);
  crowd.enter(100, "uid 2");
  for (uint64_t id = 1; id <= 6; ++id) crowd.enter(id, "uid 1");
  EXPECT_EQ(crowd.make_room("uid 1").instead, 1u) << "though one of another has waited longer";
}

}  // namespace
}  // namespace muster::api
