#include "standby/follower_metrics.hpp"

#include <gtest/gtest.h>

namespace muster::standby {
namespace {

bool has(const std::string& text, const std::string& line) {
  return text.find(line + "\n") != std::string::npos;
}

TEST(FollowerMetrics, SayWhereItStands) {
  FollowerFigures figures{.term = 3, .follows = true, .store_answers = true, .in_sync = true};
  figures.commit = 41;
  figures.lag = 2;
  figures.silent_ms = 250;
  figures.syncs.add(0.001);
  const std::string text = metrics_text(figures, ".", 1'500);
  for (const char* line :
       {"muster_coordinator_leader 0", "muster_coordinator_term 3",
        "muster_coordinator_store_answers 1", "muster_coordinator_store_wiped 0",
        "muster_follower_connected 1", "muster_follower_in_sync 1", "muster_follower_commit 41",
        "muster_follower_lag_commits 2", "muster_follower_leader_heard_seconds 0.25",
        "muster_follower_commit_duration_seconds_sum 0.001",
        "muster_follower_commit_duration_seconds_count 1", "process_start_time_seconds 1.5"})
    EXPECT_TRUE(has(text, line)) << line << "\n" << text;
}

TEST(FollowerMetrics, SayNothingOfALeaderThatThereIsNot) {
  const std::string text = metrics_text({}, ".", 0);
  EXPECT_TRUE(has(text, "muster_follower_connected 0"));
  EXPECT_TRUE(has(text, "muster_coordinator_store_answers 0"));
  EXPECT_EQ(text.find("muster_follower_lag_commits"), std::string::npos);
  EXPECT_EQ(text.find("muster_follower_leader_heard_seconds"), std::string::npos);
}

TEST(FollowerMetrics, AreReadyIfItCouldTakeOver) {
  const FollowerFigures ready{.follows = true, .store_answers = true, .in_sync = true};
  EXPECT_EQ(unready_text(ready), "");
  const auto but = [&](auto change) {
    FollowerFigures figures = ready;
    change(figures);
    return unready_text(figures);
  };
  EXPECT_EQ(but([](auto& f) { f.store_answers = false; }), "the consensus store does not answer");
  EXPECT_NE(but([](auto& f) { f.store_wiped = true; }).find("--new-store"), std::string::npos);
  EXPECT_EQ(but([](auto& f) { f.follows = false; }), "it follows no leader; see its log");
  EXPECT_NE(but([](auto& f) { f.in_sync = false; }).find("not in sync"), std::string::npos);
}

}  // namespace
}  // namespace muster::standby
