// Reports: what is summed under which key.
#include "core/history/report.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

HistoryEntry ended_job(const char* user, const char* queue, std::optional<Millis> ended) {
  HistoryEntry entry;
  entry.owner = 1001;
  entry.user = user;
  entry.queue = queue;
  entry.state = ended ? PastState::complete : PastState::running;
  entry.ended = ended;
  entry.started = 5;
  entry.waited_ms = 3;
  entry.indexes = 10;
  entry.succeeded = 9;
  entry.attempts = 11;
  entry.failed_attempts = 2;
  entry.used = {4'000'000, 1'000'000, 700};
  entry.ran_ms = 10'000;
  entry.requested.cpu_millis = 2000;
  entry.requested.named["nvidia.com/gpu"] = 3;
  return entry;
}

// "alice short: 2; bob short: 1"
std::string jobs_by_key(const UsageReport& report) {
  std::string text;
  for (const auto& [key, sum] : report.sums()) {
    if (!text.empty()) text += "; ";
    for (const std::string& part : key) text += part + " ";
    text.back() = ':';
    text += " " + std::to_string(sum.jobs);
  }
  return text;
}

TEST(UsageReport, SumsUpJobsOfAKey) {
  UsageReport report({ReportColumn::user}, {0, 1000}, 500);
  report.add(ended_job("alice", "short", 10));
  HistoryEntry failed = ended_job("alice", "long", 20);
  failed.state = PastState::failed;
  failed.used.peak_bytes = 900;
  failed.started = std::nullopt;
  report.add(failed);
  ASSERT_EQ(report.sums().size(), 1u);
  const UsageSum& sum = report.sums().at({"alice"});
  EXPECT_EQ(sum.jobs, 2u);
  EXPECT_EQ(sum.complete, 1u);
  EXPECT_EQ(sum.failed, 1u);
  EXPECT_EQ(sum.indexes, 20u);
  EXPECT_EQ(sum.succeeded, 18u);
  EXPECT_EQ(sum.attempts, 22u);
  EXPECT_EQ(sum.failed_attempts, 4u);
  EXPECT_EQ(sum.used, (Usage{8'000'000, 2'000'000, 900}));
  EXPECT_EQ(sum.ran_ms, 20'000);
  EXPECT_EQ(sum.cpu_held_ms, 40'000);
  EXPECT_EQ(sum.held_ms.at("nvidia.com/gpu"), 60'000);
  EXPECT_EQ(sum.started, 1u) << "one never started, so it has no waiting time";
  EXPECT_EQ(sum.waited_ms, 3);
}

TEST(UsageReport, ColumnsMakeKeys) {
  UsageReport report({ReportColumn::queue, ReportColumn::user}, {0, 1000}, 500);
  report.add(ended_job("alice", "short", 10));
  report.add(ended_job("bob", "short", 10));
  report.add(ended_job("alice", "short", 10));
  report.add(ended_job("alice", "long", 10));
  EXPECT_EQ(jobs_by_key(report), "long alice: 1; short alice: 2; short bob: 1");
}

TEST(UsageReport, EachJobCountsInTheSpanOfItsEnd) {
  UsageReport report({ReportColumn::span}, {100, 200, 300}, 250);
  for (const Millis ended : {99, 100, 199, 200, 299, 300})
    report.add(ended_job("alice", "short", ended));
  EXPECT_EQ(jobs_by_key(report), "0: 2; 1: 2") << "what ended before or after counts nowhere";
  report.add(ended_job("alice", "short", std::nullopt));
  EXPECT_EQ(jobs_by_key(report), "0: 2; 1: 3") << "what has not ended counts now";
}

TEST(UsageReport, UsersAndGroupsWithoutNamesAreNumbers) {
  UsageReport report({ReportColumn::user, ReportColumn::group}, {0, 1000}, 500);
  HistoryEntry entry = ended_job("", "short", 10);
  entry.group = 100;
  report.add(entry);
  entry.owner = std::nullopt;
  report.add(entry);
  EXPECT_EQ(jobs_by_key(report), " : 1; 1001 100: 1");
}

TEST(ReportColumn, Names) {
  for (const auto column :
       {ReportColumn::user, ReportColumn::group, ReportColumn::queue, ReportColumn::ns,
        ReportColumn::name, ReportColumn::state, ReportColumn::span})
    EXPECT_EQ(report_column(name(column)), column);
  EXPECT_FALSE(report_column("month"));
}

}  // namespace
}  // namespace muster::core
