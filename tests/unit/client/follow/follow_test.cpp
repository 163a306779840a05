// Following a job: which failures are printed while it runs, and which only its summary shows.
#include "client/follow/follow.hpp"

#include "client/news/failure_news.hpp"
#include "tests/unit/client/fake_server.hpp"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

const std::string kFollowedJob = "/apis/batch/v1/namespaces/default/jobs/j";
const std::string kFollowedOwn = "/apis/muster.dev/v1/namespaces/default/jobs/j";

EndedAttempt failed(int64_t index, const std::string& cause) {
  EndedAttempt out;
  out.index = index;
  out.attempt = 0;
  out.pod = "j-" + std::to_string(index);
  out.node = "n1";
  out.failed = true;
  out.cause = out.kind = cause;
  return out;
}

TEST(FailureNews, PrintsEachCauseOnceAfterDelay) {
  FakeServer server;
  ApiClient client(server.address());
  FailureNews news(client, "default", "j");
  int cleared = 0;
  testing::internal::CaptureStderr();
  news.add(Json(), {failed(3, "exit 1"), failed(4, "exit 1"), failed(5, "exit 2")}, 1'000);
  news.print(1'000 + FailureNews::kDelay - 1, [&] { ++cleared; });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(cleared, 0);

  testing::internal::CaptureStderr();
  news.print(1'000 + FailureNews::kDelay, [&] { ++cleared; });
  news.print(2'000 + FailureNews::kDelay, [&] { ++cleared; });
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "muster: index 3 failed: exit 1 (attempt 0, node n1)\n"
            "muster: index 5 failed: exit 2 (attempt 0, node n1)\n");
  EXPECT_EQ(cleared, 2);
}

// The failure is listed before the job shows that it ended because of it.
TEST(Follow, AFailureThatEndsTheJobIsLeftToTheSummary) {
  Signals signals;  // before any thread starts
  FakeServer server;
  const std::string begin = R"({"kind":"Job","apiVersion":"batch/v1",)"
                            R"("metadata":{"name":"j","namespace":"default","uid":"u1"},"status":)";
  server.answer("GET " + kFollowedJob, 200, begin + R"({"active":1}})");
  server.answer("GET " + kFollowedJob, 200,
                begin + R"({"failed":1,"conditions":[{"type":"Failed","status":"True"}]}})");
  server.answer(
      "GET " + kFollowedOwn + "/attempts", 200,
      R"({"kind":"AttemptList","apiVersion":"muster.dev/v1","metadata":{},"items":[{"index":0,"attempt":0,"pod":"j-0","node":"n1",)"
      R"("counted":"failed","exitCode":127}]})");
  ApiClient client(server.address());
  testing::internal::CaptureStderr();
  const Follow out = follow(client, signals, "default", "j", {});
  EXPECT_EQ(out.how, Followed::failed);
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_EQ(printed.find("127"), std::string::npos) << printed;
}

// The summary of a job that ended by its success policy.
std::string summary_of(const std::string& annotations) {
  FakeServer server;
  ApiClient client(server.address());
  const Json job = read_json(
      R"({"metadata":{"name":"j","annotations":)" + annotations +
      R"(},"spec":{"completions":3,"successPolicy":{"rules":[{"succeededIndexes":"0"}]}},)"
      R"("status":{"succeeded":1,"startTime":"2026-01-01T00:00:00Z",)"
      R"("completionTime":"2026-01-01T00:00:02Z","conditions":[)"
      R"({"type":"SuccessCriteriaMet","status":"True","reason":"SuccessPolicy"},)"
      R"({"type":"Complete","status":"True","reason":"SuccessPolicy"}]}})");
  return summary_text(client, "default", job, Paint(When::never, 1),
                      [](const Failures&) { return std::string(); });
}

TEST(Follow, SummaryOfSuccessPolicyCountsNoMissingIndexes) {
  EXPECT_EQ(summary_of("{}"),
            "job/j Complete: 1/3 succeeded, as spec.successPolicy requires, took 2s\n");
  EXPECT_EQ(summary_of(R"({"muster.dev/mpi":"auto"})"),
            "job/j Complete: the leader (index 0) succeeded, took 2s\n");
}

TEST(Follow, SummaryOfMpiJobNamesFailedLeaderOrWorkers) {
  FakeServer server;
  ApiClient client(server.address());
  const auto summary = [&client](const std::string& failed_indexes,
                                 const std::string& reason = "FailedIndexes") {
    const Json job = read_json(
        R"({"metadata":{"name":"j","annotations":{"muster.dev/mpi":"auto"}},)"
        R"("spec":{"completions":3,"successPolicy":{"rules":[{"succeededIndexes":"0"}]}},)"
        R"("status":{"failed":3,"failedIndexes":")" +
        failed_indexes + R"(","conditions":[{"type":"Failed","status":"True","reason":")" + reason +
        R"(","message":"m"}]}})");
    return summary_text(client, "default", job, Paint(When::never, 1),
                        [](const Failures&) { return std::string("hint"); });
  };
  EXPECT_TRUE(summary("0").starts_with("job/j Failed: the leader (index 0) failed\n"))
      << summary("0");
  EXPECT_TRUE(summary("1").starts_with("job/j Failed: the worker of index 1 failed\n"))
      << summary("1");
  EXPECT_TRUE(summary("1-2").starts_with("job/j Failed: the workers of indexes 1,2 failed\n"))
      << summary("1-2");
  EXPECT_TRUE(summary("1", "R").starts_with("job/j Failed: R: m\n")) << summary("1", "R");
}

}  // namespace
}  // namespace muster::cli
