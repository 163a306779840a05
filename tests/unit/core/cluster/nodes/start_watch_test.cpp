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
            "10 starts in a row have failed here (the coordinator's log has the whole cause)");
  watch.wait_ms = StartWatch::kProbeMinMs;
  EXPECT_EQ(watch.next_wait_ms(), StartWatch::kProbeMinMs) << "nobody closes it for long alone";
  watch.failed.erase(1);
  EXPECT_EQ(watch.verdict(), "");
  watch.note(3, 1001, 1, "no home", 5);
  EXPECT_EQ(watch.verdict(),
            "pods of 2 users cannot start here (the coordinator's log has the whole cause)");
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

// Everybody may read a node, so what is a user's own is for the log only.
TEST(StartWatch, P15TheCauseIsShownWithoutPaths) {
  auto shown = [](const std::string& why) {
    StartWatch watch;
    watch.note(1, 1000, StartWatch::kStarts, why, 0);
    const std::string all = watch.verdict(), before = "10 starts in a row have failed here";
    EXPECT_TRUE(all.starts_with(before)) << all;
    return all.substr(before.size(), all.find(" (the coordinator's log") - before.size());
  };
  EXPECT_EQ(shown("cwd /home/u/x: No such file or directory"),
            ": working directory: No such file or directory");
  EXPECT_EQ(shown("fork: Resource temporarily unavailable"),
            ": fork: Resource temporarily unavailable");
  EXPECT_EQ(shown("open /home/u/x: Stale file handle; create it"),
            ": open a file: Stale file handle");
  EXPECT_EQ(shown("volume secret-project: Input/output error"), ": Input/output error");
  EXPECT_EQ(shown("this node cannot mount volumes: /u"), ": this node cannot mount volumes");
  EXPECT_EQ(shown("/home/u says so"), "");
}

TEST(StartWatch, P15IsBounded) {
  StartWatch watch;
  for (JobId job = 1; job <= 1'000; ++job) watch.note(job, 1000, 1, "x", 0);
  EXPECT_EQ(watch.failed.size(), StartWatch::kJobsMax);
}

}  // namespace
}  // namespace muster::core
