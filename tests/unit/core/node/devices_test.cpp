// Which devices pods get.
#include "core/node/devices.hpp"

#include <gtest/gtest.h>

namespace muster::core::node {
namespace {

const std::string kGpu = "nvidia.com/gpu", kFpga = "site/fpga";

TEST(DevicesTest, NoTwoPodsHoldTheSame) {
  Devices devices({{kGpu, 3}, {kFpga, 1}});
  EXPECT_TRUE(devices.has({{kGpu, 3}, {kFpga, 1}}));
  EXPECT_FALSE(devices.has({{kGpu, 4}}));
  EXPECT_FALSE(devices.has({{"site/other", 1}}));
  const auto two = devices.take({{kGpu, 2}});
  ASSERT_TRUE(two);
  EXPECT_EQ(*two, (DeviceMap{{kGpu, {0, 1}}}));
  EXPECT_FALSE(devices.take({{kGpu, 2}}));
  EXPECT_EQ(*devices.take({{kGpu, 1}, {kFpga, 1}}), (DeviceMap{{kGpu, {2}}, {kFpga, {0}}}));
  devices.release(*two);
  EXPECT_EQ(*devices.take({{kGpu, 1}}), (DeviceMap{{kGpu, {0}}}));
}

TEST(DevicesTest, NumbersNeedNotCountFromZero) {
  Devices devices({{kGpu, 2}, {kFpga, 2}}, {{kGpu, {2, 5}}});
  EXPECT_TRUE(devices.has({{kGpu, 2}}));
  EXPECT_FALSE(devices.has({{kGpu, 3}}));
  EXPECT_EQ(*devices.take({{kGpu, 1}, {kFpga, 1}}), (DeviceMap{{kGpu, {2}}, {kFpga, {0}}}));
  EXPECT_EQ(*devices.take({{kGpu, 1}}), (DeviceMap{{kGpu, {5}}}));
  EXPECT_FALSE(devices.take({{kGpu, 1}}));
}

TEST(DevicesTest, WhatAnEarlierAgentGaveIsHeld) {
  Devices devices({{kGpu, 2}});
  devices.adopt({{kGpu, {1, 7}}});
  EXPECT_EQ(*devices.take({{kGpu, 1}}), (DeviceMap{{kGpu, {0}}}));
  EXPECT_FALSE(devices.take({{kGpu, 1}}));
  devices.release({{kGpu, {1, 7}}});
  EXPECT_EQ(*devices.take({{kGpu, 1}}), (DeviceMap{{kGpu, {1}}}));
}

}  // namespace
}  // namespace muster::core::node
