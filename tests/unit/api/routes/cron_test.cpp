// CronJobs: their API, and the jobs that their controller creates, with a clock that the test
// moves.
#include "tests/unit/api/routes/server_fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

namespace muster::api {
namespace {

using namespace testing;

const std::string kCrons = "/apis/batch/v1/namespaces/default/cronjobs";
const std::string kCronEvents = "/api/v1/namespaces/default/events";
constexpr Millis kMinute = 60'000;
// kStart is 22:13:20.
constexpr Millis kTen = kStart - kStart % (60 * kMinute);  // 22:00
Millis now_ms = kStart;

// Seconds after 22:00.
Millis at(int minutes, int seconds = 0) {
  return kTen + minutes * kMinute + seconds * 1000;
}

Json cron_job(const std::string& name, const std::string& schedule) {
  return {{"apiVersion", "batch/v1"},
          {"kind", "CronJob"},
          {"metadata", {{"name", name}}},
          {"spec",
           {{"schedule", schedule},
            {"timeZone", "Etc/UTC"},
            {"jobTemplate",
             {{"metadata", {{"labels", {{"app", "tick"}}}, {"annotations", {{"a", "b"}}}}},
              {"spec",
               {{"template",
                 {{"spec",
                   {{"restartPolicy", "Never"},
                    {"containers", {{{"name", "main"}, {"command", {"true"}}}}}}}}}}}}}}}};
}

class CronTest : public ServerTest {
 protected:
  CronTest() : ServerTest([](ServerOptions& o) { o.now = [] { return now_ms; }; }) {
    now_ms = kStart;
  }
  explicit CronTest(const std::function<void(ServerOptions&)>& adapt)
      : ServerTest([adapt](ServerOptions& o) {
          o.now = [] { return now_ms; };
          adapt(o);
        }) {
    now_ms = kStart;
  }

  Json made(const Json& cron) {
    const Answer answer = post(kCrons, cron.dump());
    EXPECT_EQ(answer.code, 201) << answer.body;
    return answer.json();
  }
  Json cron(const std::string& name) { return get(kCrons + "/" + name).json(); }
  Answer send(const std::string& method, const std::string& path, const Json& body,
              const std::string& type = "application/json") {
    return call(request(method, path, "Content-Type: " + type + "\r\n", body.dump()));
  }
  // Moves the clock, and wakes the controller as a change does.
  void move_to(Millis to) {
    now_ms = to;
    feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  }
  static std::string child(const std::string& name, Millis scheduled) {
    return name + "-" + std::to_string(scheduled / kMinute);
  }
  bool has_job(const std::string& name) { return view.job("default", name).has_value(); }
  std::vector<std::string> causes(const Json& body) {
    const Answer answer = post(kCrons, body.dump());
    std::vector<std::string> out;
    EXPECT_EQ(answer.code, 422) << answer.body;
    const Json status = answer.json();
    for (const Json& cause : status["details"]["causes"])
      out.push_back(cause.value("field", "") + ": " + cause.value("message", ""));
    return out;
  }
  // Of the CronJobs' events.
  std::vector<std::string> events() {
    std::vector<std::string> out;
    view.each_kept(core::KeptKind::event, "", [&](const Shown& shown) {
      const Json event = Json::parse(shown.kept->kept->json);
      out.push_back(event["reason"].get<std::string>() + ": " +
                    event["message"].get<std::string>());
    });
    std::sort(out.begin(), out.end());
    return out;
  }
  void finish(const std::string& name, bool complete) {
    const JobId id = view.job("default", name)->job->id();
    feed.records(id, {core::FinishDecided{now_ms, complete,
                                          complete ? core::ConditionReason::completions_reached
                                                   : core::ConditionReason::backoff_limit_exceeded,
                                          ""}});
    feed.records(id, {core::JobFinished{now_ms}});
  }
};

TEST_F(CronTest, HasItsDefaultsAndAGeneration) {
  const Json cron = made(cron_job("tick", "*/5 * * * *"));
  EXPECT_EQ(cron["metadata"]["generation"], 1);
  EXPECT_EQ(cron["spec"]["concurrencyPolicy"], "Allow");
  EXPECT_EQ(cron["spec"]["suspend"], false);
  EXPECT_EQ(cron["spec"]["successfulJobsHistoryLimit"], 3);
  EXPECT_EQ(cron["spec"]["failedJobsHistoryLimit"], 1);
  EXPECT_EQ(cron["status"], Json::object());
  const Answer suspended = send("PATCH", kCrons + "/tick", {{"spec", {{"suspend", true}}}},
                                "application/merge-patch+json");
  EXPECT_EQ(suspended.code, 200) << suspended.body;
  EXPECT_EQ(suspended.json()["metadata"]["generation"], 2);
  const Answer labeled = send("PATCH", kCrons + "/tick", {{"metadata", {{"labels", {{"x", "y"}}}}}},
                              "application/merge-patch+json");
  EXPECT_EQ(labeled.json()["metadata"]["generation"], 2);
  const Answer table = get(kCrons, "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n");
  EXPECT_EQ(table.json()["rows"][0]["cells"], (Json{"tick", "*/5 * * * *", "Etc/UTC", "True", 0,
                                                    "<none>", "0s", "main", "", "<none>"}));
}

TEST_F(CronTest, IsRefusedInKubernetesWords) {
  Json bad = cron_job("tick", "60 * * * *");
  bad["spec"]["timeZone"] = "Mars/Base";
  bad["spec"]["concurrencyPolicy"] = "Sometimes";
  bad["spec"]["startingDeadlineSeconds"] = -1;
  bad["spec"]["failedJobsHistoryLimit"] = -2;
  bad["spec"]["jobTemplate"]["spec"]["parallelism"] = -3;
  EXPECT_THAT(
      causes(bad),
      ::testing::ElementsAre(
          "spec.schedule: Invalid value: \"60 * * * *\": end of range (60) above maximum (59): 60",
          "spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
          "spec.failedJobsHistoryLimit: Invalid value: -2: must be greater than or equal to 0",
          "spec.timeZone: Invalid value: \"Mars/Base\": unknown time zone Mars/Base",
          "spec.concurrencyPolicy: Unsupported value: \"Sometimes\": supported values: \"Allow\", "
          "\"Forbid\", \"Replace\"",
          "spec.jobTemplate.spec.parallelism: Invalid value: -3: must be greater than or equal to "
          "0"));
  EXPECT_THAT(causes(cron_job(std::string(53, 'x'), "@daily")),
              ::testing::ElementsAre("metadata.name: Invalid value: \"" + std::string(53, 'x') +
                                     "\": must be no more than 52 characters"));
  EXPECT_THAT(causes(cron_job("tick", "TZ=UTC @daily")),
              ::testing::ElementsAre("spec.schedule: Invalid value: \"TZ=UTC @daily\": cannot use "
                                     "TZ or CRON_TZ in schedule, use timeZone field instead"));
  for (const char* zone : {"", "Local", "../etc/passwd", "/etc/localtime", "Europe//Berlin"}) {
    Json cron = cron_job("tick", "@daily");
    cron["spec"]["timeZone"] = zone;
    EXPECT_EQ(causes(cron).size(), 1u) << zone;
  }
}

TEST_F(CronTest, StatusIsWrittenApart) {
  Json cron = made(cron_job("tick", "@yearly"));
  cron["status"]["lastScheduleTime"] = "2023-11-14T22:00:00Z";
  Json answer = send("PUT", kCrons + "/tick", cron).json();
  EXPECT_EQ(answer["status"], Json::object()) << "only through /status";
  cron["metadata"]["resourceVersion"] = answer["metadata"]["resourceVersion"];
  cron["spec"]["suspend"] = true;
  cron["metadata"]["annotations"]["patched"] = "true";
  answer = send("PUT", kCrons + "/tick/status", cron).json();
  EXPECT_EQ(answer["status"]["lastScheduleTime"], "2023-11-14T22:00:00Z") << answer;
  EXPECT_EQ(answer["spec"]["suspend"], false);
  EXPECT_EQ(answer["metadata"]["annotations"]["patched"], "true") << "as in Kubernetes";
  EXPECT_EQ(answer["metadata"]["generation"], 1);
  EXPECT_EQ(get(kCrons + "/tick/status").json()["status"], answer["status"]);
  EXPECT_EQ(send("PUT", kCrons + "/none/status", cron_job("none", "@daily")).code, 404);
}

TEST_F(CronTest, CreatesAJobAtTheScheduledTime) {
  const Json cron = made(cron_job("tick", "20 22 * * *"));
  move_to(at(20) - 1);
  move_to(at(20));
  const std::string name = child("tick", at(20));
  ASSERT_TRUE(until([&] { return has_job(name); }));
  ASSERT_TRUE(until([&] { return this->cron("tick")["status"].contains("lastScheduleTime"); }));
  const Json job = get(kJobs + "/" + name).json();
  EXPECT_EQ(job["metadata"]["labels"]["app"], "tick");
  EXPECT_EQ(job["metadata"]["annotations"]["a"], "b");
  EXPECT_EQ(job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"],
            "2023-11-14T22:20:00Z");
  EXPECT_EQ(job["metadata"]["ownerReferences"], (Json{{{"apiVersion", "batch/v1"},
                                                       {"kind", "CronJob"},
                                                       {"name", "tick"},
                                                       {"uid", cron["metadata"]["uid"]},
                                                       {"controller", true},
                                                       {"blockOwnerDeletion", true}}}));
  const Json status = this->cron("tick")["status"];
  EXPECT_EQ(status["lastScheduleTime"], "2023-11-14T22:20:00Z");
  ASSERT_EQ(status["active"].size(), 1u) << status;
  EXPECT_EQ(status["active"][0]["name"], name);
  EXPECT_EQ(status["active"][0]["uid"], job["metadata"]["uid"]);
  EXPECT_THAT(events(), ::testing::ElementsAre("SuccessfulCreate: Created job " + name));
  const int creates = backend.creates;
  finish(name, true);
  ASSERT_TRUE(until([&] { return !this->cron("tick")["status"].contains("active"); }));
  EXPECT_EQ(this->cron("tick")["status"].contains("lastSuccessfulTime"), true);
  EXPECT_THAT(events(), ::testing::Contains("SawCompletedJob: Saw completed job: " + name +
                                            ", condition: Complete"));
  EXPECT_EQ(backend.creates, creates) << "once";
}

// The status has whole seconds, the job's times have more.
TEST_F(CronTest, WritesNothingWhileNothingHappens) {
  made(cron_job("tick", "20 22 * * *"));
  move_to(at(20));
  ASSERT_TRUE(until([&] { return this->cron("tick")["status"].contains("active"); }));
  now_ms = at(20) + 345;
  finish(child("tick", at(20)), true);
  ASSERT_TRUE(until([&] { return this->cron("tick")["status"].contains("lastSuccessfulTime"); }));
  const Json before = this->cron("tick")["metadata"]["resourceVersion"];
  made(cron_job("next", "21 22 * * *"));
  move_to(at(21));
  ASSERT_TRUE(until([&] { return this->cron("next")["status"].contains("active"); }))
      << "the controller has looked at both";
  EXPECT_EQ(this->cron("tick")["metadata"]["resourceVersion"], before);
}

TEST_F(CronTest, LeavesJobsOfOthersAlone) {
  Json cron = cron_job("tick", "0 0 1 1 *");
  cron["spec"]["successfulJobsHistoryLimit"] = 0;
  const Json uid = made(cron)["metadata"]["uid"];
  Json job = Json::parse(kManifest);
  job["metadata"]["annotations"] = {{"muster.dev/owner-uid", "1001"},
                                    {"muster.dev/owner-gid", "100"}};
  job["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                                     {"kind", "CronJob"},
                                                     {"name", "tick"},
                                                     {"uid", uid},
                                                     {"controller", true}}});
  job["metadata"]["uid"] = uid_of(8);
  job["metadata"]["namespace"] = "default";
  feed.admit(8, load_job(job.dump()));
  finish("new", true);
  made(cron_job("next", "15 22 * * *"));
  move_to(at(15));
  ASSERT_TRUE(until([&] { return this->cron("next")["status"].contains("active"); }));
  EXPECT_TRUE(has_job("new")) << "its owner is another user than the cron job's";
}

TEST_F(CronTest, MakesUpForTheTimeItWasAway) {
  made(cron_job("tick", "* * * * *"));
  move_to(at(30, 5));
  ASSERT_TRUE(until([&] { return has_job(child("tick", at(30))); }));
  EXPECT_EQ(backend.creates, 1);
}

TEST_F(CronTest, ReplacesAndForgets) {
  Json cron = cron_job("tick", "* * * * *");
  cron["spec"]["concurrencyPolicy"] = "Replace";
  cron["spec"]["failedJobsHistoryLimit"] = 0;
  made(cron);
  move_to(at(15));
  ASSERT_TRUE(until([&] { return has_job(child("tick", at(15))); }));
  ASSERT_TRUE(until([&] { return this->cron("tick")["status"].contains("active"); }));
  move_to(at(16));
  ASSERT_TRUE(until([&] { return has_job(child("tick", at(16))); }));
  EXPECT_FALSE(has_job(child("tick", at(15))));
  ASSERT_TRUE(until([&] {
    const Json active = this->cron("tick")["status"]["active"];
    return active.size() == 1 && active[0]["name"] == child("tick", at(16));
  }));
  finish(child("tick", at(16)), false);
  ASSERT_TRUE(until([&] { return !has_job(child("tick", at(16))); }));
  const std::string deleted = "SuccessfulDelete: Deleted job " + child("tick", at(16));
  EXPECT_TRUE(until([&] {
    const auto all = events();
    return std::find(all.begin(), all.end(), deleted) != all.end();
  }));
}

class CronOfUsersTest : public CronTest {
 protected:
  static inline bool member = true;  // of the group that may use the coordinator
  CronOfUsersTest()
      : CronTest([](ServerOptions& o) {
          o.roles.users = {"hpc"};
          o.read_account = [](uid_t id) -> Result<Account> {
            Account account;
            account.who = {.uid = id, .gid = 100, .name = "alice", .groups = {100, 2001}};
            account.who.home = "/home/alice";
            account.groups = {member ? "hpc" : "none"};
            return account;
          };
        }) {
    member = true;
    uid = 1001;
  }
};

TEST_F(CronOfUsersTest, JobsAreTheOwners) {
  made(cron_job("tick", "* * * * *"));
  move_to(at(15));
  const std::string name = child("tick", at(15));
  ASSERT_TRUE(until([&] { return has_job(name); }));
  const core::StringMap& annotations = view.job("default", name)->job->object().meta.annotations;
  const auto owner = core::owner_of(annotations);
  ASSERT_TRUE(owner.has_value());
  EXPECT_EQ(owner->uid, 1001u);
  EXPECT_EQ(owner->groups, (std::vector<uint32_t>{100, 2001}));
  EXPECT_EQ(owner->home, "/home/alice");
  ASSERT_TRUE(until([&] { return !events().empty(); }));
  EXPECT_EQ(get(kCronEvents).json()["items"].size(), 1u) << "its owner sees its events";
  uid = 1002;
  EXPECT_EQ(get(kCrons).json()["items"].size(), 0u);
  EXPECT_EQ(get(kCrons + "/tick").code, 403);
}

TEST_F(CronOfUsersTest, NothingIsStartedForAUserWhoHasLeft) {
  member = false;
  core::Kept kept{
      .kind = core::KeptKind::cron_job, .ns = "default", .name = "tick", .uid = uid_of(9)};
  Json cron = cron_job("tick", "* * * * *");
  cron["metadata"]["namespace"] = "default";
  cron["metadata"]["uid"] = kept.uid;
  cron["metadata"]["creationTimestamp"] = "2023-11-14T22:13:20Z";
  kept.json = cron.dump();
  kept.owner = 1001;
  feed.kept(nullptr, std::make_shared<const core::Kept>(kept));
  move_to(at(15));
  ASSERT_TRUE(until([&] { return !events().empty(); }));
  EXPECT_THAT(events(),
              ::testing::ElementsAre(
                  "FailedCreate: Error creating job: user \"alice\" may not create jobs"));
  EXPECT_FALSE(has_job(child("tick", at(15))));
}

}  // namespace
}  // namespace muster::api
