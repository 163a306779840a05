// When what did not start is the node's doing.
#include "core/cluster/nodes/start_watch.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

TEST(StartWatch, P15TwoUsersOrTenInARowAreTheNodesDoing) {
  StartWatch watch;
  EXPECT_EQ(watch.verdict(), "");
  watch.note(1, 1000, 9, "no home", 0);
  EXPECT_EQ(watch.verdict(), "") << "nine of one user";
  watch.note(2, 1000, 1, "still no home", 5);
  EXPECT_EQ(watch.verdict(),
            "10 starts in a row have failed here (the coordinator's log has the cause)");
  watch.wait_ms = StartWatch::kProbeMinMs;
  EXPECT_EQ(watch.next_wait_ms(), StartWatch::kProbeMinMs) << "nobody closes it for long alone";
  watch.failed.erase(1);
  EXPECT_EQ(watch.verdict(), "");
  watch.note(3, 1001, 1, "no home", 5);
  EXPECT_EQ(watch.verdict(),
            "pods of 2 users cannot start here (the coordinator's log has the cause)");
  EXPECT_EQ(watch.next_wait_ms(), 2 * StartWatch::kProbeMinMs);
  watch.clear();
  EXPECT_EQ(watch.verdict(), "");
  // Where the coordinator serves one user, jobs have no owner.
  watch.note(1, std::nullopt, 4, "x", 0);
  watch.note(2, std::nullopt, 5, "x", 0);
  EXPECT_EQ(watch.verdict(), "");
  watch.note(3, std::nullopt, 1, "x", 0);
  EXPECT_EQ(watch.verdict(), "10 starts in a row have failed here: x");
  watch.wait_ms = StartWatch::kProbeMaxMs;
  EXPECT_EQ(watch.next_wait_ms(), StartWatch::kProbeMaxMs);
}

TEST(StartWatch, P15IsBounded) {
  StartWatch watch;
  for (JobId job = 1; job <= 1'000; ++job) watch.note(job, 1000, 1, "x", 0);
  EXPECT_EQ(watch.failed.size(), StartWatch::kJobsMax);
}

}  // namespace
}  // namespace muster::core
