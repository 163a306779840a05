// Reading the node's available memory and the memory of process groups.
#include "agent/memory.hpp"

#include <gtest/gtest.h>

#include <string>
#include <unistd.h>

namespace muster::agent {
namespace {

TEST(Memory, AvailableIsReadFromMeminfo) {
  EXPECT_EQ(available_memory("MemTotal: 8 kB\nMemFree:  1 kB\nMemAvailable:    4096 kB\n"),
            4096u * 1024);
  EXPECT_FALSE(available_memory("MemTotal: 8 kB\n"));
  EXPECT_FALSE(available_memory("MemAvailable: much\n"));
  ASSERT_TRUE(available_memory());
  EXPECT_GT(*available_memory(), 1u << 20);
}

TEST(Memory, FindsUsageOfOwnProcessGroup) {
  const auto used = memory_by_group();
  auto it = used.find(getpgrp());
  ASSERT_NE(it, used.end());
  EXPECT_GT(it->second, 1u << 20);
}

}  // namespace
}  // namespace muster::agent
