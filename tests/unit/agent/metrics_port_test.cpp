#include "agent/metrics_port.hpp"

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <string>
#include <vector>

namespace muster::agent {
namespace {

std::string status_of(const std::string& head) {
  const std::string answer = metrics_answer(head, [] { return "a 1\n"; });
  return answer.substr(0, answer.find("\r\n"));
}

TEST(MetricsPort, AnswersOnlyWhatItHas) {
  EXPECT_EQ(status_of("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 200 OK");
  EXPECT_EQ(status_of("GET /metrics?name=a HTTP/1.0\r\n\r\n"), "HTTP/1.1 200 OK");
  EXPECT_EQ(status_of("GET /healthz HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK");
  EXPECT_EQ(status_of("GET /logs HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(status_of("GET /metrics/../x HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(status_of("POST /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
  for (const char* head :
       {"", "\r\n", "GET", "GET /metrics", "GET /metrics FTP\r\n\r\n", "GET HTTP/1.1\r\n"})
    EXPECT_EQ(status_of(head), "HTTP/1.1 400 Bad Request") << head;
  EXPECT_TRUE(metrics_answer("GET /metrics HTTP/1.1\r\n\r\n", [] {
                return "a 1\n";
              }).ends_with("Content-Length: 4\r\nConnection: close\r\n\r\na 1\n"));
}

struct PortRig {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  MetricsPort port{io.provider->getTimer(), [] { return "a 1\n"; }};
  kj::Network& network = io.provider->getNetwork();

  kj::Own<kj::AsyncIoStream> connected() {
    return network.parseAddress("127.0.0.1", port.port())
        .wait(io.waitScope)
        ->connect()
        .wait(io.waitScope);
  }
  // All that the port sends.
  std::string all_of(kj::AsyncIoStream& stream) {
    return stream.readAllText().wait(io.waitScope).cStr();
  }
};

TEST(MetricsPort, AnswersAHeadThatComesInParts) {
  PortRig rig;
  ASSERT_TRUE(rig.port.serve(rig.network, "127.0.0.1:0", rig.io.waitScope).ok());
  auto stream = rig.connected();
  for (const std::string part : {"GET /met", "rics HTTP/1.1\r\n", "Host: n\r\n\r\n"})
    stream->write(part.data(), part.size()).wait(rig.io.waitScope);
  EXPECT_TRUE(rig.all_of(*stream).ends_with("\r\n\r\na 1\n"));
}

TEST(MetricsPort, MoreConnectionsThanItTakesAreClosedAndLaterOnesAreServed) {
  PortRig rig;
  ASSERT_TRUE(rig.port.serve(rig.network, "127.0.0.1:0", rig.io.waitScope).ok());
  std::vector<kj::Own<kj::AsyncIoStream>> silent;
  for (int n = 0; n < 16; ++n) silent.push_back(rig.connected());
  EXPECT_EQ(rig.all_of(*rig.connected()), "");
  silent.clear();
  for (std::string answer; answer.empty();) {  // once it has seen that they are gone
    auto stream = rig.connected();
    const std::string head = "GET /healthz HTTP/1.1\r\n\r\n";
    kj::runCatchingExceptions([&] {
      stream->write(head.data(), head.size()).wait(rig.io.waitScope);
      answer = rig.all_of(*stream);
    });
  }
}

TEST(MetricsPort, AddressesThatCannotBeServedAreRefused) {
  PortRig rig;
  for (const char* address : {"unix:/tmp/x", "7120", "no.such.host.invalid:1"}) {
    const Status served = rig.port.serve(rig.network, address, rig.io.waitScope);
    ASSERT_FALSE(served.ok()) << address;
    EXPECT_TRUE(served.error().message.starts_with(std::string("--metrics-listen ") + address));
  }
}

}  // namespace
}  // namespace muster::agent
