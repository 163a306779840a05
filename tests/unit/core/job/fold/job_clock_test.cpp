// A job's time advances steadily whatever the wall clock does.
#include "core/job/fold/job_clock.hpp"

#include "tests/unit/core/job/play.hpp"

namespace muster::core {

namespace {

constexpr Millis kHour = 3'600'000;

TEST(P16JobClock, StartsAtWallClockButNeverBehindLastRecord) {
  struct Row {
    Millis wall, elapsed, last_record, later, now;
  };
  for (const Row& row : {
           Row{kHour, 50, 0, 50, kHour}, Row{kHour, 50, kHour - 1, 80, kHour + 30},
           Row{kHour, 50, 2 * kHour, 50, 2 * kHour},       // the clock was fast and was corrected
           Row{kHour, 50, 2 * kHour, 80, 2 * kHour + 30},  // and time still advances
           Row{kHour, 50, kHour, 40, kHour},               // never goes back
       })
    EXPECT_EQ(JobClock(row.wall, row.elapsed, row.last_record).now(row.later), row.now);
}

// The wall clock jumps an hour ahead or back while a job waits, with and without a restart of the
// coordinator: the backoff lasts just as long, and the deadline does not come early.
TEST(P16JobClock, ClockJumpChangesNeitherBackoffNorDeadline) {
  for (Millis jump : {kHour, -kHour})
    for (bool restart : {false, true}) {
      SCOPED_TRACE(std::to_string(jump) + (restart ? " and a restart" : ""));
      Millis wall = Play::kBegin, elapsed = 1'000;
      JobSpec spec = Play::indexed(1, 1);
      spec.active_deadline_s = 60;
      Play play(spec);
      JobClock clock(wall, elapsed, play.state().last_record_ms);
      auto pass = [&](Millis ms) {
        wall += ms;
        elapsed += ms;
        play.tick(clock.now(elapsed) - play.now());
      };
      pass(0);
      pass(1'000);
      play.end({0, 0}, 1);
      wall += jump;
      if (restart) {
        pass(0);
        clock = JobClock(wall, elapsed, play.state().last_record_ms);
      }
      if (restart && jump > 0) continue;  // the new wall clock applies: the deadline is over
      EXPECT_FALSE(play.pod({0, 1}));
      pass(99);
      EXPECT_FALSE(play.pod({0, 1}));
      pass(1);
      EXPECT_TRUE(play.pod({0, 1})) << "100 ms after the failure";
      pass(58'899);
      EXPECT_FALSE(play.job().decided());
      pass(1);
      EXPECT_TRUE(play.job().decided()) << "60 s after its start";
    }
}

}  // namespace

}  // namespace muster::core
