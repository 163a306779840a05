// Which Host, Origin and Sec-Fetch headers a request may have.
#include "api/http/web_guard.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

TEST(P09WebGuard, ParsesHostAndPort) {
  auto host = [](const char* text) {
    const auto found = Authority::parse(text);
    return found ? found->host + " " + std::to_string(found->port) : "none";
  };
  EXPECT_EQ(host("localhost"), "localhost 0");
  EXPECT_EQ(host("LocalHost:1"), "localhost 1");
  EXPECT_EQ(host("127.0.0.1:65535"), "127.0.0.1 65535");
  EXPECT_EQ(host("[::1]:7117"), "::1 7117");
  EXPECT_EQ(host("[::1]"), "::1 0");
  for (const char* bad : {"",
                          ":",
                          ":80",
                          "localhost:",
                          "localhost:evil",
                          "localhost:0",
                          "localhost:65536",
                          "localhost:+1",
                          "localhost: 1",
                          "localhost:1 ",
                          "localhost:1:1",
                          "::1",
                          "[::1",
                          "[]",
                          "[::1]1",
                          "[::1]:",
                          "[localhost]:1",
                          "a b",
                          "a/b",
                          "a@b:1",
                          "127.0.0.1, evil.example"})
    EXPECT_EQ(host(bad), "none") << bad;
}

TEST(P09WebGuard, ChecksHostAndOriginAlsoWithInsecure) {
  HostRules rules;
  rules.any_address = true;
  rules.names = {"node1", "muster.example"};
  auto refused = [&](const std::string& host, const std::string& origin = "") {
    WebHeaders headers;
    headers.host = host;
    headers.origin = origin;
    return refused_for_web(rules, "10.0.0.7", headers, false).has_value();
  };
  for (const char* host : {"", "localhost:7117", "10.0.0.7:7117", "192.168.1.1:80",
                           "[2001:db8::1]:7117", "node1:7117", "NODE1", "muster.example:7117"})
    EXPECT_FALSE(refused(host)) << host;
  for (const char* host : {"evil.example:7117", "node1.evil.example:7117", "node1.",
                           "10.0.0.7.evil.example", "localhost:evil", "0x7f.1:7117"})
    EXPECT_TRUE(refused(host)) << "a name that was rebound to this address: " << host;
  EXPECT_FALSE(refused("node1:7117", "http://node1:7117"));
  for (const char* origin : {"http://evil.example", "http://node1", "https://node1:7117", "null",
                             "http://node1:7118", "http://10.0.0.7:7117"})
    EXPECT_TRUE(refused("node1:7117", origin)) << origin;
}

TEST(P09WebGuard, AcceptsOnlyLoopbackHostsWithoutInsecure) {
  auto refused = [&](const std::string& host) {
    WebHeaders headers;
    headers.host = host;
    return refused_for_web({}, "127.0.0.5", headers, false).has_value();
  };
  for (const char* host : {"localhost", "127.0.0.1:7117", "127.9.9.9:1", "[::1]:7117", "127.0.0.5",
                           "[::ffff:127.0.0.1]:7117"})
    EXPECT_FALSE(refused(host)) << host;
  for (const char* host : {"10.0.0.7:7117", "[::2]:7117", "node1"})
    EXPECT_TRUE(refused(host)) << host;
}

}  // namespace
}  // namespace muster::api
