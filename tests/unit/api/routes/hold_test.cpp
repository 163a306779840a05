// Holds and priorities of jobs: who may change them, and where they are shown.
#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api::testing {
namespace {

constexpr uid_t kHoldAlice = 1001, kBob = 1002, kOlga = 1003;

Account hold_account(uid_t uid) {
  const char* name = uid == kHoldAlice ? "alice" : uid == kBob ? "bob" : "olga";
  Account account{{uid, uid, name}, {"hpc"}};
  if (uid == kOlga) account.groups.emplace_back("ops");
  return account;
}

class HoldTest : protected AuditLines, public ServerTest {
 protected:
  HoldTest()
      : ServerTest([this](ServerOptions& o) {
          o.roles = {{"hpc"}, {"ops"}, {}, {}};
          o.read_account = hold_account;
          o.audit = [this](const OrderedJson& object) { audited.push_back(dumped(object)); };
        }) {
    const std::string manifest =
        R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{)"
        R"("completionMode":"Indexed","completions":2,"parallelism":2,"template":{"spec":{)"
        R"("restartPolicy":"Never","containers":[{"name":"main","image":"img"}]}}}})";
    EXPECT_EQ(as(kHoldAlice, "POST", kJobs, manifest).code, 201);
  }

  Answer as(uid_t who, const std::string& method, const std::string& path,
            const std::string& body = "") {
    uid = who;
    const std::string type = method == "PATCH" ? "merge-patch+json" : "json";
    return call(request(method, path,
                        body.empty() ? "" : "Content-Type: application/" + type + "\r\n", body));
  }
  Answer own(uid_t who, const std::string& method, const std::string& what,
             const std::string& body = "") {
    return as(who, method, "/apis/muster.dev/v1/namespaces/default/jobs/j/" + what, body);
  }
  // The condition of this type, as this user sees it; null: there is none.
  Json condition(const std::string& type, uid_t who = kHoldAlice) {
    const Json job = as(who, "GET", kJobs + "/j").json();
    for (const Json& one : job["status"].value("conditions", Json::array()))
      if (one["type"] == type) return one;
    return nullptr;
  }
  std::vector<std::string> events() {
    std::vector<std::string> all;
    const Json list = as(kHoldAlice, "GET", "/api/v1/events").json();
    for (const Json& event : list["items"])
      all.push_back(event["reason"].get<std::string>() + ": " +
                    event["message"].get<std::string>());
    return all;
  }
};

TEST_F(HoldTest, AnOperatorsHoldIsLiftedByOperatorsOnly) {
  const Answer held = own(kOlga, "PUT", "hold", R"({"reason":"the license\n\tserver is down\n"})");
  EXPECT_EQ(held.code, 200) << held.body;
  EXPECT_EQ(held.json()["kind"], "Hold");
  EXPECT_EQ(held.json()["by"], "olga");
  const std::string why =
      "olga holds the job: the license server is down; only operators can "
      "release it";
  EXPECT_EQ(condition("muster.dev/Held")["reason"], "HeldByOperator");
  EXPECT_EQ(condition("muster.dev/Held")["message"], why);
  EXPECT_EQ(condition("muster.dev/Held", kBob)["message"], "") << "others see no reasons";
  for (const char* method : {"DELETE", "PUT"}) {
    const Answer refused = own(kHoldAlice, method, "hold");
    EXPECT_TRUE(refused.is_status("Forbidden")) << refused.body;
    EXPECT_NE(refused.body.find(why), std::string::npos) << refused.body;
  }
  EXPECT_EQ(own(kOlga, "DELETE", "hold").code, 200);
  EXPECT_EQ(condition("muster.dev/Held"), nullptr);
  EXPECT_EQ(own(kOlga, "DELETE", "hold").code, 200) << "repeating it is not an error";
  EXPECT_EQ(events()[0], "Held: Held by olga: the license server is down");
  EXPECT_EQ(events()[1], "Released: Released by olga");
}

TEST_F(HoldTest, AnOwnersHoldIsLiftedByTheOwnerAndByOperators) {
  EXPECT_EQ(own(kHoldAlice, "PUT", "hold").code, 200);
  EXPECT_EQ(condition("muster.dev/Held")["reason"], "HeldByOwner");
  EXPECT_EQ(condition("muster.dev/Held")["message"], "alice holds the job");
  EXPECT_EQ(own(kBob, "DELETE", "hold").code, 403);
  EXPECT_EQ(own(kBob, "PUT", "hold").code, 403);
  EXPECT_EQ(own(kHoldAlice, "DELETE", "hold").code, 200);
  EXPECT_EQ(own(kHoldAlice, "PUT", "hold").code, 200);
  EXPECT_EQ(own(kOlga, "DELETE", "hold").code, 200);
  EXPECT_EQ(condition("muster.dev/Held"), nullptr);
}

TEST_F(HoldTest, AnOwnersWritesDoNotChangeAHold) {
  EXPECT_EQ(own(kOlga, "PUT", "hold", R"({"reason":"why"})").code, 200);
  EXPECT_EQ(own(kOlga, "PATCH", "overrides", R"({"priority":7})").code, 200);
  Json job = as(kHoldAlice, "GET", kJobs + "/j").json();
  job["spec"]["parallelism"] = 1;
  EXPECT_EQ(as(kHoldAlice, "PUT", kJobs + "/j", job.dump()).code, 200);
  job = as(kHoldAlice, "GET", kJobs + "/j").json();
  job["status"].erase("conditions");
  EXPECT_EQ(as(kHoldAlice, "PUT", kJobs + "/j/status", job.dump()).code, 422);
  EXPECT_EQ(condition("muster.dev/Held")["reason"], "HeldByOperator");
  EXPECT_EQ(condition("muster.dev/Overrides")["message"], "set by olga: priority 7");
}

TEST_F(HoldTest, OnlyOperatorsOverrideWhatTheObjectSays) {
  const auto set = [this](uid_t who, const std::string& body) {
    uid = who;
    return call(request("PATCH", "/apis/muster.dev/v1/namespaces/default/jobs/j/overrides",
                        "Content-Type: application/merge-patch+json\r\n", body));
  };
  EXPECT_EQ(set(kHoldAlice, R"({"priority":7})").code, 403);
  const Answer high = set(kOlga, R"({"priority":1000})");
  EXPECT_EQ(high.code, 200) << high.body;
  EXPECT_EQ(high.json()["kind"], "Overrides");
  EXPECT_EQ(high.json()["priority"], 1000);
  EXPECT_EQ(set(kOlga, R"({"queue":"default","timeLimitSeconds":7200})").json()["priority"], 1000);
  const core::Job& job = *view.job("default", "j")->job;
  EXPECT_EQ(core::placed_object(job)->spec.pod.priority, 1000);
  EXPECT_EQ(core::placed_object(job)->meta.annotations.at(std::string(core::kQueueKey)), "default");
  EXPECT_EQ(core::launched_object(job)->spec.pod.active_deadline_s, 7200);
  EXPECT_LT(core::launched_object(job)->meta.generation, 0) << "nodes know it from the object";
  EXPECT_EQ(condition("muster.dev/Overrides")["message"],
            "set by olga: priority 1000, queue default, time limit 2h");
  EXPECT_EQ(events()[0], "Overridden: olga set priority 1000");
  EXPECT_EQ(set(kOlga, R"({"priority":null,"queue":null,"timeLimitSeconds":null})").code, 200);
  EXPECT_EQ(condition("muster.dev/Overrides"), nullptr);
  EXPECT_EQ(core::launched_object(*view.job("default", "j")->job),
            view.job("default", "j")->job->object_ptr());
  for (const char* body :
       {R"({"priority":1000000001})", R"({"priority":"7"})", "{}", "[]", R"({"priority":1.5})",
        R"({"prio":1})", R"({"queue":"no"})", R"({"queue":1})", R"({"timeLimitSeconds":-1})",
        R"({"timeLimitSeconds":2147483648})"})
    EXPECT_EQ(set(kOlga, body).code, 400) << body;
}

TEST_F(HoldTest, WhatCannotBeHeldIsRefused) {
  EXPECT_EQ(own(kOlga, "PUT", "hold", R"({"reason":1})").code, 400);
  EXPECT_EQ(own(kOlga, "PUT", "hold", R"({"why":"x"})").code, 400);
  EXPECT_EQ(own(kOlga, "PUT", "hold", R"({"reason":")" + std::string(2000, 'x') + R"("})").code,
            400);
  EXPECT_EQ(as(kOlga, "PUT", "/apis/muster.dev/v1/namespaces/default/jobs/no/hold").code, 404);
  feed.records(100, {core::FinishDecided{kStart, true, core::ConditionReason::success_policy, ""},
                     core::JobFinished{kStart}});
  for (const auto& [method, what, body] :
       {std::tuple("DELETE", "hold", ""), std::tuple("PATCH", "overrides", R"({"priority":1})")}) {
    const Answer late = own(kOlga, method, what, body);
    EXPECT_EQ(late.code, 409) << late.body;
    EXPECT_NE(late.body.find("has finished: it starts nothing"), std::string::npos) << late.body;
  }
}

TEST_F(HoldTest, OwnersAndOperatorsCancel) {
  EXPECT_EQ(own(kBob, "PUT", "cancel", "{}").code, 403);
  for (const char* body : {R"({"indexes":1})", R"({"indexes":""})", R"({"indexes":"2"})",
                           R"({"indexes":"1,0"})", R"({"index":"0"})", "[]"})
    EXPECT_EQ(own(kHoldAlice, "PUT", "cancel", body).code, 400) << body;
  const Answer one = own(kHoldAlice, "PUT", "cancel", R"({"indexes":"0"})");
  EXPECT_EQ(one.code, 200) << one.body;
  EXPECT_EQ(one.json()["kind"], "Cancellation");
  EXPECT_EQ(one.json()["indexes"], "0");
  EXPECT_EQ(events()[0], "Cancelled: Cancelled index 0 by alice");
  const Json why =
      as(kHoldAlice, "GET", "/apis/muster.dev/v1/namespaces/default/jobs/j/why?index=0").json();
  EXPECT_EQ(why["state"], "Failed");
  EXPECT_NE(why["summary"].get<std::string>().find("alice cancelled the index"), std::string::npos);
  const Answer all = own(kOlga, "PUT", "cancel", "{}");
  EXPECT_EQ(all.code, 200) << all.body;
  EXPECT_EQ(condition("FailureTarget")["reason"], "Cancelled");
  EXPECT_EQ(condition("FailureTarget")["message"], "Cancelled by olga");
  EXPECT_EQ(own(kOlga, "PUT", "cancel", "{}").code, 200) << "repeating it is not an error";
  EXPECT_EQ(own(kOlga, "DELETE", "cancel").code, 403);
  EXPECT_EQ(as(kOlga, "PUT", "/apis/muster.dev/v1/namespaces/default/jobs/no/cancel", "{}").code,
            404);
}

TEST_F(HoldTest, WhatHasEndedCannotBeCancelled) {
  feed.records(100, {core::FinishDecided{kStart, true, core::ConditionReason::success_policy, ""},
                     core::JobFinished{kStart}});
  const Answer late = own(kHoldAlice, "PUT", "cancel", "{}");
  EXPECT_EQ(late.code, 409) << late.body;
  EXPECT_NE(late.body.find("has finished"), std::string::npos) << late.body;
}

TEST_F(HoldTest, HoldsAreAudited) {
  audited.clear();
  own(kOlga, "PUT", "hold");
  own(kHoldAlice, "DELETE", "hold");
  ASSERT_EQ(audited.size(), 2u);
  for (const char* part :
       {"\"user\":\"olga\"", "\"verb\":\"update\"", "\"subresource\":\"hold\"", "\"code\":200"})
    EXPECT_NE(audited[0].find(part), std::string::npos) << audited[0];
  EXPECT_NE(audited[1].find("\"code\":403"), std::string::npos) << audited[1];
}

}  // namespace
}  // namespace muster::api::testing
