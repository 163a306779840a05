// Pace: how long a job will still take, on simulated slots.
#include "client/news/pace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace muster::cli {
namespace {

// Runs `pods` pods on `slots` slots, each for the time that `ran` gives; polled every `look` ms.
struct Played {
  int64_t pods, slots;
  std::function<Millis(int64_t)> ran;
  Millis look = 100;
  Millis delay = 0;  // between two pods on a slot

  struct At {
    Millis now;
    std::optional<Millis> left;
    Millis truth;
  };
  // From `since` on, as seen by a client that attaches then.
  std::vector<At> play(Millis since = 0) const {
    std::vector<std::pair<Millis, Millis>> spans;              // of pods
    std::vector<Millis> free(static_cast<size_t>(slots), 50);  // after the first look
    Millis over = 0;
    for (int64_t i = 0; i < pods; ++i) {
      Millis& slot = *std::min_element(free.begin(), free.end());
      spans.emplace_back(slot, slot + ran(i));
      slot += ran(i) + delay;
      over = std::max(over, spans.back().second);
    }
    std::vector<At> out;
    Pace pace;
    for (Millis now = since; now < over; now += look) {
      int64_t ended = 0, running = 0;
      for (const auto& [from, to] : spans) {
        if (to <= now) ++ended;
        if (from <= now && now < to) ++running;
      }
      pace.add({.at = now, .settled = ended, .ended = ended, .running = running});
      out.push_back({now, pace.left(pods - ended), over - now});
    }
    return out;
  }
};

void expect_close(const std::vector<Played::At>& seen, Millis known_by, double share,
                  Millis slack) {
  for (const auto& [now, left, truth] : seen) {
    if (now < known_by) continue;
    ASSERT_TRUE(left.has_value()) << "at " << now;
    EXPECT_NEAR(static_cast<double>(*left), static_cast<double>(truth),
                share * static_cast<double>(truth) + static_cast<double>(slack))
        << "at " << now;
  }
}

Millis minutes(double n) {
  return static_cast<Millis>(n * 60'000);
}

TEST(Pace, GivesNoEstimateBeforeEnoughPodsEnded) {
  EXPECT_EQ(Pace().left(3), std::nullopt);
  for (const auto& [now, left, truth] : Played{10, 4, [](int64_t) { return minutes(10); }}.play()) {
    if (now <= minutes(10) - 100) {
      EXPECT_EQ(left, std::nullopt) << "at " << now;
    }
  }
}

// Of ten pods of 10 minutes on 4 slots, the third wave has two.
TEST(Pace, EstimatesLongPodsInWaves) {
  const auto seen = Played{10, 4, [](int64_t) { return minutes(10); }}.play();
  expect_close(seen, minutes(10) + 200, 0.01, 1'000);
}

TEST(Pace, EstimatesLongPodsOfDifferentLengths) {
  const auto seen =
      Played{200, 16, [](int64_t i) { return minutes(2) + (i * 7919 % 60) * 1'000; }}.play();
  // The longest of the last pods decides when the job ends, and its length is unknown.
  expect_close(seen, minutes(3.2), 0.15, 60'000);
}

// More slots than pods: the time left is what the slowest pod still needs.
TEST(Pace, GivesNoEstimateInOnlyWave) {
  const auto seen = Played{8, 64, [](int64_t i) { return minutes(5) + i * 1'000; }}.play();
  for (const auto& [now, left, truth] : seen) {
    if (now < minutes(5)) {
      EXPECT_EQ(left, std::nullopt);
    }
  }
}

TEST(Pace, EstimatesShortPodsByRate) {
  const auto seen = Played{20'000, 8, [](int64_t) { return Millis{3}; }, 100, 5}.play();
  expect_close(seen, 2'100, 0.05, 300);
}

// The time that slots wait between pods counts as well.
TEST(Pace, FollowsJobThatSlowsDown) {
  const auto seen =
      Played{600, 4, [](int64_t i) { return i < 300 ? Millis{200} : Millis{1'000}; }}.play();
  // The window forgets the fast half within half a minute.
  expect_close(seen, 15'000 + 32'000, 0.1, 1'000);
}

TEST(Pace, LateClientIgnoresPodsAlreadyRunning) {
  const Played job{40, 4, [](int64_t) { return minutes(1); }};
  const auto seen = job.play(90'000);
  // Pods that were already running are not measured; the next ones are.
  for (const auto& [now, left, truth] : seen) {
    if (now < 180'000) {
      EXPECT_EQ(left, std::nullopt) << "at " << now;
    }
  }
  expect_close(seen, 180'200, 0.02, 1'500);
}

// A pod that never ends must not look as if it were about to end.
TEST(Pace, StuckPodRaisesEstimate) {
  Pace pace;
  pace.add({.at = 0, .settled = 0, .ended = 0, .running = 0});
  pace.add({.at = 100, .settled = 0, .ended = 0, .running = 2});
  pace.add({.at = 10'000, .settled = 1, .ended = 1, .running = 2});
  pace.add({.at = 20'000, .settled = 2, .ended = 2, .running = 2});
  pace.add({.at = 120'000, .settled = 2, .ended = 2, .running = 2});
  const auto left = pace.left(20);
  ASSERT_TRUE(left.has_value());
  EXPECT_GT(*left, 20 / 2 * 20'000);
}

TEST(Pace, CountsTimeOfRetries) {
  Pace pace;
  for (int64_t i = 0; i <= 10; ++i)  // every second pod fails and runs again
    pace.add({.at = i * 60'000, .settled = i, .ended = 2 * i, .running = 2});
  const auto left = pace.left(10);
  ASSERT_TRUE(left.has_value());
  EXPECT_NEAR(static_cast<double>(*left), 600'000, 65'000);
}

TEST(Pace, GivesNoEstimateWhileNothingRuns) {
  Pace pace;
  pace.add({.at = 0, .settled = 0, .ended = 0, .running = 0});
  pace.add({.at = 1'000, .settled = 0, .ended = 0, .running = 1});
  pace.add({.at = 61'000, .settled = 1, .ended = 1, .running = 0});
  EXPECT_EQ(pace.left(5), std::nullopt);
  EXPECT_EQ(pace.left(0), 0);
}

TEST(Pace, ResetsForAnotherJob) {
  Pace pace;
  for (int64_t i = 0; i < 50; ++i)
    pace.add({.at = i * 100, .settled = i, .ended = i, .running = 1});
  EXPECT_TRUE(pace.left(10).has_value());
  pace.add({.at = 5'100, .settled = 0, .ended = 0, .running = 1});
  EXPECT_EQ(pace.left(10), std::nullopt);
}

TEST(Pace, RateForgetsOldSamples) {
  Pace pace;
  EXPECT_EQ(pace.per_second(), 0);
  pace.add({});
  for (int64_t i = 1; i <= 100; ++i)
    pace.add({.at = i * 1'000, .settled = i * 2, .ended = i * 2, .running = 1});
  EXPECT_DOUBLE_EQ(pace.per_second(), 2);
  for (int64_t i = 101; i <= 200; ++i)
    pace.add({.at = i * 1'000, .settled = 200, .ended = 200, .running = 1});
  EXPECT_DOUBLE_EQ(pace.per_second(), 0);
}

}  // namespace
}  // namespace muster::cli
