// The agents' port: silent connections, and how descriptors are divided.
#include "coordinator/rpc/rpc_server.hpp"
#include "coordinator/threads/descriptors.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace muster::coordinator {
namespace {

TEST(P06Descriptors, SomeAreReservedForDisk) {
  for (const size_t limit : {16u, 64u, 256u, 1024u, 4096u, 65'536u, 1u << 20}) {
    const Descriptors d = Descriptors::of(limit);
    EXPECT_GT(d.api, 0u) << limit;
    EXPECT_GT(d.agents, 0u) << limit;
    EXPECT_LE(d.api + d.agents + std::min<size_t>(384, limit / 2), limit);
  }
  EXPECT_EQ(Descriptors::of(1u << 20).api, 4096u);
}

TEST(P06AgentsPort, ASilentConnectionIsClosed) {
  RpcOptions options;
  options.listen = "127.0.0.1:0";
  options.last_commit = [] { return uint64_t{0}; };
  options.register_patience_ms = 20;
  auto server = RpcServer::bind(std::move(options));
  ASSERT_TRUE(server) << server.error().message;
  (*server)->serve({}, {});
  const std::string at = (*server)->address();
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(at.substr(at.rfind(':') + 1))));
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  pollfd look = {client, POLLIN, 0};
  ASSERT_EQ(poll(&look, 1, 10'000), 1);
  char byte;
  EXPECT_EQ(recv(client, &byte, 1, 0), 0);
  close(client);
}

}  // namespace
}  // namespace muster::coordinator
