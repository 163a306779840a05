// Trace: the steps of a pod's way, from attempts as the API has them.
#include "client/news/trace.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::cli {
namespace {

// "12.345": the second and the milliseconds within one minute.
Json trace_instant(const std::string& seconds) {
  return "2026-12-01T17:00:" + seconds + "Z";
}

Json trace_attempt(const std::vector<std::pair<std::string, std::string>>& instants,
                   const Json& more = Json::object()) {
  Json attempt = {{"index", 3}, {"attempt", 1}, {"pod", "sweep-3-x7k2p"}, {"node", "n1"}};
  for (const auto& [name, seconds] : instants) attempt[name] = trace_instant(seconds);
  attempt.update(more);
  return attempt;
}

// "created 01.000 +100 | bound 02.000 +1000 to n1", with n for steps of the node and ? for those
// that seem to precede the one before.
std::string told(const TraceSteps& steps) {
  std::string text;
  for (const TraceStep& step : steps) {
    text += (text.empty() ? "" : " | ") + step.name + (step.by_node ? "(n)" : "");
    if (!step.at.empty()) text += " " + step.at.substr(17, 6);
    if (step.since_ms) text += " +" + std::to_string(*step.since_ms);
    if (step.precedes) text += " ?";
    if (!step.what.empty()) text += " " + step.what;
  }
  return text;
}

TEST(Trace, HasTheStepsThatWereRecorded) {
  const Json succeeded = {{"cause", "exited"}, {"exitCode", 0}, {"counted", "succeeded"}};
  const Json killed = {
      {"cause", "killed"}, {"exitCode", 143}, {"signal", 15}, {"counted", "released"}};
  const Json lost = {{"cause", "node-lost"},
                     {"exitCode", 137},
                     {"signal", 9},
                     {"counted", "failed"},
                     {"disruption", "DeletionByTaintManager"}};
  const Json run = {{"container", "main"},
                    {"run", 0},
                    {"exitCode", 3},
                    {"started", trace_instant("03.000")},
                    {"ended", trace_instant("04.000")}};
  struct Row {
    const char* title;
    Json attempt;
    std::string steps;
  };
  const Row rows[] = {
      {"succeeded",
       trace_attempt({{"created", "01.100"},
                      {"bound", "01.250"},
                      {"started", "01.260"},
                      {"ended", "05.000"},
                      {"recorded", "05.004"}},
                     succeeded),
       "accepted 01.000 its job | created 01.100 +100 | bound 01.250 +150 to n1 | started(n) "
       "01.260 +10 | "
       "ended(n) 05.000 +3740 exit 0 | counted 05.004 +4 success"},
      {"waits for a slot", trace_attempt({{"created", "01.100"}}, {{"node", ""}}),
       "accepted 01.000 its job | created 01.100 +100"},
      {"bound, not known to run", trace_attempt({{"created", "01.100"}, {"bound", "02.000"}}),
       "accepted 01.000 its job | created 01.100 +100 | bound 02.000 +900 to n1"},
      {"deleted while it ran",
       trace_attempt({{"created", "01.000"},
                      {"bound", "02.000"},
                      {"started", "03.000"},
                      {"stopping", "04.000"},
                      {"ended", "04.500"},
                      {"recorded", "04.600"}},
                     killed),
       "accepted 01.000 its job | created 01.000 +0 | bound 02.000 +1000 to n1 | started(n) 03.000 "
       "+1000 | "
       "stopping 04.000 +1000 its end was ordered | ended(n) 04.500 +500 SIGTERM (exit 143) | "
       "counted 04.600 +100 not counted (removed)"},
      {"deleted while it waited, in one record",
       trace_attempt(
           {{"created", "01.000"},
            {"stopping", "04.000"},
            {"ended", "04.000"},
            {"recorded", "04.000"}},
           {{"cause", "never-started"}, {"exitCode", 137}, {"counted", "released"}, {"node", ""}}),
       "accepted 01.000 its job | created 01.000 +0 | stopping 04.000 +3000 its end was ordered | "
       "ended 04.000 +0 exit 137 | counted 04.000 +0 not counted (removed)"},
      {"lost with its node: what the node did not report is not invented",
       trace_attempt({{"created", "01.000"},
                      {"bound", "02.000"},
                      {"ended", "50.000"},
                      {"recorded", "50.000"}},
                     lost),
       "accepted 01.000 its job | created 01.000 +0 | bound 02.000 +1000 to n1 | started(n) not "
       "reported | "
       "ended 50.000 +48000 SIGKILL (exit 137), DeletionByTaintManager | counted 50.000 +0 "
       "failure"},
      {"could not start",
       trace_attempt({{"created", "01.000"},
                      {"bound", "02.000"},
                      {"ended", "03.000"},
                      {"recorded", "03.000"}},
                     {{"cause", "start-failed"}, {"exitCode", 127}, {"counted", "failed"}}),
       "accepted 01.000 its job | created 01.000 +0 | bound 02.000 +1000 to n1 | started(n) never "
       "| "
       "ended(n) 03.000 +1000 exit 127 | counted 03.000 +0 failure"},
      {"restarted in place",
       trace_attempt({{"created", "01.000"}, {"bound", "02.000"}, {"started", "03.000"}},
                     {{"runs", {run}}}),
       "accepted 01.000 its job | created 01.000 +0 | bound 02.000 +1000 to n1 | started(n) 03.000 "
       "+1000 | "
       "restarted(n) 04.000 +1000 after exit 3, run 0 of main"},
      {"waits for its replacement",
       trace_attempt(
           {{"created", "01.000"}, {"bound", "02.000"}, {"started", "03.000"}, {"ended", "04.000"}},
           {{"cause", "exited"}, {"exitCode", 1}, {"counted", "not-yet"}}),
       "accepted 01.000 its job | created 01.000 +0 | bound 02.000 +1000 to n1 | started(n) 03.000 "
       "+1000 | "
       "ended(n) 04.000 +1000 exit 1"},
      {"the report of its start was late",
       trace_attempt({{"created", "01.000"},
                      {"bound", "02.000"},
                      {"started", "02.050"},
                      {"ended", "02.047"},
                      {"recorded", "02.060"}},
                     succeeded),
       "accepted 01.000 its job | created 01.000 +0 | bound 02.000 +1000 to n1 | started(n) 02.050 "
       "+50 | "
       "ended(n) 02.047 ? exit 0 | counted 02.060 +13 success"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(told(trace_steps(row.attempt, "2026-12-01T17:00:01.000Z")), row.steps) << row.title;
}

TEST(Trace, AnOlderCoordinatorDoesNotSayWhenItAcceptedTheJob) {
  EXPECT_EQ(told(trace_steps(trace_attempt({{"created", "01.000"}}), "")), "created 01.000");
}

TEST(Trace, TablesAndJsonSayWhatIsUnknown) {
  const Json lost = trace_attempt(
      {{"created", "01.000"}, {"bound", "02.000"}, {"ended", "05.000"}, {"recorded", "04.000"}},
      {{"cause", "node-lost"}, {"exitCode", 137}, {"counted", "failed"}});
  const TraceSteps steps = trace_steps(lost, "");
  const std::vector<std::vector<std::string>> rows = {
      {"STEP", "AT", "SINCE LAST", "BY", "WHAT"},
      {"created", "2026-12-01T17:00:01.000Z", "-", "coordinator", "-"},
      {"bound", "2026-12-01T17:00:02.000Z", "1.000s", "coordinator", "to n1"},
      {"started", "-", "-", "node", "not reported"},
      {"ended", "2026-12-01T17:00:05.000Z", "3.000s", "coordinator", "exit 137"},
      {"counted", "2026-12-01T17:00:04.000Z", "?", "coordinator", "failure"}};
  EXPECT_EQ(trace_rows(steps), rows);
  const Json json = trace_json(steps);
  ASSERT_EQ(json.size(), 5u);
  EXPECT_EQ(json[1].dump(), R"({"at":"2026-12-01T17:00:02.000Z","by":"coordinator",)"
                            R"("sinceSeconds":1.0,"step":"bound","what":"to n1"})");
  EXPECT_EQ(json[2].dump(), R"({"by":"node","step":"started","what":"not reported"})");
  EXPECT_FALSE(json[4].contains("sinceSeconds"));
}

TEST(Trace, OtherAttemptsInShort) {
  const Json failed = trace_attempt(
      {{"created", "01.000"}, {"bound", "02.000"}, {"started", "03.500"}, {"ended", "05.000"}},
      {{"cause", "exited"}, {"exitCode", 1}, {"counted", "failed"}});
  const auto rows = short_rows({failed, trace_attempt({{"created", "06.000"}}, {{"node", ""}})});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1],
            (std::vector<std::string>{"1", "sweep-3-x7k2p", "n1", "2026-12-01T17:00:01.000Z",
                                      "2.500s", "1.500s", "failure", "exit 1"}));
  EXPECT_EQ(rows[2], (std::vector<std::string>{"1", "sweep-3-x7k2p", "-",
                                               "2026-12-01T17:00:06.000Z", "-", "-", "-", "-"}));
}

}  // namespace
}  // namespace muster::cli
