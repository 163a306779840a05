// Reports: pages added up, periods in local time, tables.
#include "client/news/report.hpp"

#include "base/text/time_text.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace muster::cli {
namespace {

Json sum_of(const char* user, const char* span, int jobs) {
  return {
      {"by", {{"user", user}, {"span", span}}},
      {"jobs", jobs},
      {"complete", jobs},
      {"failed", 0},
      {"indexes", 10 * jobs},
      {"succeeded", 9 * jobs},
      {"attempts", 11 * jobs},
      {"failedAttempts", jobs},
      {"usage",
       {{"userSeconds", 3600.0 * jobs}, {"systemSeconds", 0.0}, {"peakMemoryBytes", jobs << 20}}},
      {"ranSeconds", 7200.0 * jobs},
      {"cpuHeldSeconds", 7200.0 * jobs},
      {"heldSeconds", {{"nvidia.com/gpu", 2.0 * jobs}}},
      {"started", jobs},
      {"waitedSeconds", 4.0 * jobs}};
}

TEST(UsageTable, PagesAddUp) {
  UsageTable table({"user", "span"}, {{0, 1, 2}, {"2026-11", "2026-12"}}, "month");
  table.add(sum_of("alice", "0", 1));
  table.add(sum_of("bob", "1", 2));
  table.add(sum_of("alice", "0", 3));
  const std::vector<std::vector<std::string>> cells = table.cells(true);
  ASSERT_EQ(cells.size(), 4u);
  EXPECT_EQ(cells[0][1], "MONTH");
  EXPECT_EQ(cells[1], (std::vector<std::string>{"alice", "2026-11", "4", "0", "36/40", "44", "4",
                                                "4.00h", "8.00h", "50%", "3072Ki", "4.000s"}))
      << "of peaks the largest, of waiting times the average";
  EXPECT_EQ(cells[2][0] + cells[2][1] + cells[2][2], "bob2026-122");
  EXPECT_EQ(cells[3][0] + cells[3][1] + cells[3][2], "TOTAL6");
  EXPECT_EQ(table.cells(false).size(), 3u);
  const std::string tsv = table.tsv(true);
  EXPECT_TRUE(tsv.starts_with("User\tMonth\tJobs\t")) << tsv;
  EXPECT_NE(
      tsv.find("alice\t2026-11\t4\t4\t0\t0\t0\t40\t36\t0\t0\t44\t4\t14400.000\t0.000\t3145728\t"
               "28800.000\t28800.000\t4\t16.000\tnvidia.com/gpu=8.000\n"),
      std::string::npos)
      << tsv;
  EXPECT_EQ(table.json()["items"][0]["by"]["month"], "2026-11");
}

struct PeriodsTest : testing::Test {
  PeriodsTest() {
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
  }
  ~PeriodsTest() override {
    unsetenv("TZ");
    tzset();
  }
  // "2026-11 from 2026-10-31T23:00:00Z, …; until 2026-12-05T00:00:00Z"
  static std::string shown(const std::string& word, const char* since, const char* until,
                           size_t most = 100) {
    const auto periods = periods_of(word, *parse_time(since), *parse_time(until), most);
    if (!periods) return "too many";
    std::string text;
    for (size_t i = 0; i < periods->names.size(); ++i)
      text += periods->names[i] + " from " + time_text(periods->bounds[i]) + "; ";
    return text + "until " + time_text(periods->bounds.back());
  }
};

TEST_F(PeriodsTest, MonthsAreLocalAndCutToTheSpan) {
  EXPECT_EQ(shown("month", "2026-10-15T00:00:00Z", "2026-12-05T00:00:00Z"),
            "2026-10 from 2026-10-15T00:00:00Z; 2026-11 from 2026-10-31T23:00:00Z; "
            "2026-12 from 2026-11-30T23:00:00Z; until 2026-12-05T00:00:00Z");
}

TEST_F(PeriodsTest, DaysAreNotAllOfOneLength) {
  EXPECT_EQ(shown("day", "2026-10-24T22:00:00Z", "2026-10-26T10:00:00Z"),
            "2026-10-25 from 2026-10-24T22:00:00Z; 2026-10-26 from 2026-10-25T23:00:00Z; "
            "until 2026-10-26T10:00:00Z")
      << "the clocks are set back on that night";
}

TEST_F(PeriodsTest, WeeksBeginOnMonday) {
  EXPECT_EQ(shown("week", "2026-11-29T12:00:00Z", "2026-12-01T00:00:00Z"),
            "2026-11-23 from 2026-11-29T12:00:00Z; 2026-11-30 from 2026-11-29T23:00:00Z; "
            "until 2026-12-01T00:00:00Z");
  EXPECT_EQ(time_text(period_begin("year", *parse_time("2026-06-01T00:00:00Z"))),
            "2025-12-31T23:00:00Z");
}

TEST_F(PeriodsTest, AreBounded) {
  EXPECT_EQ(shown("day", "2026-01-01T00:00:00Z", "2026-12-01T00:00:00Z"), "too many");
}

}  // namespace
}  // namespace muster::cli
