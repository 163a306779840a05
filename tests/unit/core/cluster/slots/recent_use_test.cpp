// Recent use: an average whose weights halve, and what it does to a user's weight.
#include "core/cluster/slots/recent_use.hpp"

#include <gtest/gtest.h>

namespace muster::core {

namespace {

constexpr Millis kWeek = RecentUse::kHalfLifeMs;

TEST(RecentUse, IsAnAverageThatForgets) {
  RecentUse use;
  use.pass({{1, 1.0}}, kWeek);
  EXPECT_DOUBLE_EQ(use.of(1), 0.5);
  use.pass({{1, 1.0}, {2, 0.5}}, kWeek);
  EXPECT_DOUBLE_EQ(use.of(1), 0.75);
  EXPECT_DOUBLE_EQ(use.of(2), 0.25);
  use.pass({}, 2 * kWeek);
  EXPECT_DOUBLE_EQ(use.of(1), 0.75 / 4);
  use.pass({}, 60 * kWeek);
  EXPECT_TRUE(use.all().empty());
}

TEST(RecentUse, DoesNotDependOnTheStepsOfTime) {
  RecentUse one, many;
  one.pass({{1, 0.4}}, 1'000'000);
  for (int i = 0; i < 1000; ++i) many.pass({{1, 0.4}}, 1000);
  EXPECT_NEAR(one.of(1), many.of(1), 1e-12);
}

TEST(RecentUse, StaysFromZeroToOne) {
  RecentUse use;
  use.restore(1, 7, 0);
  EXPECT_DOUBLE_EQ(use.of(1), 1);
  use.restore(1, -7, 0);
  EXPECT_DOUBLE_EQ(use.of(1), 0);
  use.restore(1, 1, -5);
  EXPECT_DOUBLE_EQ(use.of(1), 1) << "a clock that went back adds nothing";
  use.pass({{1, 3.0}}, kWeek);
  EXPECT_DOUBLE_EQ(use.of(1), 1);
}

TEST(RecentUse, HalvesTheWeightAtAFairShare) {
  RecentUse use;
  EXPECT_DOUBLE_EQ(use.weight(1, 2), 1);
  use.restore(1, 0.25, 0);
  EXPECT_DOUBLE_EQ(use.weight(1, 4), 0.5);
  EXPECT_DOUBLE_EQ(use.weight(1, 12), 1.0 / 8) << "three times a fair share";
  EXPECT_DOUBLE_EQ(use.weight(1, 1000), 1.0 / 64) << "there is a least weight";
}

TEST(RecentUse, CountsAgainstTheOwnWeight) {
  RecentUse use;
  EXPECT_DOUBLE_EQ(use.weight(1, 4, 2), 2);
  use.restore(1, 0.5, 0);
  EXPECT_DOUBLE_EQ(use.weight(1, 4, 2), 1) << "a half at twice a fair share";
  EXPECT_DOUBLE_EQ(use.weight(1, 1'000'000, 2), 2.0 / 64);
}

TEST(RecentUse, WithoutAHalfLifeNothingIsRemembered) {
  RecentUse use(0);
  use.pass({{1, 1.0}}, kWeek);
  EXPECT_DOUBLE_EQ(use.weight(1, 8), 1);
}

}  // namespace

}  // namespace muster::core
