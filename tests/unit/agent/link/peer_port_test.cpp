#include "agent/link/peer_port.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <netinet/in.h>
#include <sys/socket.h>
#include <utility>

namespace muster::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Listens and accepts nothing, with so many connections that may wait, and one more.
struct Listener {
  explicit Listener(int backlog) : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    EXPECT_EQ(listen(fd.get(), backlog), 0);
    socklen_t size = sizeof name;
    getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &size);
    port = ntohs(name.sin_port);
  }
  // A connection that is made or tried.
  Fd connected() const {
    Fd one(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int made = connect(one.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name);
    EXPECT_TRUE(made == 0 || errno == EINPROGRESS);
    return one;
  }
  sockaddr_in name{AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {}};
  Fd fd;
  uint16_t port = 0;
};

struct PeerRig {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  PeerPort port;

  explicit PeerRig(std::optional<PortRange> ports = PortRange{}) : port(io, ports) {}
  uint16_t open(const std::string& ip) { return port.open(ip); }
  std::vector<std::string> reach(std::vector<PeerPort::Peer> peers, Millis each_ms = 20'000) {
    return port.reach("127.0.0.1", std::move(peers), {2, each_ms, 1}).wait(io.waitScope);
  }
};

TEST(PeerPort, ReachesAPeerWithTheGreetingThatIsExpected) {
  PeerRig rig;
  const uint16_t port = rig.open("127.0.0.1");
  ASSERT_NE(port, 0);
  EXPECT_EQ(rig.open("127.0.0.1"), port) << "it stays open";
  const std::string other(rig.port.greeting().size(), 'x');
  EXPECT_THAT(rig.reach({{"127.0.0.1", port, rig.port.greeting()}, {"127.0.0.1", port, other}}),
              ElementsAre("", "another machine answers at its address"));
  EXPECT_THAT(rig.reach({}), IsEmpty());
}

TEST(PeerPort, SaysWhyAPeerIsNotReached) {
  PeerRig rig;
  auto full = std::make_unique<Listener>(0);  // drops packets that would connect
  const Fd first = full->connected(), second = full->connected();
  EXPECT_THAT(rig.reach({{"127.0.0.1", full->port, "a"}}, 10),
              ElementsAre("no answer within 10 ms"));
  const uint16_t closed = full->port;
  full.reset();
  EXPECT_THAT(rig.reach({{"127.0.0.1", closed, "a"}, {"c1", 1, "a"}}),
              ElementsAre("connection refused", "its address is not an IP address"));
}

TEST(PeerPort, APeerThatIsConnectedAndSilentIsReached) {
  PeerRig rig;
  const Listener silent(10);
  EXPECT_THAT(rig.reach({{"127.0.0.1", silent.port, "a"}}, 10), ElementsAre(""));
}

TEST(PeerPort, TriesMorePeersThanItConnectsToAtOnce) {
  PeerRig rig;
  const uint16_t port = rig.open("127.0.0.1");
  std::vector<PeerPort::Peer> peers(3 * PeerPort::kAtOnce,
                                    {"127.0.0.1", port, rig.port.greeting()});
  peers.back().greeting = "x";
  const auto why = rig.reach(peers);
  ASSERT_EQ(why.size(), peers.size());
  EXPECT_EQ(why.back(), "another machine answers at its address");
  EXPECT_EQ(std::ranges::count(why, ""), static_cast<ptrdiff_t>(peers.size() - 1));
}

TEST(PeerPort, TakesTheFirstFreePortOfThoseThatTheSiteAllows) {
  const Listener taken(1);
  const auto last = static_cast<uint16_t>(taken.port + 50);
  const auto open = [](std::optional<PortRange> ports) { return PeerRig(ports).open("127.0.0.1"); };
  EXPECT_EQ(open(PortRange{taken.port, taken.port}), 0);
  EXPECT_EQ(open(std::nullopt), 0);
  const uint16_t port = open(PortRange{taken.port, last});
  EXPECT_GT(port, taken.port);
  EXPECT_LE(port, last);
}

TEST(PeerPort, HasNoPortOnTheAddressOfAnotherMachine) {
  PeerRig rig;
  EXPECT_EQ(rig.open("192.0.2.1"), 0);
  EXPECT_EQ(rig.open("c1"), 0);
  EXPECT_NE(rig.open("127.0.0.1"), 0);
}

}  // namespace
}  // namespace muster::agent
