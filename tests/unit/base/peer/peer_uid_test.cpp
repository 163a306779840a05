// The user at the other end of live, half-closed and closed sockets, from netlink and from /proc.
#include "base/peer/peer_uid.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace muster {
namespace {

using Judged = PeerVerdict::Kind;
using Source = PeerLookup::Source;

// A connected pair of TCP sockets on loopback, whose client is created by the given user.
struct Pair {
  int listener, client, server;
  explicit Pair(std::optional<uid_t> as = {}) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
    if (as) {
      EXPECT_EQ(seteuid(*as), 0);
    }
    client = socket(AF_INET, SOCK_STREAM, 0);
    if (as) {
      EXPECT_EQ(seteuid(0), 0);
    }
    EXPECT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), size), 0);
    server = accept(listener, nullptr, nullptr);
    EXPECT_GE(server, 0);
  }
  ~Pair() {
    close(listener);
    if (client >= 0) close(client);
    close(server);
  }
  // Returns once the server's side has noticed.
  void close_client() {
    close(std::exchange(client, -1));
    seen();
  }
  void seen() const {
    pollfd look = {server, POLLIN | POLLRDHUP, 0};
    EXPECT_EQ(poll(&look, 1, 10'000), 1);
  }
};

class Lookup : public ::testing::TestWithParam<Source> {
 protected:
  PeerLookup lookup{GetParam()};
};

TEST_P(Lookup, FindsOwnUserOverLoopback) {
  Pair pair;
  EXPECT_EQ(*lookup.uid(pair.server), geteuid());
  EXPECT_EQ(lookup.judge(pair.server).kind, Judged::trusted);
  EXPECT_EQ(lookup.judge(pair.server).who, "uid " + std::to_string(geteuid()));
  EXPECT_FALSE(lookup.uid(-1));
  EXPECT_EQ(lookup.judge(-1).kind, Judged::stranger);
}

TEST_P(Lookup, FindsPeerOfUnixSocket) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  EXPECT_EQ(*lookup.uid(ends[0]), geteuid());
  EXPECT_EQ(lookup.judge(ends[0]).kind, Judged::trusted);
  close(ends[0]);
  close(ends[1]);
}

TEST_P(Lookup, FindsOtherUserAndDoesNotTrustIt) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
  Pair pair(65534);
  EXPECT_EQ(*lookup.uid(pair.server), 65534u);
  EXPECT_EQ(lookup.judge(pair.server).kind, Judged::stranger);
  EXPECT_NE(lookup.judge(pair.server).why.find("uid 65534"), std::string::npos);
}

TEST_P(Lookup, P01ClosedSocketHasNoUser) {
  Pair pair;
  ASSERT_EQ(write(pair.client, "POST", 4), 4);
  pair.close_client();
  const auto uid = lookup.uid(pair.server);
  ASSERT_FALSE(uid) << "the kernel lists it with uid 0";
  EXPECT_EQ(uid.error().code, Errc::not_found);
  EXPECT_EQ(lookup.judge(pair.server).kind, Judged::stranger);
}

TEST_P(Lookup, P01ClosedSocketHasNoUserWhenBothSidesHaveClosed) {
  Pair pair;
  shutdown(pair.server, SHUT_WR);
  pair.close_client();
  EXPECT_FALSE(lookup.uid(pair.server));
}

TEST_P(Lookup, P01ResetSocketHasNoUser) {
  Pair pair;
  ASSERT_EQ(write(pair.client, "POST", 4), 4);
  const linger at_once = {1, 0};
  setsockopt(pair.client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  pair.close_client();
  EXPECT_FALSE(lookup.uid(pair.server));
  EXPECT_EQ(lookup.judge(pair.server).kind, Judged::stranger);
}

TEST_P(Lookup, P01HalfClosedSocketHasItsUser) {
  Pair pair;
  shutdown(pair.client, SHUT_WR);
  pair.seen();
  EXPECT_EQ(*lookup.uid(pair.server), geteuid());
  EXPECT_EQ(lookup.judge(pair.server).kind, Judged::trusted);
  shutdown(pair.server, SHUT_WR);
  EXPECT_FALSE(lookup.uid(pair.server)) << "it is over";
}

TEST_P(Lookup, UnknownConnectionHasNoUser) {
  sockaddr_storage a = {}, b = {};
  auto& in = reinterpret_cast<sockaddr_in&>(a);
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  in.sin_port = htons(1);
  b = a;
  EXPECT_FALSE(lookup.tcp_uid(a, b));
  EXPECT_TRUE(TcpEnd::of(a)->loopback());
  in.sin_addr.s_addr = htonl(0x0a000001);
  EXPECT_FALSE(TcpEnd::of(a)->loopback());
}

TEST_P(Lookup, P06WorksWithoutFreeDescriptors) {
  Pair pair;
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit low = limit;
  low.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const auto uid = lookup.uid(pair.server);
  const auto late = PeerLookup(GetParam()).judge(pair.server);
  setrlimit(RLIMIT_NOFILE, &limit);
  ASSERT_TRUE(uid) << uid.error().message;
  EXPECT_EQ(*uid, geteuid());
  EXPECT_EQ(late.kind, Judged::unknown) << "no one is treated as a stranger because of it";
  EXPECT_NE(late.why.find("Too many open files"), std::string::npos) << late.why;
}

INSTANTIATE_TEST_SUITE_P(ByNetlinkAndByProc, Lookup,
                         ::testing::Values(Source::best, Source::sock_diag, Source::proc));

TEST(P18bNoTcpDiag, ProbeDetectsMissingHandler) {
  PeerLookup lookup(Source::sock_diag);
  EXPECT_TRUE(lookup.diag_knows(IPPROTO_TCP));
  EXPECT_FALSE(lookup.diag_knows(253)) << "a number for experiments";
}

TEST(P18bNoTcpDiag, UnreadableProcTableIsNamedInVerdict) {
  Pair pair;
  PeerLookup lookup(Source::proc, "/nowhere");
  const PeerVerdict verdict = lookup.judge(pair.server);
  EXPECT_EQ(verdict.kind, Judged::unknown);
  EXPECT_NE(verdict.why.find("/nowhere/tcp cannot be read: No such file"), std::string::npos)
      << verdict.why;
}

TEST(P18bNoTcpDiag, Ipv4MappedSocketIsFound) {
  const int client = socket(AF_INET6, SOCK_STREAM, 0);
  if (client < 0) GTEST_SKIP() << "no IPv6";
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_addr.s6_addr[10] = address.sin6_addr.s6_addr[11] = 0xff;
  address.sin6_addr.s6_addr[12] = 127;
  address.sin6_addr.s6_addr[15] = 1;
  Pair listening;
  sockaddr_in at = {};
  socklen_t size = sizeof at;
  ASSERT_EQ(getsockname(listening.listener, reinterpret_cast<sockaddr*>(&at), &size), 0);
  address.sin6_port = at.sin_port;
  ASSERT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const int server = accept(listening.listener, nullptr, nullptr);
  for (const Source source : {Source::sock_diag, Source::proc})
    EXPECT_EQ(*PeerLookup(source).uid(server), geteuid());
  close(client);
  close(server);
}

TcpEnd end(const char* ip, uint16_t port) {
  sockaddr_storage address = {};
  auto& in = reinterpret_cast<sockaddr_in&>(address);
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(std::string(ip) == "127.0.0.1" ? 0x7f000001 : 0);
  in.sin_port = htons(port);
  return *TcpEnd::of(address);
}

// As printed on a little-endian machine.
constexpr const char* kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:1BCD 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 16 "
    "1 0\n"
    "   1: 0100007F:B39B 0100007F:1BCD 01 00000000:00000000 00:00000000 00000000  1000        0 "
    "4711 1 0\n"
    "   2: 0100007F:B39C 0100007F:1BCD 05 00000000:00000000 00:00000000 00000000     0        0 0 "
    "3 0\n"
    "   3: 0100007F:B39D 0100007F:1BCD 06 00000000:00000000 03:000006A4 00000000     0        0 0 "
    "3 0\n"
    "   4: 0100007F:B39D 0100007F:1BCD 01 00000000:00000000 00:00000000 00000000  1001        0 "
    "4712 1 0\n"
    "   5: 0100007F:B39E 0100007F:1BCD 02 00000000:00000000 01:00000010 00000000  1000        0 "
    "4713 1 0\n"
    "   6: 0100007F:B39F 0100007F:1BCD 05 000";

TEST(P18bNoTcpDiag, ProcTableIsSearchedByBothEnds) {
  if (htonl(1) == 1) GTEST_SKIP() << "the table is of a little-endian machine";
  const TcpEnd server = end("127.0.0.1", 0x1bcd);
  auto look = [&](uint16_t port) { return find_in_proc(kTable, end("127.0.0.1", port), server); };
  auto found = look(0xb39b);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->held());
  EXPECT_EQ(found->uid, 1000u);
  EXPECT_EQ(found->inode, 4711u);
  EXPECT_FALSE(look(0x1bcd)) << "the listener";
  EXPECT_FALSE(look(0xb39a));
  EXPECT_FALSE(find_in_proc(kTable, server, end("127.0.0.1", 0xb39b))) << "the other way round";
  EXPECT_FALSE(look(0xb39c)->held()) << "closed: uid 0, but no inode";
  EXPECT_EQ(look(0xb39d)->uid, 1001u) << "not the one before it that is over";
  EXPECT_FALSE(look(0xb39e)->held()) << "it is not connected yet";
  EXPECT_FALSE(look(0xb39f)) << "half a line";
  EXPECT_FALSE(find_in_proc("", server, server));
}

}  // namespace
}  // namespace muster
