// A day of a small site in simulated time, beside plain FIFO and EASY backfill: what
// `./dev bench day` measures in full (docs/scheduling.md, "A day of a site").
#include "core/cluster/slots/slots.hpp"
#include "tests/bench/day/summary.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

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

// muster's scheduler, with what it leaves idle although pods of one slot wait, beyond the places
// that it keeps.
class Idle : public Scheduler {
 public:
  explicit Idle(const ShortDay& day)
      : jobs_(day.jobs), waiting_(day.jobs.size()), idle_(day.site.all()) {
    inner_ = muster_slots(day.site, day.jobs, [this](core::Slots& slots) {
      const auto awaited = slots.awaited();
      kept_ = awaited ? needed_at_once(awaited->job - 1) : 0;
    });
  }
  void arrived(size_t job) override {
    waiting_[job] = jobs_[job].runs_ms.size();
    if (jobs_[job].slots == 1) small_ += waiting_[job];
    inner_->arrived(job);
  }
  void ended(const Pods& pods, Millis ran_ms, Millis now) override {
    idle_ += uint64_t{pods.count} * jobs_[pods.job].slots;
    inner_->ended(pods, ran_ms, now);
  }
  Decision decide(Millis now) override {
    Decision decision = inner_->decide(now);
    for (const Pods& pods : decision.starts) {
      const Job& job = jobs_[pods.job];
      idle_ -= uint64_t{pods.count} * job.slots;
      waiting_[pods.job] -= pods.count;
      if (job.slots == 1) small_ -= pods.count;
    }
    const uint64_t missed = std::min(idle_, small_);
    if (small_ > 0) ++short_;
    if (missed > 0) ++kept_only_;
    if (missed > kept_) beyond_ = std::max(beyond_, missed - kept_);
    return decision;
  }
  uint64_t beyond() const { return beyond_; }         // slots, at most
  uint64_t short_of_slots() const { return short_; }  // decisions after which small pods wait
  uint64_t kept_only() const { return kept_only_; }   // those that leave something idle

 private:
  uint64_t needed_at_once(size_t job) const {
    return jobs_[job].gang() ? waiting_[job] * jobs_[job].slots : jobs_[job].slots;
  }

  const std::vector<Job>& jobs_;
  std::unique_ptr<Scheduler> inner_;
  std::vector<uint64_t> waiting_;  // pods, by job
  uint64_t idle_;                  // slots
  uint64_t small_ = 0;             // pods of one slot that wait
  uint64_t kept_ = 0, beyond_ = 0, short_ = 0, kept_only_ = 0;
};

// While small work waits, it alone would use everything. Beside large jobs, everything is used but
// the places of the one job that has a reservation, and one slot at most.
TEST(SiteDay, NothingIsIdleBesideSmallWorkButWhatIsReserved) {
  for (const bool spreads : {false, true}) {
    ShortDay day;
    day.site.spreads = spreads;
    Idle seen(day);
    run_day(day.site, day.profile, day.jobs, seen);
    EXPECT_LE(seen.beyond(), 1u) << spreads;
    EXPECT_GT(seen.short_of_slots(), 1'000u) << "there is too little work to see it";
    EXPECT_GT(seen.kept_only(), 0u) << "no place was ever kept";
  }
}

}  // namespace

}  // namespace muster::day
