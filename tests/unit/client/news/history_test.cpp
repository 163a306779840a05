// Entries of the history as tables and lines.
#include "client/news/history.hpp"

#include "base/text/time_text.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace muster::cli {
namespace {

// Sets the time zone, and restores it.
struct InZone {
  explicit InZone(const char* zone) {
    if (const char* now = std::getenv("TZ")) before = now;
    setenv("TZ", zone, 1);
    tzset();
  }
  ~InZone() {
    before.empty() ? unsetenv("TZ") : setenv("TZ", before.c_str(), 1);
    tzset();
  }
  std::string before;
};

Json entry_of(int id, const char* name, const char* created, double cpu = 0) {
  return {{"id", std::to_string(id)},
          {"namespace", "lab"},
          {"name", name},
          {"uid", "u-1"},
          {"user", "alice"},
          {"userId", 1001},
          {"groupId", 4'000'000'000},
          {"queue", "short"},
          {"command", "sh -c\techo"},
          {"state", "Failed"},
          {"reason", "BackoffLimitExceeded"},
          {"created", created},
          {"started", "2026-12-01T17:00:10.000Z"},
          {"ended", "2026-12-01T17:01:10.500Z"},
          {"waitedSeconds", 9.0},
          {"indexed", true},
          {"indexes", 4},
          {"succeeded", 3},
          {"failedIndexes", 1},
          {"cancelledIndexes", 0},
          {"attempts", 5},
          {"failedAttempts", 2},
          {"usage", {{"userSeconds", cpu}, {"systemSeconds", 0.5}, {"peakMemoryBytes", 2 << 20}}},
          {"ranSeconds", 60.0},
          {"cpuHeldSeconds", 90.0},
          {"requests", {{"cpuMillis", 1500}, {"memoryBytes", 4 << 20}}}};
}

const char* const kCreated = "2026-12-01T17:00:00.000Z";
constexpr Millis kNever = 0;

TEST(HistoryCells, Table) {
  const InZone zone("XYZ-1");
  const std::vector<std::string> narrow = {"sweep",
                                           "alice",
                                           "short",
                                           "Failed (BackoffLimitExceeded)",
                                           "3/4",
                                           "2026-12-01T18:00:00+01:00",
                                           "2026-12-01T18:01:10+01:00",
                                           "60.500s",
                                           "45.000s (50%)",
                                           "2048Ki (50%)"};
  Json entry = entry_of(7, "sweep", kCreated, 44.5);
  EXPECT_EQ(history_cells(entry, kNever, false, false), narrow);
  EXPECT_EQ(history_header(false, false).size(), narrow.size());
  EXPECT_EQ(history_cells(entry, kNever, true, true).size(), history_header(true, true).size());
  EXPECT_EQ(history_cells(entry, kNever, true, true).front(), "lab");
  for (const char* field : {"started", "ended", "usage", "user", "userId"}) entry.erase(field);
  const auto cells = history_cells(entry, kNever, false, false);
  EXPECT_EQ(cells[1] + cells[6] + cells[7] + cells[8] + cells[9], "-----");
}

TEST(HistoryTsv, LinesHaveTheColumnsOfTheHeader) {
  const InZone zone("XYZ-1");
  const std::string header = history_tsv_header();
  const std::string line = history_tsv_line(entry_of(7, "sweep", kCreated, 44.5), kNever);
  EXPECT_EQ(line,
            "7\tlab\tsweep\tu-1\talice\t4000000000\tshort\tFailed\tBackoffLimitExceeded\t\t"
            "2026-12-01T18:00:00+01:00\t2026-12-01T18:00:10+01:00\t2026-12-01T18:01:10+01:00\t\t"
            "9.000\t60.500\t4\t3\t1\t0\t5\t2\t44.500\t0.500\t2097152\t60.000\t90.000\t1.500\t"
            "4194304\tsh -c\\techo\n");
  EXPECT_EQ(std::count(header.begin(), header.end(), '\t'),
            std::count(line.begin(), line.end(), '\t'));
}

TEST(HistoryElapsed, RunningJobsHaveRunUntilNow) {
  Json entry = entry_of(7, "sweep", kCreated);
  entry.erase("ended");
  const Millis started = *parse_time("2026-12-01T17:00:10Z");
  EXPECT_EQ(elapsed_seconds(entry, started + 1500), 1.5);
  entry.erase("started");
  EXPECT_FALSE(elapsed_seconds(entry, started));
}

std::string ids_of(LastEntries& last) {
  std::string text;
  for (const Json& entry : last.take()) text += entry["id"].get<std::string>() + " ";
  return text;
}

TEST(LastEntries, KeepsTheLastInTheOrder) {
  struct Case {
    const char* by;
    bool reverse;
    size_t limit;
    const char* ids;
  };
  for (const auto& [by, reverse, limit, ids] : {
           Case{"created", false, 0, "1 2 3 4 5 "},
           Case{"created", false, 2, "4 5 "},
           Case{"created", true, 2, "5 4 "},
           Case{"cpu", false, 0, "4 5 3 2 1 "},
           Case{"cpu", true, 1, "1 "},
           Case{"name", false, 3, "1 3 5 "},
       }) {
    LastEntries last(by, reverse, limit, kNever);
    for (const auto& [id, name, cpu] :
         {std::tuple(1, "e", 50.0), {2, "b", 40.0}, {3, "f", 30.0}, {4, "a", 10.0}, {5, "g", 20.0}})
      last.add(entry_of(id, name, ("2026-12-0" + std::to_string(id) + "T00:00:00Z").c_str(), cpu));
    EXPECT_EQ(last.seen(), 5u);
    EXPECT_EQ(ids_of(last), ids) << by << " " << limit;
  }
}

TEST(LastEntries, WhatHasNotEndedIsLast) {
  LastEntries last("ended", false, 0, kNever);
  Json running = entry_of(1, "a", kCreated);
  running.erase("ended");
  last.add(running);
  last.add(entry_of(2, "b", kCreated));
  EXPECT_EQ(ids_of(last), "2 1 ");
}

}  // namespace
}  // namespace muster::cli
