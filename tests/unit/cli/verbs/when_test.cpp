#include "cli/verbs/when.hpp"

#include "base/text/time_text.hpp"

#include <gtest/gtest.h>

namespace muster::cli {

namespace {

TEST(When, IsAnInstantOrATimeFromNow) {
  constexpr Millis kNow = 1'800'000'000'000;
  EXPECT_EQ(*parse_when("+4h", kNow), kNow + 4 * 3'600'000);
  EXPECT_EQ(*parse_when("2027-02-28T10:00:00Z", kNow), *parse_time("2027-02-28T10:00:00Z"));
  EXPECT_EQ(when_text(*parse_when("2027-02-28T10:00", kNow)), "2027-02-28 10:00:00");
  EXPECT_EQ(when_text(*parse_when("2028-02-29 10:00:30", kNow)), "2028-02-29 10:00:30");
  EXPECT_EQ(*parse_when("2026-12-31T23:59:60", kNow), *parse_when("2027-01-01T00:00", kNow));
  EXPECT_GT(*parse_when("18:00", kNow), kNow);
}

// mktime() would make it a day of the next month.
TEST(When, ADayThatDoesNotExistIsRefused) {
  for (const char* text : {"2027-02-30T10:00", "2027-02-30 10:00:00", "2027-02-30T10:00:00Z"})
    EXPECT_EQ(parse_when(text, 0).error().message,
              "`" + std::string(text) + "`: there is no such day: February 2027 has 28 days");
  EXPECT_EQ(parse_when("2026-11-31T00:00", 0).error().message,
            "`2026-11-31T00:00`: there is no such day: November 2026 has 30 days");
  EXPECT_NE(parse_when("2027-02-28", 0).error().message.find("must be an instant"),
            std::string::npos);
}

}  // namespace

}  // namespace muster::cli
