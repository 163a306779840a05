#include "keeper/kernel/rlimits.hpp"

#include <gtest/gtest.h>

#include <string>

namespace muster::keeper {
namespace {

// The first limit as "soft:hard", or the error without the variable's name.
std::string read_one(const std::string& text) {
  const auto limits = read_rlimits(text);
  if (!limits.ok())
    return limits.error().message.substr(std::string("MUSTER_KEEPER_LIMITS: ").size());
  if (limits->empty()) return "none";
  const ResourceLimit& limit = limits->front();
  auto shown = [](rlim_t value) {
    return value == RLIM_INFINITY ? "unlimited" : std::to_string(value);
  };
  return std::string(limit.name) + " " + shown(limit.value.rlim_cur) + ":" +
         shown(limit.value.rlim_max);
}

TEST(RlimitsTest, ParsesLimits) {
  EXPECT_EQ(read_one(""), "none");
  EXPECT_EQ(read_one("memlock=unlimited"), "memlock unlimited:unlimited");
  EXPECT_EQ(read_one("  nofile=4096:65536  core=0 "), "nofile 4096:65536");
  EXPECT_EQ(read_one("core=0:unlimited"), "core 0:unlimited");
  EXPECT_EQ(read_one("as=4G"), "as 4294967296:4294967296");
  EXPECT_EQ(read_one("stack=64K:8M"), "stack 65536:8388608");
  EXPECT_EQ(read_one("as=16777215T"), "as 18446742974197923840:18446742974197923840");
  const auto all = read_rlimits("core=0 nproc=2000 cpu=60");
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ((*all)[1].resource, static_cast<int>(RLIMIT_NPROC));
  EXPECT_EQ((*all)[2].resource, static_cast<int>(RLIMIT_CPU));
}

TEST(RlimitsTest, RejectsInvalidLimits) {
  EXPECT_EQ(read_one("files=1"),
            "files=1: unknown limit; must be one of as, core, cpu, data, fsize, locks, memlock, "
            "msgqueue, nice, nofile, nproc, rss, rtprio, rttime, sigpending, stack");
  const std::string shape =
      "not core=VALUE or core=SOFT:HARD, each `unlimited` or a number, with K, M, G or T";
  for (const char* text : {"core", "core=", "core=1:", "core=:1", "core=-1", "core=1k", "core=1KB",
                           "core= 1", "core=0x10", "core=1:2:3", "core=16777216T",
                           "core=18446744073709551615", "core=99999999999999999999"}) {
    const std::string said = read_one(text);
    EXPECT_NE(said.find(shape), std::string::npos) << text << ": " << said;
  }
  EXPECT_EQ(read_one("nofile=2:1"), "nofile=2:1: the soft limit is above the hard limit");
  EXPECT_EQ(read_one("as=unlimited:1"), "as=unlimited:1: the soft limit is above the hard limit");
  EXPECT_EQ(read_one("core=0 core=1"), "core=1: set twice");
  EXPECT_EQ(read_one("nofile=3:64"),
            "nofile=3:64: too few to start a process; must be at least 64");
}

}  // namespace
}  // namespace muster::keeper
