// Output for people: texts, tables, YAML and progress.
#include "client/terminal/text.hpp"

#include "base/process/shell_words.hpp"
#include "base/text/yaml.hpp"
#include "client/news/failures.hpp"
#include "client/news/progress.hpp"
#include "client/terminal/json.hpp"
#include "client/terminal/local_time.hpp"
#include "client/terminal/policy_text.hpp"
#include "client/terminal/table.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace muster::cli {
namespace {

TEST(Text, PrintsDurations) {
  EXPECT_EQ(short_span(0), "0s");
  EXPECT_EQ(short_span(119'000), "119s");
  EXPECT_EQ(short_span(185'000), "3m5s");
  EXPECT_EQ(short_span(41 * 60'000), "41m");
  EXPECT_EQ(short_span(9 * 3'600'000), "9h");
  EXPECT_EQ(short_span(76 * 3'600'000), "3d4h");
  EXPECT_EQ(clock_span(12'900), "00:12");
  EXPECT_EQ(clock_span(3'723'000), "1:02:03");
}

TEST(Text, EncodesQuotesAndCutsText) {
  EXPECT_EQ(url_encoded("a=b,c in (d)"), "a%3Db%2Cc%20in%20%28d%29");
  EXPECT_EQ(shell_quoted("a b'c"), "'a b'\\''c'");
  EXPECT_EQ(shell_quoted("/tmp/x-1"), "/tmp/x-1");
  EXPECT_EQ(command_text({{"command", {"sh", "-c"}}, {"args", {"echo $$HOME $$$$", ""}}}),
            "sh -c 'echo $HOME $$' ''");
  EXPECT_EQ(command_text(Json::object()), "");
  EXPECT_EQ(cut("abcdefgh", 6), "abc...");
  EXPECT_EQ(last_lines("a\nb\nc\n", 2), (std::vector<std::string>{"b", "c"}));
  EXPECT_TRUE(last_lines("\n", 2).empty());
}

TEST(Table, ColumnsLineUpAlsoInAWatch) {
  const auto table = [](const char* rows) {
    return read_json(
        std::string(
            R"({"columnDefinitions":[{"name":"Name","priority":0},{"name":"Images","priority":1},)"
            R"({"name":"Age","priority":0}],"rows":)") +
        rows + "}");
  };
  TablePrinter narrow(false, true, false);
  EXPECT_EQ(narrow.lines(table(R"([{"cells":["sweep","i","9h"]},{"cells":["a","i",null]}])")),
            "NAME    AGE\nsweep   9h\na       <none>\n");
  EXPECT_EQ(narrow.lines(table(R"([{"cells":["b","i","1s"]}])")), "b       1s\n");
  EXPECT_EQ(narrow.lines(table("[]")), "");
  TablePrinter wide(true, false, true);
  EXPECT_EQ(wide.lines(table(R"([{"cells":["a","",3],"object":{"metadata":{"namespace":"x"}}}])")),
            "x   a   <none>   3\n");
}

TEST(Table, P12CellsAreEscapedAndKeptOnOneLine) {
  TablePrinter table(true, false, true);
  EXPECT_EQ(table.lines(read_json(
                R"({"columnDefinitions":[{"name":"Name","priority":0},{"name":"I","priority":1}],)"
                R"("rows":[{"cells":["a","\u001b[2K\u009b\u202ex\n\tFailed"],)"
                R"("object":{"metadata":{"namespace":"n\u001b"}}}]})")),
            "n\\u001b   a   \\u001b[2K\\u009b\\u202ex  Failed\n");
  EXPECT_EQ(aligned({{"Message:", "x\nStatus:  Complete\x1b[1A"}, {"a", "b"}}, ""),
            "Message:   x Status:  Complete\\u001b[1A\na          b\n");
}

TEST(Yaml, P12InvisibleCharactersAreEscapedAndKeepTheirValue) {
  const Json json = {{"k\u202e", "\u009b[2J"}, {"l", {"a\u2028b", "\U000e0041", "\x7f", "é"}}};
  const std::string text = to_yaml(json);
  EXPECT_EQ(text,
            "\"k\\u202e\": \"\\u009b[2J\"\nl:\n- \"a\\u2028b\"\n- \"\\U000e0041\"\n"
            "- \"\\u007f\"\n- é\n");
  const auto back = yaml_to_json(text);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(read_json(back->at(0)), json);
}

TEST(Json, MissingIsEmpty) {
  const Json json = read_json(
      R"({"a":{"b":"x","n":7},"status":{"conditions":[{"type":"Failed","status":"False"}]}})");
  EXPECT_EQ(text_at(json, {"a", "b"}), "x");
  EXPECT_EQ(text_at(json, {"a", "n"}), "");
  EXPECT_EQ(number_at(json, {"a", "n"}), 7);
  EXPECT_EQ(number_at(json, {"x", "n"}, -1), -1);
  EXPECT_TRUE(at(json, {"a", "b", "c"}).is_null());
  EXPECT_TRUE(condition_of(json, "Failed").is_null());
}

// Printed YAML reads back as the same value, whatever it looks like.
TEST(Json, PrintedYamlRoundTrips) {
  const Json json = read_json(
      R"({"a":[{"b":"true","c":[[1,2],[],{}]},"x: y","- z",""],"empty":{},"m":{"n/o":"1.5","off":null},
      "lines":"one\ntwo\n","multi":["7",7,0.5,false,"~","#no"," lead","ä"]})");
  auto back = yaml_to_json(to_yaml(json));
  ASSERT_TRUE(back.ok()) << to_yaml(json);
  ASSERT_EQ(back->size(), 1u);
  EXPECT_EQ(read_json(back->front()), json) << to_yaml(json);
  EXPECT_EQ(to_yaml(read_json(R"({"a":[{"b":1,"c":"d"}]})")), "a:\n- b: 1\n  c: d\n");
}

TEST(Progress, LineShowsCountsRateAndTimeLeft) {
  const Json job = read_json(
      R"({"spec":{"completions":20},"status":{"succeeded":12,"failed":5,"ready":3,"active":4,
      "failedIndexes":"7,9-10"}})");
  const Standing s = standing_of(job);
  EXPECT_EQ(s.lost.count, 3);
  EXPECT_EQ(progress_text(s, 2.5, 1'700, 61'000, 10),
            "[#######---] 12/20  running 3  waiting 1  failed pods 5  failed indexes 3 (7,9,10)  "
            "2.5/s  about 00:02 left  01:01");
  EXPECT_EQ(
      progress_text(standing_of(read_json(R"({"status":{"succeeded":2}})")), 0, {}, 1'000, 10),
      "2 succeeded  running 0  00:01");
}

TEST(LocalTime, InstantsOfTheApiBecomeLocal) {
  const char* const was = std::getenv("TZ");
  const std::string before = was != nullptr ? was : "";
  setenv("TZ", "JST-9", 1);
  tzset();
  EXPECT_EQ(localized("begins at 2027-01-31T16:00:00Z, (2026-12-01T00:00:59.123Z)"),
            "begins at 2027-02-01 01:00:00 JST, (2026-12-01 09:00:59 JST)");
  for (const char* other : {"2027-01-31T16:00:00", "2027-01-31T16:00:00+01:00", "2027-13-31",
                            "2027-99-31T16:00:00Z", "Z", ""})
    EXPECT_EQ(localized(other), other);
  if (was != nullptr)
    setenv("TZ", before.c_str(), 1);
  else
    unsetenv("TZ");
  tzset();
}

TEST(Progress, CancelledIndexesAreNotFailed) {
  const Json job = read_json(
      R"({"spec":{"completions":20},"status":{"succeeded":12,"ready":3,"active":3,
      "failedIndexes":"5-7,9-10","cancelledIndexes":"5-6,10"}})");
  const Standing s = standing_of(job);
  EXPECT_EQ(s.settled(), 17);
  EXPECT_EQ(progress_text(s, 0, {}, 61'000, 10),
            "[########--] 12/20  running 3  failed indexes 2 (7,9)  cancelled indexes 3 (5,6,10)  "
            "01:01");
  Standing sum = s;
  sum.add(s);
  EXPECT_EQ(progress_text(sum, 0, {}, 61'000, 0),
            "24/40  running 6  failed indexes 4  cancelled indexes 6  jobs 0/2  01:01");
  const Json only = read_json(
      R"({"spec":{"completions":20},"status":{"cancelledIndexes":"5","failedIndexes":"5"}})");
  EXPECT_EQ(progress_text(standing_of(only), 0, {}, 1'000, 0),
            "0/20  running 0  cancelled indexes 1 (5)  00:01");
}

TEST(Progress, LineOfMpiJobShowsRunningNotSucceeded) {
  const Json job =
      read_json(R"({"metadata":{"annotations":{"muster.dev/mpi":"auto,slots=2"}},)"
                R"("spec":{"completions":4,"successPolicy":{"rules":[{"succeededIndexes":"0"}]}},)"
                R"("status":{"active":4,"ready":3}})");
  EXPECT_EQ(progress_text(standing_of(job), 2.5, 1'000, 7'000, 10),
            "3/4 running  waiting 1  00:07");
}

TEST(Progress, IndexSetsAreCutBetweenIntervals) {
  EXPECT_EQ(cut_set("1,3-5", 5), "1,3-5");
  EXPECT_EQ(cut_set("1,3-5,7,9-11", 9), "1,3-5,...");
  EXPECT_EQ(cut_set("100000-200000", 8), "10000...");
}

TEST(Policy, RowsDescribeRetryFailureAndSuccessPolicy) {
  const auto rows = [](const char* spec) {
    std::string text;
    for (const auto& [name, what] : policy_rows(read_json(spec))) text += name + " " + what + "\n";
    return text;
  };
  EXPECT_EQ(rows("{}"), "Retries: 6 for the whole job\n");
  EXPECT_EQ(rows(R"({"backoffLimit":3,"template":{"spec":{"restartPolicy":"OnFailure"}}})"),
            "Retries: 3 for the whole job; restarts in place count as well\n");
  EXPECT_EQ(rows(R"({"backoffLimitPerIndex":2,"maxFailedIndexes":10,"activeDeadlineSeconds":60,
      "podFailurePolicy":{"rules":[
        {"action":"FailIndex","onExitCodes":{"operator":"In","values":[42,43]}},
        {"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget","status":"True"}]}]},
      "successPolicy":{"rules":[{"succeededIndexes":"0-9","succeededCount":3},
        {"succeededIndexes":"0"}]}})"),
            "Retries: 2 per index, 10 indexes may fail\n"
            "On failure: exit code in 42,43: FailIndex; DisruptionTarget: Ignore; otherwise, the "
            "failure counts\n"
            "Success: as soon as any 3 of 0-9; all of 0 succeeded\n"
            "Deadline: active for at most 60s\n");
}

TEST(Policy, PaceTextShowsRateAndTimeLeft) {
  EXPECT_EQ(pace_text(0, 5, 1'000), "");
  EXPECT_EQ(pace_text(20, 180, 60'000), "20 indexes/min, about 9m left");
  EXPECT_EQ(pace_text(1, 0, 60'000), "1.0 indexes/min");
}

TEST(Failures, RuleTextNamesViolatedLimit) {
  EXPECT_EQ(rule_text(read_json(
                R"({"spec":{"activeDeadlineSeconds":5},"status":{"conditions":
                [{"type":"Failed","status":"True","reason":"DeadlineExceeded"}]}})")),
            "it was active longer than spec.activeDeadlineSeconds (5) allows");
  EXPECT_EQ(rule_text(read_json("{}")), "");
  const auto backoff = [](const std::string& restart, int limit, int failed) {
    return rule_text(read_json(R"({"spec":{"backoffLimit":)" + std::to_string(limit) +
                               R"(,"template":{"spec":{"restartPolicy":")" + restart +
                               R"("}}},"status":{"failed":)" + std::to_string(failed) +
                               R"(,"conditions":[{"type":"Failed","status":"True",
                               "reason":"BackoffLimitExceeded"}]}})"));
  };
  EXPECT_EQ(backoff("Never", 0, 1), "more pods failed than spec.backoffLimit (0) allows");
  EXPECT_EQ(backoff("OnFailure", 0, 1),
            "more pods failed than spec.backoffLimit (0) allows, or restarts of their containers "
            "reached it");
  EXPECT_EQ(backoff("OnFailure", 1, 1),
            "a container was restarted, which reaches spec.backoffLimit (1)");
  EXPECT_EQ(backoff("OnFailure", 3, 1),
            "containers were restarted at least 3 times, which reaches spec.backoffLimit (3)");
  EXPECT_EQ(backoff("OnFailure", 3, 4),
            "more pods failed than spec.backoffLimit (3) allows, or restarts of their containers "
            "reached it");
  const auto failed_indexes = [](const std::string& spec, const std::string& indexes) {
    return rule_text(read_json(R"({"spec":{"completions":500,"backoffLimitPerIndex":)" + spec +
                               R"(},"status":{"failedIndexes":")" + indexes +
                               R"(","conditions":[{"type":"Failed","status":"True",
                               "reason":"FailedIndexes"}]}})"));
  };
  EXPECT_EQ(failed_indexes("0", "7"),
            "index 7 failed 1 time, more than spec.backoffLimitPerIndex (0) allows");
  EXPECT_EQ(failed_indexes("1", "1,3-5"),
            "indexes 1,3-5 failed 2 times each, more than spec.backoffLimitPerIndex (1) allows");
  EXPECT_EQ(failed_indexes(R"(1,"podFailurePolicy":{"rules":[{"action":"FailIndex"}]})", "7"),
            "index 7 failed more than spec.backoffLimitPerIndex (1) allows, or by a FailIndex "
            "rule");
  EXPECT_EQ(rule_text(read_json(R"({"metadata":{"annotations":{"muster.dev/after":"ok:x,each:a"}},
                "spec":{"completions":9,"backoffLimitPerIndex":0},"status":{"failedIndexes":"7",
                "conditions":[{"type":"Failed","status":"True","reason":"FailedIndexes"}]}})")),
            "index 7 failed more than spec.backoffLimitPerIndex (0) allows, or never ran, because "
            "the same index of job a did not succeed");
  EXPECT_EQ(rule_text(read_json(R"({"spec":{"completions":9,"backoffLimitPerIndex":0},
                "status":{"failedIndexes":"3-7","cancelledIndexes":"3-6","conditions":[
                {"type":"Failed","status":"True","reason":"FailedIndexes"}]}})")),
            "index 7 failed 1 time, more than spec.backoffLimitPerIndex (0) allows");
  std::string odd = "1";
  for (int i = 3; i < 100; i += 2) odd += "," + std::to_string(i);
  EXPECT_EQ(failed_indexes("1", odd),
            "50 indexes failed 2 times each, more than spec.backoffLimitPerIndex (1) allows");
  Failures f;
  EXPECT_EQ(more_text(f, "j", "default"), "more: muster describe job j");
  f.shown = {{"j-7-x", "n1", "exit 1", 7, 2, "", {}}};
  EXPECT_EQ(more_text(f, "j", "lab"), "more: muster logs job/j --index 7 --attempt 2 -n lab");
  f.shown.front().task = 17;
  EXPECT_EQ(more_text(f, "j", "default"), "more: muster logs job/j --task 17 --attempt 2");
  EXPECT_TRUE(failures_text(f, "").starts_with("TASK   ATTEMPT")) << failures_text(f, "");
}

TEST(Failures, CauseTextNamesExitCodeSignalOrReason) {
  const auto cause = [](const char* status) {
    return cause_of(read_json(std::string(R"({"status":)") + status + "}"));
  };
  const auto ended = [&](const std::string& end) {
    return cause((R"({"containerStatuses":[{"state":{"terminated":)" + end + "}}]}").c_str());
  };
  EXPECT_EQ(ended(R"({"exitCode":1,"reason":"Error"})"), "exit 1");
  EXPECT_EQ(ended(R"({"exitCode":137,"signal":9,"reason":"OOMKilled"})"),
            "SIGKILL (exit 137), OOMKilled");
  EXPECT_EQ(
      ended(
          R"({"exitCode":127,"reason":"StartError","message":"exec ./run: No such file or directory"})"),
      "exit 127, StartError: exec ./run: No such file or directory");
  EXPECT_EQ(
      cause(
          R"({"conditions":[{"type":"DisruptionTarget","status":"True","reason":"DeletionByTaintManager"}]})"),
      "DeletionByTaintManager");
  EXPECT_EQ(cause("{}"), "unknown");
}

TEST(Failures, LogLinesArePrintedBelowTheirRow) {
  Failures f;
  f.shown = {{"j-7-x", "n1", "exit 1", 7, 0, "", {"bad", "row"}},
             {"j-8-y", "", "exit 2", 8, std::nullopt, "", {}}};
  f.all = 3;
  EXPECT_EQ(failures_text(f, "  "),
            "  INDEX   ATTEMPT   NODE     CAUSE\n  7       0         n1       exit 1\n      | "
            "bad\n      | row\n"
            "  8       ?         <none>   exit 2\n  ... and 1 more\n");
}

}  // namespace
}  // namespace muster::cli
