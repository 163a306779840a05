// Which jobs a start sets aside, given what earlier starts have left in the file.
#include "coordinator/poisoned.hpp"

#include <gtest/gtest.h>

namespace muster::coordinator {
namespace {

using Jobs = std::set<JobId>;

TEST(Poisoned, JobIsSetAsideAfterThreeCrashesInRow) {
  struct Row {
    const char* what;
    std::string text;
    Jobs aside;
  };
  const std::string once = "start 1\ncrash 7 1\n", other = "start 1\ncrash 8 1\n";
  const Row rows[] = {
      {"a new data-dir", "", {}},
      {"two crashes", once + once, {}},
      {"three", once + once + once, {7}},
      {"before they had come to serve", "start 1\ncrash 7 1\ncrash 7 1\ncrash 7 1\n", {7}},
      {"after others", other + once + once + once, {7}},
      {"another job between", once + other + once, {}},
      {"a start that ended otherwise", once + once + once + "start 1\n", {}},
      {"or in between", once + "start 1\n" + once + once, {}},
      {"with another version", "start 0\ncrash 7 0\n" + once + once, {}},
      {"by now there is another version", "start 0\ncrash 7 0\ncrash 7 0\ncrash 7 0\n", {}},
      {"another version that never came to serve",
       "start 0\n" + std::string("crash 7 1\n") + "crash 7 1\n",
       {}},
      {"it stays aside", "start 1\naside 7\n", {7}},
      {"also after crashes at another", "start 1\naside 7\ncrash 9 1\ncrash 9 1\n", {7}},
      {"until there is another version", "start 0\naside 7\n", {}},
      {"a second one",
       "start 1\naside 7\ncrash 9 1\nstart 1\naside 7\ncrash 9 1\ncrash 9 1\n",
       {7, 9}},
      {"torn and foreign lines",
       "aside 7\nwhat\n\n" + once + "crash x 1\ncrash\n" + once + "start 1\ncrash 7 1",
       {7}},
  };
  for (const Row& row : rows) EXPECT_EQ(read_crashes(row.text, "1").aside, row.aside) << row.what;
}

TEST(Poisoned, KeptCrashHistoryIsEquivalentAndBounded) {
  std::string text;
  for (int start = 0; start < 10; ++start) {
    CrashHistory history = read_crashes(text, "1");
    EXPECT_EQ(history.aside, start < kCrashesMax ? Jobs{} : Jobs{7}) << start;
    EXPECT_LE(history.kept.size(), 100u);
    text = history.kept + "start 1\n" + (history.aside.empty() ? "" : "aside 7\n") +
           (start < kCrashesMax ? "crash 7 1\n" : "");
  }
}

}  // namespace
}  // namespace muster::coordinator
