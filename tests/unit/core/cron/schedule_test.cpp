// Schedule: the grammar of crontabs, and what starts when clocks change.
#include "core/cron/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono;

int64_t utc(int y, unsigned m, unsigned d, int hour = 0, int minute = 0) {
  return sys_seconds(sys_days(year(y) / m / d)).time_since_epoch().count() + hour * 3600 +
         minute * 60;
}

const Zone kUtc = [](int64_t) { return 0; };
// Berlin in 2026: an hour ahead, and two from March 29 to October 25, changing at 01:00 UTC.
const Zone kBerlin = [](int64_t at) {
  return at >= utc(2026, 3, 29, 1) && at < utc(2026, 10, 25, 1) ? 7200 : 3600;
};

std::string text(int64_t at, const Zone& zone) {
  const int64_t local = at + zone(at);
  const sys_seconds time{seconds(local)};
  const year_month_day date{floor<days>(time)};
  char out[64];
  snprintf(out, sizeof out, "%02u-%02u %02lld:%02lld", unsigned(date.month()), unsigned(date.day()),
           static_cast<long long>((local % 86400 + 86400) % 86400 / 3600),
           static_cast<long long>((local % 3600 + 3600) % 3600 / 60));
  return out;
}

std::vector<std::string> starts(const std::string& schedule, int64_t after, size_t count,
                                const Zone& zone = kUtc) {
  auto parsed = Schedule::parse(schedule);
  if (!parsed.ok()) return {parsed.error().message};
  std::vector<std::string> out;
  Millis at = after * 1000;
  while (out.size() < count) {
    const auto next = parsed->next(at, zone);
    if (!next) {
      out.emplace_back("never");
      break;
    }
    EXPECT_GT(*next, at);
    at = *next;
    out.push_back(text(at / 1000, zone));
  }
  return out;
}

TEST(Schedule, FieldsAsInACrontab) {
  const int64_t from = utc(2026, 1, 1, 0, 0);  // a Thursday
  EXPECT_THAT(starts("*/20 * * * *", from, 3),
              ElementsAre("01-01 00:20", "01-01 00:40", "01-01 01:00"));
  EXPECT_THAT(starts("5 4 * * *", from, 2), ElementsAre("01-01 04:05", "01-02 04:05"));
  EXPECT_THAT(starts("0 0 1 */3 ?", from, 2), ElementsAre("04-01 00:00", "07-01 00:00"));
  EXPECT_THAT(starts("0 9-17/4 * * MON-fri", from, 4),
              ElementsAre("01-01 09:00", "01-01 13:00", "01-01 17:00", "01-02 09:00"));
  EXPECT_THAT(starts("50/5,3 23 31 dec *", from, 3),
              ElementsAre("12-31 23:03", "12-31 23:50", "12-31 23:55"));
  EXPECT_THAT(starts("@hourly", from, 1), ElementsAre("01-01 01:00"));
  EXPECT_THAT(starts("@weekly", from, 1), ElementsAre("01-04 00:00"));
  EXPECT_THAT(starts("@monthly", from, 1), ElementsAre("02-01 00:00"));
  EXPECT_THAT(starts("@annually", from + 60, 1), ElementsAre("01-01 00:00"));
}

TEST(Schedule, EitherDayMatchesIfBothAreRestricted) {
  const int64_t from = utc(2026, 1, 1);
  EXPECT_THAT(starts("0 0 13 * 1", from, 3),
              ElementsAre("01-05 00:00", "01-12 00:00", "01-13 00:00"));
  EXPECT_THAT(starts("0 0 * * 1", from, 2), ElementsAre("01-05 00:00", "01-12 00:00"));
  EXPECT_THAT(starts("0 0 13 * *", from, 2), ElementsAre("01-13 00:00", "02-13 00:00"));
  // */2 restricts, as in Kubernetes, although it begins with a star.
  EXPECT_THAT(starts("0 0 */10 * 1", from, 3),
              ElementsAre("01-05 00:00", "01-11 00:00", "01-12 00:00"));
}

TEST(Schedule, LeapDaysAndDaysThatDoNotExist) {
  EXPECT_THAT(starts("0 0 29 2 *", utc(2026, 1, 1), 2), ElementsAre("02-29 00:00", "02-29 00:00"));
  EXPECT_THAT(starts("0 0 30 2 *", utc(2026, 1, 1), 1), ElementsAre("never"));
  EXPECT_THAT(starts("0 0 31 * *", utc(2026, 1, 31, 12), 2),
              ElementsAre("03-31 00:00", "05-31 00:00"));
}

TEST(Schedule, ClocksGoForward) {
  EXPECT_THAT(starts("30 2 * * *", utc(2026, 3, 27, 12), 3, kBerlin),
              ElementsAre("03-28 02:30", "03-30 02:30", "03-31 02:30"))
      << "there is no 02:30 on March 29";
  EXPECT_THAT(starts("30 * * * *", utc(2026, 3, 28, 23, 45), 3, kBerlin),
              ElementsAre("03-29 01:30", "03-29 03:30", "03-29 04:30"));
  EXPECT_THAT(starts("0 0 30 * *", utc(2026, 3, 28), 1, kBerlin), ElementsAre("03-30 00:00"));
}

TEST(Schedule, ClocksGoBack) {
  EXPECT_THAT(starts("30 2 * * *", utc(2026, 10, 24, 12), 3, kBerlin),
              ElementsAre("10-25 02:30", "10-25 02:30", "10-26 02:30"));
  EXPECT_THAT(starts("0 0 * * *", utc(2026, 10, 24, 12), 2, kBerlin),
              ElementsAre("10-25 00:00", "10-26 00:00"));
}

TEST(Schedule, IntervalsBeginAnywhere) {
  const auto every = Schedule::parse("@every 1h30m");
  ASSERT_TRUE(every.ok());
  EXPECT_EQ(every->next(10'500, kUtc), 5'410'000);
  EXPECT_EQ(Schedule::parse("@every 10ms")->next(0, kUtc), 1'000) << "a second at least";
  EXPECT_EQ(every->last(10'000, 5'409'999, kUtc), std::nullopt);
  EXPECT_EQ(every->last(10'000, 5'410'000, kUtc), 5'410'000);
  EXPECT_EQ(every->last(10'000, 11'000'000, kUtc), 10'810'000);
}

TEST(Schedule, LastStartOfALongSpan) {
  auto last = [](const char* schedule, int64_t after, int64_t now) {
    const auto found = Schedule::parse(schedule)->last(after * 1000, now * 1000, kUtc);
    return found ? text(*found / 1000, kUtc) : "none";
  };
  EXPECT_EQ(last("0 * * * *", utc(2020, 1, 1), utc(2026, 5, 5, 7, 59)), "05-05 07:00");
  EXPECT_EQ(last("30 6-16/4 * * 1-5", utc(2026, 1, 2, 10, 30), utc(2026, 1, 5, 6, 29)),
            "01-02 14:30");
  EXPECT_EQ(last("0 0 29 2 *", utc(2016, 1, 1), utc(2023, 1, 1)), "02-29 00:00");
  EXPECT_EQ(last("0 0 1 1 *", utc(2026, 1, 1), utc(2026, 12, 31)), "none") << "after, not at";
  EXPECT_EQ(last("0 0 1 1 *", utc(2025, 12, 31), utc(2026, 1, 1)), "01-01 00:00")
      << "at, not before";
}

TEST(Schedule, ErrorsInKubernetesWords) {
  auto why = [](const char* schedule) {
    const auto parsed = Schedule::parse(schedule);
    return parsed.ok() ? std::string("ok") : parsed.error().message;
  };
  EXPECT_EQ(why(""), "empty spec string");
  EXPECT_EQ(why("error"), "expected exactly 5 fields, found 1: [error]");
  EXPECT_EQ(why("* * * * * *"), "expected exactly 5 fields, found 6: [* * * * * *]");
  EXPECT_EQ(why("60 * * * *"), "end of range (60) above maximum (59): 60");
  EXPECT_EQ(why("* * 0 * *"), "beginning of range (0) below minimum (1): 0");
  EXPECT_EQ(why("* * * * 7"), "end of range (7) above maximum (6): 7");
  EXPECT_EQ(why("9-5 * * * *"), "beginning of range (9) beyond end of range (5): 9-5");
  EXPECT_EQ(why("*/0 * * * *"), "step of range should be a positive number: */0");
  EXPECT_EQ(why("1-2-3 * * * *"), "too many hyphens: 1-2-3");
  EXPECT_EQ(why("*/2/3 * * * *"), "too many slashes: */2/3");
  EXPECT_EQ(why("x * * * *"),
            "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax");
  EXPECT_EQ(why("* * * janu *"),
            "failed to parse int from janu: strconv.Atoi: parsing \"janu\": invalid syntax");
  EXPECT_EQ(why("99999999999999999999 * * * *"),
            "failed to parse int from 99999999999999999999: strconv.Atoi: parsing "
            "\"99999999999999999999\": value out of range");
  EXPECT_EQ(why("@often"), "unrecognized descriptor: @often");
  EXPECT_THAT(why("@every x"), ::testing::StartsWith("failed to parse duration @every x: "));
}

}  // namespace
}  // namespace muster::core
