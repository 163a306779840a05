// Which jobs a start sets aside, by what earlier starts have left in the file.
#include "coordinator/poisoned.hpp"

#include <gtest/gtest.h>

namespace muster::coordinator {
namespace {

using Jobs = std::set<JobId>;

TEST(Poisoned, ThreeCrashesInARowAtOneJobSetItAside) {
  struct Row {
    const char* what;
    std::string text;
    Jobs aside;
  };
  const Row rows[] = {
      {"a new data-dir", "", {}},
      {"two crashes", "start 1\njob 7\nstart 1\njob 7\n", {}},
      {"three", "start 1\njob 7\nstart 1\njob 7\nstart 1\njob 7\n", {7}},
      {"after others", "start 1\njob 5\nstart 1\njob 7\nstart 1\njob 7\nstart 1\njob 7\n", {7}},
      {"another job between", "start 1\njob 7\nstart 1\njob 8\nstart 1\njob 7\n", {}},
      {"a start that ended otherwise", "start 1\njob 7\nstart 1\njob 7\nstart 1\n", {}},
      {"or in between", "start 1\njob 7\nstart 1\nstart 1\njob 7\n", {}},
      {"with another version", "start 0\njob 7\nstart 1\njob 7\nstart 1\njob 7\n", {}},
      {"by now there is another version", "start 0\njob 7\nstart 0\njob 7\nstart 0\njob 7\n", {}},
      {"it stays aside", "start 1\naside 7\n", {7}},
      {"until there is another version", "start 0\naside 7\n", {}},
      {"a second one",
       "start 1\naside 7\njob 9\nstart 1\naside 7\njob 9\nstart 1\naside 7\njob 9\n",
       {7, 9}},
      {"torn and foreign lines",
       "job 7\nwhat\nstart 1\njob 7\n\nstart 1\njob 7\njob x\nstart 1\njob 7",
       {7}},
      {"several threads, the last one counts",
       "start 1\njob 3\njob 7\nstart 1\njob 7\nstart 1\njob 7\n",
       {7}},
  };
  for (const Row& row : rows) EXPECT_EQ(read_crashes(row.text, "1").aside, row.aside) << row.what;
}

TEST(Poisoned, WhatIsKeptSaysTheSameAndDoesNotGrow) {
  std::string text;
  for (int start = 0; start < 10; ++start) {
    CrashHistory history = read_crashes(text, "1");
    EXPECT_EQ(history.aside, start < kCrashesMax ? Jobs{} : Jobs{7}) << start;
    EXPECT_LE(history.kept.size(), 100u);
    text = history.kept + "start 1\n" + (history.aside.empty() ? "" : "aside 7\n") +
           (start < kCrashesMax ? "job 7\n" : "");
  }
}

}  // namespace
}  // namespace muster::coordinator
