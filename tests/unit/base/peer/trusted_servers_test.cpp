// Who serves a connection, and whether a client talks to them.
#include "base/peer/trusted_servers.hpp"

#include "base/fd.hpp"
#include "base/peer/local_sockets.hpp"
#include "base/peer/users.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace muster {
namespace {

using TrustedSource = PeerLookup::Source;
constexpr uid_t kOther = 65534;

// Runs as another user what creates a socket. Needs root.
template <class Make>
int as_user(std::optional<uid_t> user, const Make& make) {
  if (user) {
    EXPECT_EQ(seteuid(*user), 0);
  }
  const int made = make();
  if (user) {
    EXPECT_EQ(seteuid(0), 0);
  }
  return made;
}

// A TCP port on loopback or the wildcard address, with a client that is connected and not accepted.
struct Port {
  Fd listener, client, accepted;
  sockaddr_in address{};
  explicit Port(std::optional<uid_t> user = {}, uint32_t host = INADDR_LOOPBACK) {
    socklen_t size = sizeof address;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(host);
    listener = Fd(as_user(user, [] { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }));
    const int yes = 1;
    setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener.get(), 8), 0);
    EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    client = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  }
  void accept_as(std::optional<uid_t> user) {
    accepted = Fd(as_user(user, [this] { return accept(listener.get(), nullptr, nullptr); }));
    EXPECT_TRUE(accepted);
  }
  sockaddr_storage where() const {
    sockaddr_storage all = {};
    memcpy(&all, &address, sizeof address);
    return all;
  }
};

class Server : public ::testing::TestWithParam<TrustedSource> {
 protected:
  PeerLookup lookup{GetParam()};
};

TEST_P(Server, UserIsThatOfListenerUntilAccepted) {
  Port port;
  EXPECT_EQ(*lookup.server_uid(port.client.get()), geteuid());
  port.accept_as({});
  EXPECT_EQ(*lookup.server_uid(port.client.get()), geteuid());
}

TEST_P(Server, UserIsFoundWhenListeningOnEveryAddress) {
  Port port({}, INADDR_ANY);
  EXPECT_EQ(*lookup.server_uid(port.client.get()), geteuid());
  EXPECT_EQ(*lookup.listener_uid(port.where()), geteuid());
}

TEST_P(Server, P01UserThatHoldsPortIsFound) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
  for (const uint32_t host : {INADDR_LOOPBACK, INADDR_ANY}) {
    Port port(kOther, host);
    EXPECT_EQ(*lookup.listener_uid(port.where()), kOther);
    EXPECT_EQ(*lookup.server_uid(port.client.get()), kOther) << "in its backlog";
    port.accept_as(kOther);
    EXPECT_EQ(*lookup.server_uid(port.client.get()), kOther) << "accepted";
    port.listener = Fd();
    EXPECT_EQ(*lookup.server_uid(port.client.get()), kOther) << "its port is free again";
  }
}

TEST_P(Server, P01NewOwnerOfPortDoesNotVouchForOldConnection) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
  Port squatter(kOther);
  squatter.accept_as(kOther);
  squatter.listener = Fd();
  const Fd later(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(later.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  ASSERT_EQ(bind(later.get(), reinterpret_cast<sockaddr*>(&squatter.address), sizeof(sockaddr_in)),
            0);
  ASSERT_EQ(listen(later.get(), 1), 0);
  EXPECT_EQ(*lookup.listener_uid(squatter.where()), 0u);
  EXPECT_EQ(*lookup.server_uid(squatter.client.get()), kOther);
}

TEST_P(Server, UserIsUnknownWhenServerIsGone) {
  Port port;
  port.listener = Fd();  // resets what waits in its backlog
  EXPECT_FALSE(lookup.server_uid(port.client.get()));
  EXPECT_FALSE(lookup.listener_uid(port.where()));
  EXPECT_FALSE(lookup.server_uid(-1));
}

INSTANTIATE_TEST_SUITE_P(ByNetlinkAndByProc, Server,
                         ::testing::Values(PeerLookup::Source::best, TrustedSource::sock_diag,
                                           PeerLookup::Source::proc));

TEST(TrustedServersTest, OwnUserAndRootAreTrusted) {
  TrustedServers servers("", TrustedServers::Remote::accepted, "/nowhere");
  EXPECT_TRUE(servers.trust(0));
  EXPECT_TRUE(servers.trust(geteuid()));
  EXPECT_FALSE(servers.trust(geteuid() + 1));
  Port port;
  EXPECT_TRUE(servers.check(port.client.get(), "127.0.0.1:1").ok());
}

TEST(TrustedServersTest, ConfiguredCoordinatorUserIsTrusted) {
  const std::string other = user_name(kOther).value_or("65534");
  EXPECT_TRUE(TrustedServers(other, TrustedServers::Remote::accepted, "/nowhere").trust(kOther));
  EXPECT_TRUE(TrustedServers("65534", TrustedServers::Remote::accepted, "/nowhere").trust(kOther));
  EXPECT_FALSE(TrustedServers("no-such-user").trust(kOther));
}

TEST(TrustedServersTest, TheOwnerOfTheSitesDirectoryIsTrusted) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
  std::string dir = testing::TempDir() + "muster-site-XXXXXX";
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  ASSERT_EQ(chown(dir.c_str(), kOther, kOther), 0);
  TrustedServers servers("", TrustedServers::Remote::accepted, dir);
  EXPECT_TRUE(servers.trust(kOther));
  ASSERT_EQ(chmod(dir.c_str(), 0777), 0);
  EXPECT_FALSE(servers.trust(kOther)) << "others can put a socket there";
  std::filesystem::remove_all(dir);
}

TEST(TrustedServersTest, P01PortOfOtherUserIsRefusedByName) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
  Port port(kOther);
  TrustedServers servers("", TrustedServers::Remote::accepted, "/nowhere");
  const Status checked = servers.check(port.client.get(), "127.0.0.1:7117");
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("127.0.0.1:7117 is served by " + user_text(kOther)),
            std::string::npos)
      << checked.error().message;
}

TEST(TrustedServersTest, P01UnixSocketOfOtherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
  std::string dir = testing::TempDir() + "muster-sock-XXXXXX";
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  ASSERT_EQ(chmod(dir.c_str(), 0777), 0);
  sockaddr_un at = {};
  at.sun_family = AF_UNIX;
  strcpy(at.sun_path, (dir + "/s").c_str());
  const Fd listener(as_user(kOther, [&at] {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(listen(fd, 1), 0);
    return fd;
  }));
  const Fd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  EXPECT_FALSE(TrustedServers("", TrustedServers::Remote::accepted, "/nowhere")
                   .check(client.get(), "unix:s"));
  EXPECT_EQ(find_socket({dir + "/none", dir + "/s"}), dir + "/s") << "found, then refused";
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace muster
