// Instants as people type them.
#include "cli/verbs/when.hpp"

#include "base/text/time_text.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>

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

TEST_F(WhenTest, TheDayBeforeTheFirstIsOfTheMonthBefore) {
  const Millis first = *parse_time("2026-12-01T09:00:00Z");
  EXPECT_EQ(time_text(*parse_past("23:00", first)), "2026-11-30T22:00:00Z");
  EXPECT_EQ(time_text(*parse_past("yesterday", first)), "2026-11-29T23:00:00Z");
}

TEST_F(WhenTest, FutureTable) {
  for (const auto& [text, instant] : std::initializer_list<std::pair<const char*, const char*>>{
           {"2026-12-06T18:00", "2026-12-06T17:00:00Z"},
           {"13:00", "2026-12-05T12:00:00Z"},
           {"12:00", "2026-12-06T11:00:00Z"},
           {"4pm", "2026-12-05T15:00:00Z"},
           {"9 AM", "2026-12-06T08:00:00Z"},
           {"4:30pm", "2026-12-05T15:30:00Z"},
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

class BeginTimes : public ::testing::Test {
 protected:
  BeginTimes() {
    ::setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    ::tzset();
  }
  ~BeginTimes() override {
    ::unsetenv("TZ");
    ::tzset();
  }
  // At 2026-03-28 13:00:00, the day before the clocks go forward.
  static std::string read(const std::string& text) {
    const auto at = parse_begin(text, kNow);
    return at ? when_text(*at).substr(0, 19) : "wrong";  // without the zone
  }
  static constexpr Millis kNow = 1'774'699'200'000;
};

TEST_F(BeginTimes, AreThoseOfSbatchAndOurs) {
  ASSERT_EQ(when_text(kNow), "2026-03-28 13:00:00 CET");
  EXPECT_EQ(when_text(kNow + Millis{86'400'000}), "2026-03-29 14:00:00 CEST");
  const std::pair<const char*, const char*> cases[] = {
      {"22:00", "2026-03-28 22:00:00"},
      {"08:30:15", "2026-03-29 08:30:15"},
      {"2027-01-31T08:00", "2027-01-31 08:00:00"},
      {"2027-01-31T08:00:05", "2027-01-31 08:00:05"},
      {"2027-01-31T08:00:00Z", "2027-01-31 09:00:00"},
      {"2027-01-31", "2027-01-31 00:00:00"},
      {"1/31/27", "2027-01-31 00:00:00"},
      {"12/24", "2026-12-24 00:00:00"},
      {"013127", "2027-01-31 00:00:00"},
      {"0131", "2027-01-31 00:00:00"},
      {"01/31", "2027-01-31 00:00:00"},
      {"0328", "2026-03-28 00:00:00"},
      {"45", "wrong"},
      {"now", "2026-03-28 13:00:00"},
      {"now+60", "2026-03-28 13:01:00"},
      {"now+1hour", "2026-03-28 14:00:00"},
      {"now+2hours", "2026-03-28 15:00:00"},
      {"now+30minutes", "2026-03-28 13:30:00"},
      {"now+1week", "2026-04-04 14:00:00"},
      {"+4h", "2026-03-28 17:00:00"},
      {"today", "2026-03-28 00:00:00"},
      {"tomorrow", "2026-03-29 00:00:00"},
      {"midnight", "2026-03-29 00:00:00"},
      {"noon", "2026-03-29 12:00:00"},
      {"teatime", "2026-03-28 16:00:00"},
      {"", "wrong"},
      {"soon", "wrong"},
      {"now+", "wrong"},
      {"now+1fortnight", "wrong"},
      {"now-1hour", "wrong"},
      {"2027-13-31", "wrong"},
      {"25:00", "wrong"},
  };
  for (const auto& [typed, is] : cases) EXPECT_EQ(read(typed), is) << typed;
}

}  // namespace
}  // namespace muster::cli
