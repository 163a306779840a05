// Instants as people type them.
#include "cli/verbs/when.hpp"

#include "base/text/time_text.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace muster::cli {
namespace {

struct WhenTest : testing::Test {
  WhenTest() {
    setenv("TZ", "XYZ-1", 1);  // an hour ahead of UTC
    tzset();
  }
  ~WhenTest() override {
    unsetenv("TZ");
    tzset();
  }
  const Millis now = *parse_time("2026-12-05T11:30:00Z");
};

TEST_F(WhenTest, PastTable) {
  for (const auto& [text, instant] : std::initializer_list<std::pair<const char*, const char*>>{
           {"2026-12-01", "2026-11-30T23:00:00Z"},
           {"2026-12", "2026-11-30T23:00:00Z"},
           {"2026-12-01T18:00", "2026-12-01T17:00:00Z"},
           {"2026-12-01 18:00:07", "2026-12-01T17:00:07Z"},
           {"2026-12-01T18:00:00+02:00", "2026-12-01T16:00:00Z"},
           {"12:00", "2026-12-05T11:00:00Z"},
           {"12:30", "2026-12-05T11:30:00Z"},
           {"13:00", "2026-12-04T12:00:00Z"},
           {"today", "2026-12-04T23:00:00Z"},
           {"yesterday", "2026-12-03T23:00:00Z"},
           {"7d", "2026-11-28T11:30:00Z"},
           {"-90m", "2026-12-05T10:00:00Z"},
       }) {
    const auto at = parse_past(text, now);
    ASSERT_TRUE(at.ok()) << text << ": " << at.error().message;
    EXPECT_EQ(time_text(*at), instant) << text;
  }
  for (const char* text : {"", "-", "soon", "2026-13", "25:00", "7x"})
    EXPECT_FALSE(parse_past(text, now).ok()) << text;
}

TEST_F(WhenTest, FutureTable) {
  for (const auto& [text, instant] : std::initializer_list<std::pair<const char*, const char*>>{
           {"2026-12-06T18:00", "2026-12-06T17:00:00Z"},
           {"13:00", "2026-12-05T12:00:00Z"},
           {"12:00", "2026-12-06T11:00:00Z"},
           {"+4h", "2026-12-05T15:30:00Z"},
           {"4h", "2026-12-05T15:30:00Z"},
       })
    EXPECT_EQ(time_text(*parse_when(text, now)), instant) << text;
  EXPECT_FALSE(parse_when("2026-12-06", now).ok()) << "a day is no instant of the future";
}

// mktime() would make it a day of the next month.
TEST_F(WhenTest, ADayThatDoesNotExistIsRefused) {
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
