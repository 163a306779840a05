#include "base/network/interfaces.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Interfaces, FindsLoopback) {
  EXPECT_EQ(interface_of("127.0.0.1"), "lo");
  EXPECT_EQ(interface_of("192.0.2.7"), "");  // for documentation only
  EXPECT_EQ(interface_of(""), "");
  EXPECT_EQ(network_of("lo"), "127.0.0.0/8");
  EXPECT_EQ(network_of("no-such-device"), "");
}

}  // namespace
}  // namespace muster
