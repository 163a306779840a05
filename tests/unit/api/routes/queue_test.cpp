// Queues and priority classes: their API, and what they allow new jobs.
#include "tests/unit/api/routes/server_fixture.hpp"

#include <gmock/gmock.h>

namespace muster::api::testing {
namespace {

using namespace ::testing;

constexpr uid_t kAnn = 1001, kBen = 1002, kOperator = 1003;
const std::string kQueues = "/apis/muster.dev/v1/queues";
const std::string kClasses = "/apis/scheduling.k8s.io/v1/priorityclasses";

// Bob is in the group root, which exists everywhere.
Account member_of(uid_t uid) {
  const char* name = uid == kAnn ? "alice" : uid == kBen ? "bob" : "olga";
  Account account{{uid, uid, name}, {"hpc"}};
  if (uid == kBen) account.who.groups = {0};
  if (uid == kOperator) account.groups.emplace_back("ops");
  return account;
}

Json queue(const std::string& name, Json spec) {
  return {{"apiVersion", "muster.dev/v1"},
          {"kind", "Queue"},
          {"metadata", {{"name", name}}},
          {"spec", std::move(spec)}};
}

class QueueTest : public ServerTest {
 protected:
  QueueTest()
      : ServerTest([](ServerOptions& o) {
          o.roles = {{"hpc"}, {"ops"}, {}, {}};
          o.read_account = member_of;
        }) {}

  Answer as(uid_t who, const std::string& method, const std::string& path, const Json& body = {}) {
    uid = who;
    return call(request(method, path, body.empty() ? "" : "Content-Type: application/json\r\n",
                        body.empty() ? "" : body.dump()));
  }
  // Submits a job to a queue with these fields of its pods.
  Answer submit(uid_t who, const std::string& queue, Json pod = Json::object()) {
    pod.update(
        {{"restartPolicy", "Never"}, {"containers", {{{"name", "main"}, {"image", "img"}}}}});
    Json job = {{"apiVersion", "batch/v1"},
                {"kind", "Job"},
                {"metadata", {{"name", "j" + std::to_string(++jobs_)}}},
                {"spec", {{"template", {{"spec", std::move(pod)}}}}}};
    if (!queue.empty()) job["metadata"]["annotations"] = {{"muster.dev/queue", queue}};
    return as(who, "POST", kJobs, job);
  }
  std::vector<std::string> causes(const Answer& answer) {
    std::vector<std::string> all;
    const Json status = answer.json();
    if (!status.contains("details")) return all;
    for (const Json& one : status["details"].value("causes", Json::array()))
      all.push_back(one["field"].get<std::string>() + ": " + one["message"].get<std::string>());
    return all;
  }

 private:
  int jobs_ = 0;
};

TEST_F(QueueTest, AreWrittenByOperatorsAndReadByAll) {
  const Json short_queue = queue("short", {{"timeLimit", {{"max", "1h"}}}});
  EXPECT_EQ(as(kAnn, "POST", kQueues, short_queue).code, 403);
  const Answer made = as(kOperator, "POST", kQueues, short_queue);
  EXPECT_EQ(made.code, 201) << made.body;
  EXPECT_EQ(made.json()["metadata"]["generation"], 1);
  EXPECT_FALSE(made.json()["metadata"].contains("namespace"));
  EXPECT_EQ(as(kOperator, "POST", kQueues, short_queue).code, 409);
  EXPECT_EQ(as(kAnn, "GET", kQueues).json()["items"].size(), 1u);
  EXPECT_EQ(as(kAnn, "GET", kQueues + "/short").json()["spec"]["timeLimit"]["max"], "1h");
  Json changed = made.json();
  changed["spec"]["weight"] = 3;
  const Answer put = as(kOperator, "PUT", kQueues + "/short", changed);
  EXPECT_EQ(put.code, 200) << put.body;
  EXPECT_EQ(put.json()["metadata"]["generation"], 2);
  EXPECT_EQ(as(kAnn, "DELETE", kQueues + "/short").code, 403);
  EXPECT_EQ(as(kOperator, "DELETE", kQueues + "/short").code, 200);
  EXPECT_EQ(as(kOperator, "GET", kQueues + "/short").code, 404);
  EXPECT_EQ(as(kOperator, "GET", "/api/v1/namespaces").json()["items"].size(), 1u)
      << "objects without a namespace make none";
}

TEST_F(QueueTest, RefusesValuesThatMeanNothing) {
  const Answer refused = as(kOperator, "POST", kQueues,
                            queue("Short", {{"nodeSelector", {{"a/b/c", "x"}}},
                                            {"users", {"ann", "ann"}},
                                            {"priority", {{"default", 5}, {"max", 3}}},
                                            {"timeLimit", {{"default", "90"}, {"max", "0s"}}},
                                            {"limits", {{"gpu", "1"}, {"pods", "1500m"}}},
                                            {"userLimits", {{"memory", "-1Gi"}}},
                                            {"weight", 0},
                                            {"userWeights", {{"ann", 0}, {"bob", 2}}},
                                            {"preemption", {{"queues", {"No"}}}}}));
  EXPECT_EQ(refused.code, 422) << refused.body;
  std::set<std::string> fields;
  const Json status = refused.json();
  for (const Json& one : status["details"]["causes"])
    fields.insert(one["field"].get<std::string>());
  EXPECT_EQ(fields, (std::set<std::string>{
                        "metadata.name", "spec.nodeSelector", "spec.users[1]",
                        "spec.priority.default", "spec.timeLimit.default", "spec.timeLimit.max",
                        "spec.limits[gpu]", "spec.limits[pods]", "spec.userLimits[memory]",
                        "spec.weight", "spec.userWeights[ann]", "spec.preemption.queues[0]"}));
  EXPECT_EQ(
      as(kOperator, "POST", kQueues + "?fieldValidation=Strict", queue("q", {{"wieght", 1}})).code,
      400);
}

TEST_F(QueueTest, AdmitJobsThatTheyAllow) {
  EXPECT_EQ(as(kOperator, "POST", kQueues,
               queue("lab", {{"users", {"alice"}},
                             {"groups", {"root", "no-such-group"}},
                             {"priority", {{"max", 10}}},
                             {"timeLimit", {{"default", "10m"}, {"max", "1h"}}}}))
                .code,
            201);
  const Answer made = submit(kAnn, "lab");
  EXPECT_EQ(made.code, 201) << made.body;
  EXPECT_EQ(made.json()["spec"]["template"]["spec"]["activeDeadlineSeconds"], 600);
  EXPECT_EQ(submit(kAnn, "lab", {{"priority", 10}}).code, 201);
  EXPECT_EQ(submit(kAnn, "lab", {{"priority", 11}}).code, 403);
  EXPECT_EQ(submit(kBen, "lab").code, 201) << "a member of one of its groups";
  EXPECT_EQ(submit(kOperator, "lab", {{"priority", 11}}).code, 201) << "an operator";
  EXPECT_THAT(causes(submit(kOperator, "lab", {{"activeDeadlineSeconds", 3601}})),
              ElementsAre(HasSubstr("spec.template.spec.activeDeadlineSeconds: Invalid value")));
  EXPECT_THAT(causes(submit(kOperator, "lap")),
              ElementsAre("metadata.annotations[muster.dev/queue]: Not found: \"lap\""));
  EXPECT_THAT(causes(submit(kOperator, "No")),
              Contains(HasSubstr("metadata.annotations[muster.dev/queue]: Invalid value")));
}

TEST_F(QueueTest, AJobWithItsQueuesTimeLimitCanBeChanged) {
  EXPECT_EQ(as(kOperator, "POST", kQueues, queue("short", {{"timeLimit", {{"max", "1h"}}}})).code,
            201);
  Json job = submit(kAnn, "short").json();
  const std::string path = kJobs + "/" + job["metadata"]["name"].get<std::string>();
  EXPECT_EQ(job["spec"]["template"]["spec"]["activeDeadlineSeconds"], 3600);
  job["metadata"]["labels"]["a"] = "b";
  EXPECT_EQ(as(kAnn, "PUT", path, job).code, 200);
  // As its owner wrote it.
  job["metadata"].erase("resourceVersion");
  job["spec"]["template"]["spec"].erase("activeDeadlineSeconds");
  const Answer again = as(kAnn, "PUT", path, job);
  EXPECT_EQ(again.code, 200) << again.body;
  EXPECT_EQ(again.json()["spec"]["template"]["spec"]["activeDeadlineSeconds"], 3600);
  job["spec"]["template"]["spec"]["activeDeadlineSeconds"] = 60;
  EXPECT_EQ(as(kAnn, "PUT", path, job).code, 422) << "it is immutable";
  // What has no limit does not enter it.
  Json endless = submit(kAnn, "").json();
  endless["metadata"]["annotations"]["muster.dev/queue"] = "short";
  EXPECT_THAT(causes(as(kAnn, "PUT", kJobs + "/" + endless["metadata"]["name"].get<std::string>(),
                        endless)),
              ElementsAre("spec.template.spec.activeDeadlineSeconds: Required value: pods in queue "
                          "short have a time limit of at most 1h; "
                          "an operator may raise it"));
}

TEST_F(QueueTest, AJobMovesOnlyByAWriteOfTheJob) {
  Json job = submit(kAnn, "").json();
  const std::string path = kJobs + "/" + job["metadata"]["name"].get<std::string>() + "/status";
  job["metadata"]["annotations"]["muster.dev/queue"] = "elsewhere";
  EXPECT_THAT(
      causes(as(kAnn, "PUT", path, job)),
      ElementsAre("metadata.annotations[muster.dev/queue]: Forbidden: the queue is changed by "
                  "writing the job, not its status"));
}

TEST_F(QueueTest, AreListedAsTables) {
  EXPECT_EQ(as(kOperator, "POST", kQueues, queue("short", {{"weight", 2}})).code, 201);
  const Answer table = call(request(
      "GET", kQueues, "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json\r\n"));
  EXPECT_EQ(table.json()["kind"], "Table");
  EXPECT_EQ(table.json()["rows"][0]["cells"][3], "2");
}

TEST_F(QueueTest, JobOfAnotherUserMovesIntoNone) {
  EXPECT_EQ(as(kOperator, "POST", kQueues, queue("lab", {{"users", {"alice"}}})).code, 201);
  EXPECT_EQ(submit(kBen, "lab").code, 403);
  Json job = submit(kBen, "").json();
  const std::string path = kJobs + "/" + job["metadata"]["name"].get<std::string>();
  job["metadata"]["annotations"]["muster.dev/queue"] = "lab";
  EXPECT_EQ(as(kBen, "PUT", path, job).code, 403);
  job["metadata"]["annotations"]["muster.dev/queue"] = "none";
  EXPECT_EQ(as(kBen, "PUT", path, job).code, 422);
}

TEST_F(QueueTest, PriorityClassesAreNamesForPriorities) {
  const auto made = [this](const std::string& name, Json fields) {
    fields.update({{"apiVersion", "scheduling.k8s.io/v1"},
                   {"kind", "PriorityClass"},
                   {"metadata", {{"name", name}}}});
    return as(kOperator, "POST", kClasses, fields);
  };
  const Answer high = made("high", {{"value", 1000}});
  EXPECT_EQ(high.code, 201) << high.body;
  EXPECT_EQ(high.json()["preemptionPolicy"], "PreemptLowerPriority");
  EXPECT_EQ(made("low", {{"value", -1}, {"preemptionPolicy", "Never"}}).code, 201);
  EXPECT_THAT(
      causes(made("system-x", {{"value", 1'000'000'001}})),
      ElementsAre("metadata.name: Forbidden: priority class names with 'system-' prefix are "
                  "reserved for system use only",
                  "value: Forbidden: maximum allowed value of a user defined priority is "
                  "1000000000"));
  EXPECT_EQ(made("odd", {{"value", 1}, {"preemptionPolicy", "Sometimes"}}).code, 422);
  EXPECT_EQ(made("none", Json::object()).json()["value"], 0);
  Json changed = high.json();
  changed["value"] = 5;
  EXPECT_THAT(causes(as(kOperator, "PUT", kClasses + "/high", changed)),
              ElementsAre("value: Forbidden: may not be changed in an update."));
  EXPECT_EQ(submit(kAnn, "", {{"priorityClassName", "low"}}).code, 201);
  EXPECT_EQ(submit(kAnn, "", {{"priorityClassName", "high"}}).code, 403);
  EXPECT_EQ(submit(kOperator, "", {{"priorityClassName", "high"}}).code, 201);
  EXPECT_THAT(causes(submit(kOperator, "", {{"priorityClassName", "hihg"}})),
              ElementsAre("spec.template.spec.priorityClassName: Not found: \"hihg\""));
}

}  // namespace
}  // namespace muster::api::testing
