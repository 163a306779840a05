// What muster allocate tells others, and what they make of it.
#include "client/news/pool_report.hpp"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

constexpr Millis kNow = 1'800'000'000'000;

PoolReport of(std::vector<PoolAllocation> allocations, const std::string& standing = "") {
  return {"default", "hpc", "slurm", std::move(allocations), standing, kNow};
}

TEST(PoolReportTest, WhatIsWrittenIsRead) {
  const PoolReport report = of(
      {{"17", "Queued", "", kNow - 60'000}, {"18.head", "Idle", "hpc-18", kNow}}, "12 pods wait");
  const Json map = {
      {"metadata", {{"namespace", "default"}, {"labels", {{"muster.dev/allocate", "hpc"}}}}},
      {"data", data_of(report)}};
  const PoolReport read = pool_report_in(map);
  EXPECT_EQ(read.ns, "default");
  EXPECT_EQ(read.pool, "hpc");
  EXPECT_EQ(read.engine, "slurm");
  EXPECT_EQ(read.allocations, report.allocations);
  EXPECT_EQ(read.standing, "12 pods wait");
  EXPECT_EQ(read.seen_ms, kNow);
}

TEST(PoolReportTest, WhatCannotBeReadIsEmpty) {
  EXPECT_EQ(pool_report_in(Json()).pool, "");
  for (const char* text : {"", "{", "7", "{}", "[7]", R"([{"id":7}])"})
    for (const PoolAllocation& one :
         pool_report_in(Json{{"data", {{"allocations", text}}}}).allocations)
      EXPECT_EQ(one, PoolAllocation{}) << text;
}

TEST(PoolReportTest, OneLineForPeople) {
  EXPECT_EQ(pool_line(of({}), kNow), "pool hpc (slurm): no allocations");
  EXPECT_EQ(pool_line(of({{"1", "Queued", "", kNow},
                          {"2", "Starting", "", kNow},
                          {"3", "Running", "hpc-3", kNow},
                          {"4", "Leaving", "hpc-4", kNow},
                          {"5", "Leaving", "", kNow}},
                         "9 pods wait"),
                      kNow),
            "pool hpc (slurm): 1 queued, 1 starting, 1 with a node, 2 leaving; 9 pods wait");
  EXPECT_FALSE(is_stale(of({}), kNow + 3 * kPoolReportEveryMs));
  EXPECT_EQ(pool_line(of({}, "no pods wait for nodes"), kNow + 12 * 60'000),
            "pool hpc (slurm): no allocations; not updated for 12m: its `muster allocate` has "
            "stopped");
}

}  // namespace
}  // namespace muster::cli
