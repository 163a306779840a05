// A day of a small site in simulated time, beside plain FIFO and EASY backfill: what
// `./dev bench day` measures in full (docs/scheduling.md, "A day of a site").
#include "tests/bench/day/summary.hpp"

#include <gtest/gtest.h>

#include <map>

namespace muster::day {

namespace {

// What muster may leave idle: above all, places that it keeps for one job at a time.
constexpr double kKept = 0.05;

// A day that passes in an hour. Until the evening, more arrives than the site can do.
struct ShortDay {
  Site site{8, 8};
  Profile profile{.seed = 2, .users = 20, .pace = 24, .tick_ms = 100, .largest_gang = 8};
  std::vector<Job> jobs = workload(site, profile);
  Outcome run(std::unique_ptr<Scheduler> scheduler) const {
    return run_day(site, profile, jobs, *scheduler);
  }
};

TEST(SiteDay, IsUsedAlmostAsWellAsWithPerfectKnowledge) {
  const ShortDay day;
  const double best = day.run(easy(day.site, day.jobs)).utilisation;
  EXPECT_GT(best, 0.9) << "the site has enough to do";
  EXPECT_GE(day.run(muster_slots(day.site, day.jobs)).utilisation, best - kKept);
}

TEST(SiteDay, GangsOfEverySizeStart) {
  const ShortDay day;
  const Outcome outcome = day.run(muster_slots(day.site, day.jobs));
  std::map<size_t, Millis> longest;  // wait, by the number of nodes
  for (size_t i = 0; i < day.jobs.size(); ++i) {
    const Job& job = day.jobs[i];
    if (!job.gang()) continue;
    Millis& most = longest[job.runs_ms.size()];
    most = std::max(most, outcome.fates[i].first_ms - job.arrives_ms);
  }
  ASSERT_EQ(longest.size(), 7u) << "from two nodes to all of them";
  for (const auto& [nodes, ms] : longest) EXPECT_LE(ms, day.profile.span_ms() * 3 / 5) << nodes;
}

TEST(SiteDay, LightUsersWaitLessThanInTheOrderOfArrival) {
  const ShortDay day;
  const auto light = light_users(day.jobs, day.profile.users);
  auto spread = [&](std::unique_ptr<Scheduler> scheduler) {
    return spread_of(waits(day.jobs, day.run(std::move(scheduler)), light));
  };
  const Spread in_order = spread(fifo(day.site, day.jobs));
  const Spread shared = spread(muster_slots(day.site, day.jobs));
  EXPECT_LE(shared.median, in_order.median / 30);
  EXPECT_LE(shared.mean, in_order.mean / 4);
  EXPECT_LE(shared.p95, in_order.p95);
}

}  // namespace

}  // namespace muster::day
