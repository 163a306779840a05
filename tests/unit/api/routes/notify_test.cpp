// Those who asked to be told of a job's end: the command's job and the mail, once each.
#include "core/job/shown/notice.hpp"
#include "tests/unit/api/routes/server_fixture.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace muster::api {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kNotifiedJobs = "/apis/batch/v1/namespaces/default/jobs";
Millis notify_now = kStart;

class NotifyTest : public ServerTest {
 protected:
  NotifyTest() : ServerTest([](ServerOptions& o) { o.now = [] { return notify_now; }; }) {
    notify_now = kStart;
    backend.mail_open = true;
  }

  // Creates a job with these annotations; it has a uid as all jobs do.
  JobId create(const std::string& name, const Json& annotations) {
    const Json job = {{"apiVersion", "batch/v1"},
                      {"kind", "Job"},
                      {"metadata", {{"name", name}, {"annotations", annotations}}},
                      {"spec",
                       {{"template",
                         {{"spec",
                           {{"restartPolicy", "Never"},
                            {"nodeSelector", {{"disk", "ssd"}}},
                            {"activeDeadlineSeconds", 5},
                            {"initContainers", {{{"name", "first"}, {"command", {"true"}}}}},
                            {"containers",
                             {{{"name", "main"},
                               {"command", {"step"}},
                               {"workingDir", "/data"},
                               {"env", {{{"name", "A"}, {"value", "1"}}}},
                               {"resources", {{"requests", {{"cpu", "64"}}}}}}}}}}}}}}};
    const Answer answer = post(kNotifiedJobs, job.dump());
    EXPECT_EQ(answer.code, 201) << answer.body;
    return view.job("default", name)->job->id();
  }
  void finish(JobId id, bool complete) {
    feed.records(id, {core::FinishDecided{notify_now, complete,
                                          complete ? core::ConditionReason::completions_reached
                                                   : core::ConditionReason::backoff_limit_exceeded,
                                          "the end"}});
    feed.records(id, {core::JobFinished{notify_now}});
    turn();
  }
  // Wakes the notifier as any change does.
  void turn() {
    for (int i = 0; i < 5; ++i) {
      feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
      get(kNotifiedJobs);
    }
  }
  std::string notified(const std::string& name) {
    return get(kNotifiedJobs + "/" + name)
        .json()["metadata"]["annotations"]
        .value("muster.dev/notified", "");
  }
  std::vector<std::string> complaints() {
    std::vector<std::string> out;
    view.each_kept(core::KeptKind::event, "", [&](const Shown& shown) {
      const Json event = Json::parse(shown.kept->kept->json);
      out.push_back(event["reason"].get<std::string>() + ": " +
                    event["message"].get<std::string>());
    });
    return out;
  }
};

TEST_F(NotifyTest, MailIsSentOnceAndTheJobMarked) {
  const JobId id = create("fit", {{"muster.dev/mail", "ada@example.org,bob"}});
  turn();
  EXPECT_THAT(backend.mails, IsEmpty()) << "it runs";
  finish(id, true);
  ASSERT_EQ(backend.mails.size(), 1u);
  EXPECT_THAT(backend.mails[0].first, ElementsAre("ada@example.org", "bob"));
  EXPECT_THAT(backend.mails[0].second, HasSubstr("Subject: muster: job fit complete\n"));
  EXPECT_EQ(notified("fit"), "2023-11-14T22:13:20Z");
  turn();
  EXPECT_EQ(backend.mails.size(), 1u);
  EXPECT_THAT(complaints(), IsEmpty());
}

TEST_F(NotifyTest, TheCommandRunsAsAJobOfItsOwn) {
  finish(create("fit", {{"muster.dev/notify", "echo $MUSTER_ENDED_STATE"},
                        {"muster.dev/nice", "5"},
                        {"muster.dev/start-failure", "FailJob"}}),
         false);
  const std::string uid = get(kNotifiedJobs + "/fit").json()["metadata"]["uid"];
  const std::string name = "fit-end-" + uid.substr(0, 8);
  const Json job = get(kNotifiedJobs + "/" + name).json();
  EXPECT_EQ(job["metadata"]["annotations"], (Json{{"muster.dev/nice", "5"}}));
  EXPECT_EQ(job["spec"]["backoffLimit"], 0);
  EXPECT_EQ(job["spec"]["ttlSecondsAfterFinished"], 86400);
  const Json pod = job["spec"]["template"]["spec"];
  EXPECT_EQ(pod["nodeSelector"], (Json{{"disk", "ssd"}}));
  EXPECT_FALSE(pod.contains("initContainers"));
  EXPECT_EQ(pod["activeDeadlineSeconds"], 3600);
  const Json container = pod["containers"][0];
  EXPECT_EQ(container["command"], (Json{"sh", "-c", "echo $$MUSTER_ENDED_STATE"}))
      << "$$ is $ again when it runs";
  EXPECT_EQ(container["workingDir"], "/data");
  EXPECT_FALSE(container["resources"].contains("requests"));
  std::map<std::string, std::string> env;
  for (const Json& one : container["env"]) env[one["name"]] = one.value("value", "");
  EXPECT_EQ(env["A"], "1");
  EXPECT_EQ(env["MUSTER_ENDED_JOB"], "fit");
  EXPECT_EQ(env["MUSTER_ENDED_STATE"], "Failed");
  EXPECT_EQ(env["MUSTER_ENDED_REASON"], "BackoffLimitExceeded");
  EXPECT_NE(notified("fit"), "");
  const int creates = backend.creates;
  turn();
  EXPECT_EQ(backend.creates, creates);
}

// As after a crash between the creation and the mark.
TEST_F(NotifyTest, ACommandsJobThatExistsIsNotCreatedAgain) {
  finish(create("fit", {{"muster.dev/notify", "true"}}), true);
  EXPECT_NE(notified("fit"), "");
  const int creates = backend.creates;
  const Answer unmarked = call(
      request("PATCH", kNotifiedJobs + "/fit", "Content-Type: application/merge-patch+json\r\n",
              R"({"metadata":{"annotations":{"muster.dev/notified":null}}})"));
  EXPECT_EQ(unmarked.code, 200) << unmarked.body;
  turn();
  EXPECT_EQ(backend.creates, creates);
  EXPECT_NE(notified("fit"), "");
  EXPECT_THAT(complaints(), IsEmpty());
}

TEST_F(NotifyTest, AnotherJobOfThatNameIsNotTheCommands) {
  const JobId id = create("fit", {{"muster.dev/notify", "true"}});
  const std::string uid = get(kNotifiedJobs + "/fit").json()["metadata"]["uid"];
  create("fit-end-" + uid.substr(0, 8), Json::object());
  finish(id, true);
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("another job is called fit-end-")));
}

// A copy of a job that was told is told, too.
TEST_F(NotifyTest, TheMarkIsNotCopied) {
  finish(create("copy", {{"muster.dev/mail", "ada"}, {"muster.dev/notified", "x"}}), true);
  EXPECT_EQ(backend.mails.size(), 1u);
}

TEST_F(NotifyTest, AFailureIsTriedAgainAndShown) {
  backend.mail_refuse = Error{Errc::unavailable, "sendmail exited with 75: no queue", {}};
  finish(create("fit", {{"muster.dev/mail", "ada"}}), true);
  EXPECT_EQ(backend.mails.size(), 1u);
  EXPECT_EQ(notified("fit"), "");
  EXPECT_THAT(complaints(), ElementsAre("FailedNotify: the mail was not sent: sendmail exited with "
                                        "75: no queue"));
  turn();
  EXPECT_EQ(backend.mails.size(), 1u) << "not at once";
  notify_now += 10'000;
  turn();
  EXPECT_EQ(backend.mails.size(), 2u);
  EXPECT_EQ(complaints().size(), 1u);
  backend.mail_refuse.reset();
  notify_now += 20'000;
  turn();
  EXPECT_EQ(backend.mails.size(), 3u);
  EXPECT_NE(notified("fit"), "");
}

TEST_F(NotifyTest, AfterADayItIsGivenUp) {
  backend.mail_refuse = Error{Errc::unavailable, "down", {}};
  finish(create("fit", {{"muster.dev/mail", "ada"}}), true);
  notify_now += core::kNoticeLifeMs;
  turn();
  EXPECT_NE(notified("fit"), "");
}

TEST_F(NotifyTest, AChangeOfTheJobMeanwhileDoesNotLoseTheMark) {
  const JobId id = create("fit", {{"muster.dev/mail", "ada"}});
  backend.before_update = [&](JobId job) {
    auto next = std::make_shared<core::JobObject>(view.job("default", "fit")->job->object());
    Json document = Json::parse(next->json);
    document["metadata"]["labels"]["x"] = "y";
    next->meta.labels["x"] = "y";
    next->json = document.dump();
    feed.records(job, {core::JobSpecChanged{kStart, next->meta.generation, 1, 1, next}});
  };
  finish(id, true);
  notify_now += 10'000;
  turn();
  EXPECT_NE(notified("fit"), "");
  EXPECT_EQ(get(kNotifiedJobs + "/fit").json()["metadata"]["labels"]["x"], "y");
  EXPECT_EQ(backend.mails.size(), 1u);
}

TEST_F(NotifyTest, WrongWishesAreRefusedAndMissingMailSaid) {
  const auto answer = [this](const Json& annotations) {
    const Json job = {{"apiVersion", "batch/v1"},
                      {"kind", "Job"},
                      {"metadata", {{"name", "w"}, {"annotations", annotations}}},
                      {"spec",
                       {{"template",
                         {{"spec",
                           {{"restartPolicy", "Never"},
                            {"containers", {{{"name", "m"}, {"command", {"true"}}}}}}}}}}}};
    return post(kNotifiedJobs + "?dryRun=All", job.dump());
  };
  for (const Json& wrong :
       {Json{{"muster.dev/mail", "-x"}}, Json{{"muster.dev/notify", ""}},
        Json{{"muster.dev/notify", std::string(4097, 'x')}}, Json{{"muster.dev/notify-on", "fail"}},
        Json{{"muster.dev/mail", "ada"}, {"muster.dev/notify-on", "begin"}}})
    EXPECT_EQ(answer(wrong).code, 422) << wrong;
  EXPECT_EQ(answer({{"muster.dev/notify", std::string(4096, 'x')}}).code, 201);
  backend.mail_open = false;
  const Answer warned = answer({{"muster.dev/mail", "ada"}});
  EXPECT_EQ(warned.code, 201);
  EXPECT_THAT(warned.head, HasSubstr("no mail will be sent"));
}

TEST_F(NotifyTest, MissingMailIsSaidWhenAddressesAreSetLater) {
  backend.mail_open = false;
  create("fit", Json::object());
  const auto change = [this](const std::string& patch) {
    return call(request("PATCH", kNotifiedJobs + "/fit",
                        "Content-Type: application/merge-patch+json\r\n",
                        R"({"metadata":)" + patch + "}"));
  };
  const Answer set = change(R"({"annotations":{"muster.dev/mail":"ada"}})");
  EXPECT_EQ(set.code, 200) << set.body;
  EXPECT_THAT(set.head, HasSubstr("no mail will be sent"));
  EXPECT_THAT(change(R"({"labels":{"x":"y"}})").head, Not(HasSubstr("no mail"))) << "already said";
  EXPECT_THAT(change(R"({"annotations":{"muster.dev/mail":null}})").head,
              Not(HasSubstr("no mail")));
}

}  // namespace
}  // namespace muster::api
