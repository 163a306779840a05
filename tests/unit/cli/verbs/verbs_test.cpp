// Verbs against canned answers: their output and exit codes.
#include "cli/verbs/jobs/delete.hpp"
#include "cli/verbs/jobs/wait.hpp"
#include "cli/verbs/near_miss.hpp"
#include "cli/verbs/show/get.hpp"
#include "cli/verbs/show/logs.hpp"
#include "client/connect/discovery.hpp"
#include "client/terminal/exit_codes.hpp"
#include "tests/unit/client/fake_server.hpp"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

std::string job_object(const std::string& name, const std::string& more = "") {
  return R"({"kind":"Job","apiVersion":"batch/v1","metadata":{"name":")" + name +
         R"(","namespace":"default","uid":"u1"})" + more + "}";
}

class VerbsTest : public testing::Test {
 protected:
  Target target() {
    Target target;
    target.api = server.address();
    return target;
  }

  template <class Options>
  int run(const Options& options) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = execute(options);
    out = testing::internal::GetCapturedStdout();
    err = testing::internal::GetCapturedStderr();
    return code;
  }

  FakeServer server;
  std::string out, err;
};

constexpr char kJobPath[] = "GET /apis/batch/v1/namespaces/default/jobs/j";

std::string ended(const char* type) {
  return job_object("j", std::string(R"(,"status":{"conditions":[{"type":")") + type +
                             R"(","status":"True","reason":"R","message":"M"}]})");
}

TEST_F(VerbsTest, WaitEndsOnCompleteOrFailed) {
  WaitOptions wait{target(), {"j"}};
  EXPECT_EQ(run(wait), kNotFound);
  server.answer(kJobPath, 200, job_object("j"));
  server.answer(kJobPath, 200, ended("Complete"));
  EXPECT_EQ(run(wait), kDone);
  EXPECT_EQ(out, "job.batch/j Complete\n");
  wait.condition = "Failed";
  EXPECT_EQ(run(wait), kFailed);
}

TEST_F(VerbsTest, WaitSaysWhyAJobFailed) {
  server.answer(kJobPath, 200, ended("Failed"));
  WaitOptions wait{target(), {"j"}};
  wait.condition = "Complete";
  EXPECT_EQ(run(wait), kFailed);
  EXPECT_EQ(err, "muster: job.batch/j Failed: R: M\n  0 succeeded\n");
  wait.condition = "Failed";
  EXPECT_EQ(run(wait), kDone);
}

TEST_F(VerbsTest, WaitTimesOut) {
  server.answer(kJobPath, 200, job_object("j"));
  WaitOptions wait{target(), {"j"}};
  wait.timeout_ms = 30;
  EXPECT_EQ(run(wait), kTimeout);
  EXPECT_NE(err.find("30ms"), std::string::npos);
}

TEST_F(VerbsTest, WaitForDeletionEndsOnNotFound) {
  server.answer(kJobPath, 200, job_object("j"));
  server.answer(kJobPath, 404, R"({"kind":"Status","status":"Failure"})");
  WaitOptions wait{target(), {"j"}};
  wait.deleted = true;
  EXPECT_EQ(run(wait), kDone);
}

TEST_F(VerbsTest, DeleteGoesOnAfterAMissingOne) {
  server.answer("DELETE /apis/batch/v1/namespaces/default/jobs/b", 200,
                R"({"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"b"}})");
  EXPECT_EQ(run(DeleteOptions{.target = target(), .names = {"a", "b"}}), kNotFound);
  EXPECT_EQ(out, "job.batch/b deleted\n");
  EXPECT_NE(server.requests().back().find("\"propagationPolicy\":\"Background\""),
            std::string::npos);
}

TEST_F(VerbsTest, GetPrintsNamesAndList) {
  server.answer("GET /api/v1/namespaces/default/pods", 200,
                R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},)"
                R"("items":[{"metadata":{"name":"a","namespace":"default","uid":"1"}},)"
                R"({"metadata":{"name":"b","namespace":"default","uid":"2"}}]})");
  GetOptions get;
  get.target = target();
  get.kind = Kind::pod;
  get.output = Output::name;
  EXPECT_EQ(run(get), kDone);
  EXPECT_EQ(out, "pod/a\npod/b\n");
  get.output = Output::yaml;
  EXPECT_EQ(run(get), kDone);
  EXPECT_EQ(out,
            "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n"
            "    namespace: default\n    uid: \"1\"\n- apiVersion: v1\n  kind: Pod\n  metadata:\n"
            "    name: b\n    namespace: default\n    uid: \"2\"\n"
            "kind: List\nmetadata:\n  resourceVersion: \"\"\n");
  get.names = {"nope"};
  EXPECT_EQ(run(get), kNotFound);
}

TEST_F(VerbsTest, GetWatchResumesFromLastVersion) {
  const std::string path = "GET /apis/batch/v1/namespaces/default/jobs";
  server.answer(path, 200,
                R"({"kind":"JobList","apiVersion":"batch/v1","metadata":{"resourceVersion":"5"},)"
                R"("items":[]})");
  server.answer(path, 200,
                R"({"type":"ADDED","object":{"kind":"Job","apiVersion":"batch/v1","metadata":)"
                R"({"name":"a","namespace":"default","uid":"1","resourceVersion":"9"}}})"
                "\n");
  server.answer(path, 403, R"({"kind":"Status","status":"Failure","message":"enough"})");
  GetOptions get;
  get.target = target();
  get.output = Output::name;
  get.watch = true;
  EXPECT_EQ(run(get), kRejected);
  EXPECT_EQ(out, "job.batch/a\n");
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_NE(requests[1].find("resourceVersion=5"), std::string::npos);
  EXPECT_NE(requests[2].find("resourceVersion=9"), std::string::npos);
}

TEST_F(VerbsTest, LogsRequestsGivenAttempt) {
  server.answer(kJobPath, 200, job_object("j", R"(,"spec":{"completionMode":"Indexed"})"));
  server.answer("GET /apis/muster.dev/v1/namespaces/default/jobs/j/log", 200, "bad row 7\n");
  LogsOptions logs;
  logs.target = target();
  logs.job = "j";
  logs.indexes = "7";
  logs.attempt = 2;
  logs.tail = 3;
  EXPECT_EQ(run(logs), kDone);
  EXPECT_EQ(out, "bad row 7\n");
  const std::string asked = server.requests().back();
  EXPECT_NE(asked.find("index=7&attempt=2"), std::string::npos) << asked;
  EXPECT_NE(asked.find("tailLines=3"), std::string::npos) << asked;
}

TEST_F(VerbsTest, WhatIsNotFoundSaysWhatMayBeMeant) {
  const std::string path = "/apis/batch/v1/namespaces/default/jobs/";
  server.answer("GET " + path + "a", 200,
                job_object("a", R"(,"spec":{"completionMode":"Indexed","completions":3})"));
  const auto hint = [&](const std::string& name, Kind kind = Kind::pod,
                        Parts parts = Parts::taken) {
    const auto client = connect(target());
    const Error error =
        with_near_miss(*client, "default", kind, name,
                       {Errc::not_found, "no\n  see: muster get pods -A", {}}, parts);
    return error.message.substr(0, 5) == "no\n  " ? error.message.substr(5) : error.message;
  };
  EXPECT_EQ(hint("a"), "did you mean job/a?");
  EXPECT_EQ(hint("a", Kind::job), "see: muster get pods -A");
  EXPECT_EQ(hint("a2"), "did you mean job/a --index 2?");
  EXPECT_EQ(hint("a-2"), "did you mean job/a --index 2?");
  EXPECT_EQ(hint("a_1", Kind::job), "did you mean job/a --index 1?");
  EXPECT_EQ(hint("a_[1-2]"), "did you mean job/a --index 1-2?");
  EXPECT_EQ(hint("a_1", Kind::job, Parts::none), "did you mean job/a?");
  EXPECT_EQ(hint("a_3"), "did you mean job/a?") << "there is no such index";
  EXPECT_EQ(hint("b_3"), "see: muster get pods -A");
  EXPECT_EQ(hint("4711"), "jobs have names instead of numbers: muster get jobs");
}

}  // namespace
}  // namespace muster::cli
