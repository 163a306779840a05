// Windows of nodes: how they are written, and which pods may start before and in them.
#include "core/cluster/nodes/windows.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::core {
namespace {

constexpr Millis kNoon = 1'800'000'000'000, kHourMs = 3'600'000;

Window course() {
  return {"course",         kNoon + kHourMs, kNoon + 3 * kHourMs, {"ann"},
          {{"hpc1", 2001}}, "olga",          "for a course"};
}

TEST(Windows, AreReadAsTheyAreWritten) {
  const Window bare{.name = "fw", .from_ms = kNoon, .until_ms = kNoon + 1000};
  for (const Window& window : {course(), bare}) {
    std::string wrong;
    EXPECT_EQ(read_window(window.name, window_text(window), wrong), window) << wrong;
  }
}

TEST(Windows, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "must have from and until"},
      {"from=2027-01-15T08:00:00Z", "must have from and until"},
      {"from=2027-01-15T08:00:00Z until=2027-01-15T08:00:00Z", "must have from and until"},
      {"from=now until=2027-01-15T08:00:00Z", "from: must be an instant"},
      {"from=2027-01-15T08:00:00Z until=2027-01-15T09:00:00Z groups=hpc1", "groups: must be"},
      {"from=2027-01-15T08:00:00Z until=2027-01-15T09:00:00Z users=", "users: must be"},
      {"from=2027-01-15T08:00:00Z until=2027-01-15T09:00:00Z nodes=a", "`nodes`: must be"},
      {"soon", "`soon`: must be KEY=VALUE"}};
  for (const auto& [text, expected] : cases) {
    std::string wrong;
    EXPECT_FALSE(read_window("w", text, wrong)) << text;
    EXPECT_TRUE(wrong.starts_with(expected)) << text << ": " << wrong;
  }
}

TEST(Windows, NewOnesAreSigned) {
  Window window = course();
  window.by = "mallory";
  StringMap now = {{"reservation.muster.dev/course", window_text(window)}, {"other", "x"}};
  sign_windows({}, now, "olga");
  ASSERT_EQ(windows_of(now).size(), 1u);
  EXPECT_EQ(windows_of(now)[0], course());
  StringMap again = now;
  sign_windows(now, again, "otto");
  EXPECT_EQ(again, now);
  sign_windows({}, again, "uid 1001");
  ASSERT_EQ(windows_of(again).size(), 1u);
  EXPECT_EQ(windows_of(again)[0].by, "uid-1001");
}

// Who may start when: before, in and after a window.
TEST(Windows, APodStartsOnlyWhereItEndsInTime) {
  const Stay hour{.limit_ms = kHourMs - 30'000}, endless{};
  Stay ann = endless, member = endless, stranger = endless;
  ann.user = "ann";
  member = {.user = "bob", .groups = {100, 2001}};
  stranger = {.user = "eve", .groups = {100}};
  NodeEnds maintenance{{}, {course()}}, with_users{{}, {course()}};
  maintenance.windows[0].users.clear();
  maintenance.windows[0].groups.clear();
  struct Case {
    const NodeEnds& ends;
    const Stay& stay;
    Millis at_ms;  // from noon on
    bool starts;
    const char* what;
  };
  const std::vector<Case> cases = {
      {maintenance, hour, 0, true, "it ends just in time"},
      {maintenance, hour, 1, false, "its grace would be in the way"},
      {maintenance, endless, -24 * kHourMs, false, "nobody knows when it ends"},
      {maintenance, hour, kHourMs, false, "the window has begun"},
      {maintenance, hour, 3 * kHourMs - 1, false, "the window is not over"},
      {maintenance, endless, 3 * kHourMs, true, "the window is over"},
      {maintenance, ann, 2 * kHourMs, false, "maintenance is for nobody"},
      {with_users, ann, 2 * kHourMs, true, "it is for her"},
      {with_users, ann, 0, true, "it is for her, and she need not end before"},
      {with_users, member, 2 * kHourMs, true, "it is for his group"},
      {with_users, stranger, 2 * kHourMs, false, "it is for others"},
      {with_users, hour, 0, true, "it ends in time"},
  };
  for (const Case& one : cases)
    EXPECT_EQ(!first_conflict(one.ends, one.stay, kNoon + one.at_ms), one.starts) << one.what;
  EXPECT_FALSE(must_leave(with_users, stranger, kNoon + kHourMs - 1));
  EXPECT_TRUE(must_leave(with_users, stranger, kNoon + kHourMs));
  EXPECT_FALSE(must_leave(with_users, ann, kNoon + kHourMs));
  EXPECT_FALSE(must_leave(with_users, stranger, kNoon + 3 * kHourMs));
}

// In an allocation, pods without a limit run until its end.
TEST(Windows, ANodeThatEndsTakesPodsWithoutALimit) {
  const NodeEnds ends{kNoon, {}};
  const Stay endless{}, hour{.limit_ms = kHourMs, .grace_ms = 0};
  EXPECT_FALSE(first_conflict(ends, endless, kNoon - 30'000));
  EXPECT_TRUE(first_conflict(ends, endless, kNoon - 29'999)) << "it would have to end at once";
  EXPECT_FALSE(first_conflict(ends, hour, kNoon - kHourMs));
  EXPECT_TRUE(first_conflict(ends, hour, kNoon - kHourMs + 1));
  EXPECT_FALSE(must_leave(ends, endless, kNoon + 1)) << "its agent ends it";
}

TEST(Windows, TurnWhenTheyBeginAndEnd) {
  const NodeEnds ends{{}, {course()}};
  EXPECT_FALSE(window_turns(ends, kNoon, kNoon + kHourMs - 1));
  EXPECT_TRUE(window_turns(ends, kNoon + kHourMs - 1, kNoon + kHourMs));
  EXPECT_FALSE(window_turns(ends, kNoon + kHourMs, kNoon + 2 * kHourMs));
  EXPECT_TRUE(window_turns(ends, kNoon + 2 * kHourMs, kNoon + 3 * kHourMs));
}

}  // namespace
}  // namespace muster::core
