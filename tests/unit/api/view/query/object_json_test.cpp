// Objects as JSON, and rows of tables.
#include "api/view/query/object_json.hpp"

#include "api/view/render/job_text.hpp"
#include "api/view/render/render.hpp"
#include "api/view/render/tables.hpp"
#include "core/pod_name.hpp"
#include "tests/unit/api/view/view_fixture.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

using namespace testing;

class JsonTest : public ::testing::Test {
 protected:
  Json get(const std::optional<Shown>& shown) {
    EXPECT_TRUE(shown);
    std::string text;
    renderer.object(text, *shown);
    Json json = Json::parse(text, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << text;
    return json;
  }
  Json pod(PodKey key) { return get(view.find({Kind::pod, 1, 0, key})); }
  Json job() { return get(view.job("default", "a")); }
  static Json condition(const Json& object, const std::string& type) {
    for (const Json& c : object["status"]["conditions"])
      if (c["type"] == type) return c;
    return nullptr;
  }
  View view;
  Feeder feed{view};
  Renderer renderer{view, [] { return kStart + 60'000; }};
};

TEST_F(JsonTest, AFreshJobHasAnEmptyStatus) {
  feed.admit(1, make_job("a", uid_of(1)));
  const Json json = job();
  EXPECT_EQ(json["kind"], "Job");
  EXPECT_EQ(json["apiVersion"], "batch/v1");
  EXPECT_EQ(json["status"], Json::object());
  EXPECT_EQ(json["metadata"]["resourceVersion"], std::to_string(first_version(1) + 1));
  EXPECT_EQ(json["metadata"]["uid"], uid_of(1));
  EXPECT_EQ(json["metadata"]["creationTimestamp"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(json["spec"]["completions"], 3);
}

// Appending to the owner's text must give the same bytes as parsing it.
TEST_F(JsonTest, P17AppendedJobTextEqualsParsedOne) {
  auto same = [this](const core::Job& job) {
    std::string text, metadata, row;
    append_job(text, job, 42);
    append_job_metadata(metadata, job, 42);
    const OrderedJson parsed = job_json(job, 42);
    EXPECT_EQ(text, dumped(parsed));
    EXPECT_EQ(metadata, dumped(parsed["metadata"]));
  };
  feed.admit(1, make_job("a", uid_of(1)));
  same(*view.job("default", "a")->job);
  feed.records(1, {core::JobStarted{kStart}});
  feed.create(1, 0, 3);
  feed.bind(1, {0, 0});
  feed.end(1, {0, 0}, 0);
  feed.records(1, {core::FinishDecided{kStart + 2, false, core::ConditionReason::deadline_exceeded,
                                       "a \"message\"\n\xff"}});
  same(*view.job("default", "a")->job);
  auto object = [](std::string json) {
    auto made = std::make_shared<core::JobObject>();
    made->json = std::move(json);
    return core::Job(1, made);
  };
  same(object(R"({"metadata":{}})"));
  same(object(R"({"kind":"Job","metadata":{"name":"x"},"spec":{"metadata":{"y":"}"}}})"));
  same(object(
      R"({"spec":{"metadata":{"status":"a\\\"metadata\":{"}},"metadata":{"labels":{"metadata":"{"}}})"));
  same(object(R"({"metadata":{"resourceVersion":"7","name":"x"}})"));
  same(object(R"({ "metadata" : {"name":"x"} })"));
  same(object(R"({"metadata":{"name":"x"},"status":{"old":1}})"));
}

TEST_F(JsonTest, P17BriefJobPrintsSameAsWholeJob) {
  const auto object = make_job("a", uid_of(1), 3, R"(,"backoffLimitPerIndex":1)");
  core::JobState state;
  state.completions = 3;
  state.started_at = kStart;
  state.completed_at = kStart + 5000;
  state.synced = true;
  state.conditions.push_back({core::ConditionType::complete, true, kStart + 5000,
                              core::ConditionReason::completions_reached, "all"});
  state.own_conditions = R"([{"type":"example.com/Seen","status":"True"}])";
  state.completed.insert_range(0, 1);
  state.failed_indexes.insert(2);
  state.failed = 4;
  auto text = [](const core::Job& job) {
    std::string out;
    append_job(out, job, 7);
    return out;
  };
  auto brief = std::make_shared<core::JobObject>(core::brief(*object));
  brief->json = object->json;
  const std::string whole = text(core::Job(1, object, state));
  EXPECT_NE(whole.find("example.com/Seen"), std::string::npos);
  EXPECT_EQ(text(core::Job(1, brief, core::brief(state))), whole);
  state.external_status = R"({"active":1})";
  EXPECT_EQ(text(core::Job(1, brief, core::brief(state))), text(core::Job(1, object, state)));
}

TEST_F(JsonTest, ZerosAreLeftOutAsInKubernetes) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.records(1, {core::JobStarted{kStart}});
  EXPECT_EQ(
      job()["status"],
      Json::parse(
          R"({"startTime":"2023-11-14T22:13:20Z","ready":0,"terminating":0,"uncountedTerminatedPods":{}})"));
  feed.create(1, 0, 3);
  feed.bind(1, {0, 0});
  feed.bind(1, {2, 0});
  feed.end(1, {0, 0}, 0);
  feed.end(1, {2, 0}, 1, core::Counted::failed);
  EXPECT_EQ(
      job()["status"],
      Json::parse(
          R"({"startTime":"2023-11-14T22:13:20Z","active":1,"succeeded":1,"failed":1,"completedIndexes":"0",
                            "ready":0,"terminating":0,"uncountedTerminatedPods":{}})"));
}

TEST_F(JsonTest, FailedIndexesAreShownWithLimitPerIndex) {
  feed.admit(1, make_job("a", uid_of(1), 3, R"(,"backoffLimitPerIndex":1)"));
  feed.records(1, {core::JobStarted{kStart}});
  EXPECT_EQ(job()["status"]["failedIndexes"], "");
  feed.create(1, 0, 1);
  EXPECT_EQ(pod({0, 0})["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"],
            "0");
  EXPECT_FALSE(pod({0, 0})["metadata"]["annotations"].contains(
      "batch.kubernetes.io/job-index-ignored-failure-count"));
}

TEST_F(JsonTest, CancelledIndexesAreShownApart) {
  feed.admit(1, make_job("a", uid_of(1), 5, R"(,"backoffLimitPerIndex":1)"));
  feed.records(1, {core::JobStarted{kStart}});
  EXPECT_FALSE(job()["status"].contains("cancelledIndexes"));
  feed.create(1, 0, 1);
  feed.bind(1, {0, 0});
  core::IndexSet some = core::IndexSet::parse_lenient("0,3-4", core::kAnyIndex);
  feed.records(1, {core::IndexesCancelled{kStart, "alice", some}});
  EXPECT_EQ(job()["status"]["cancelledIndexes"], "3,4") << "the pod of 0 may have succeeded";
  feed.end(1, {0, 0}, 143, core::Counted::cancelled);
  EXPECT_EQ(job()["status"]["cancelledIndexes"], "0,3,4");
}

TEST_F(JsonTest, JobShowsConditionsAndDeletionTimestamp) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.records(1, {core::FinishDecided{kStart, false, core::ConditionReason::backoff_limit_exceeded,
                                       "Job has reached the specified backoff limit"}});
  feed.records(1, {core::JobFinished{kStart}});
  EXPECT_EQ(condition(job(), "Failed"),
            Json::parse(R"({"type":"Failed","status":"True","lastProbeTime":"2023-11-14T22:13:20Z",
                            "lastTransitionTime":"2023-11-14T22:13:20Z","reason":"BackoffLimitExceeded",
                            "message":"Job has reached the specified backoff limit"})"));
  feed.records(1, {core::JobDeleted{kStart, false}});
  EXPECT_EQ(job()["metadata"]["deletionTimestamp"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(job()["metadata"]["finalizers"], Json::parse(R"(["foregroundDeletion"])"));
}

TEST_F(JsonTest, PodShowsPhasesFromCreationToEnd) {
  core::NodeInfo node = make_node(1, "n1", core::NodeInfo::Health::ready);
  node.ip = "10.0.0.7";
  feed.node(node);
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 1, 1);
  Json json = pod({1, 0});
  EXPECT_EQ(json["metadata"]["name"], core::pod_name("a", uid_of(1), true, {1, 0}));
  EXPECT_EQ(json["metadata"]["uid"], core::pod_uid(uid_of(1), {1, 0}));
  EXPECT_EQ(json["metadata"]["labels"]["team"], "blue");
  EXPECT_EQ(json["metadata"]["labels"]["batch.kubernetes.io/job-name"], "a");
  EXPECT_EQ(json["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"], "1");
  EXPECT_EQ(json["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"], "1");
  EXPECT_EQ(json["metadata"]["finalizers"], Json::parse(R"(["batch.kubernetes.io/job-tracking"])"));
  EXPECT_EQ(json["metadata"]["ownerReferences"],
            Json::parse(R"([{"apiVersion":"batch/v1","kind":"Job","name":"a","uid":")" + uid_of(1) +
                        R"(","controller":true,"blockOwnerDeletion":true}])"));
  EXPECT_EQ(json["spec"]["hostname"], "a-1");
  EXPECT_FALSE(json["spec"].contains("nodeName"));
  EXPECT_EQ(json["spec"]["containers"][0]["env"][0]["name"], "JOB_COMPLETION_INDEX");
  EXPECT_EQ(json["status"]["phase"], "Pending");
  EXPECT_EQ(condition(json, "PodScheduled")["status"], "False");
  EXPECT_FALSE(json["status"].contains("containerStatuses"));
  EXPECT_EQ(json["status"]["hostIP"], "");
  EXPECT_FALSE(json["status"].contains("podIP"));

  feed.bind(1, {1, 0});
  json = pod({1, 0});
  for (const char* ip : {"hostIP", "podIP"}) {
    EXPECT_EQ(json["status"][ip], "10.0.0.7");
    EXPECT_EQ(json["status"][std::string(ip) + "s"], Json::parse(R"([{"ip":"10.0.0.7"}])"));
  }
  EXPECT_EQ(json["spec"]["nodeName"], "n1");
  EXPECT_EQ(json["status"]["phase"], "Pending");
  EXPECT_EQ(json["status"]["containerStatuses"][0]["state"]["waiting"]["reason"],
            "ContainerCreating");

  feed.start(1, {1, 0});
  json = pod({1, 0});
  EXPECT_EQ(json["status"]["phase"], "Running");
  EXPECT_EQ(json["metadata"]["annotations"]["muster.dev/pid"], "4711");
  EXPECT_FALSE(json["metadata"]["annotations"].contains("muster.dev/cpus"));
  feed.records(1, {core::PodsStarted{
                      kStart + 2000,
                      {{{1, 0}, 4711, 0, kStart + 2000, core::Readiness::ready, {}, "0-1"}}}});
  json = pod({1, 0});
  EXPECT_EQ(json["metadata"]["annotations"]["muster.dev/cpus"], "0-1");
  EXPECT_EQ(condition(json, "Ready")["status"], "True");
  EXPECT_EQ(json["status"]["containerStatuses"][0]["state"]["running"]["startedAt"],
            "2023-11-14T22:13:22Z");

  auto one = Feeder::end_of({1, 0}, 139, core::Counted::failed);
  one.end.signal = 11;
  feed.records(1, {core::PodsEnded{kStart, {one}, 0, 0}});
  json = pod({1, 0});
  EXPECT_EQ(json["status"]["phase"], "Failed");
  EXPECT_FALSE(json["metadata"].contains("finalizers"));
  EXPECT_EQ(json["status"]["containerStatuses"][0]["state"]["terminated"],
            Json::parse(
                R"({"exitCode":139,"signal":11,"reason":"Error","startedAt":"2023-11-14T22:13:22Z",
                            "finishedAt":"2023-11-14T22:13:23Z"})"));
  EXPECT_TRUE(condition(json, "DisruptionTarget").is_null());
}

TEST_F(JsonTest, EndCauseSetsDisruptionAndContainerReason) {
  using core::EndCause;
  const struct {
    EndCause cause;
    const char* disruption;  // empty: none
    const char* container;
  } table[] = {
      {EndCause::exited, "", "Error"},
      {EndCause::start_failed, "", "StartError"},
      {EndCause::out_of_memory, "", "OOMKilled"},
      {EndCause::keeper_lost, "TerminationByKubelet", "ContainerStatusUnknown"},
      {EndCause::agent_stopped, "TerminationByKubelet", "Error"},
      {EndCause::node_lost, "DeletionByTaintManager", "ContainerStatusUnknown"},
      {EndCause::node_deleted, "DeletionByPodGC", "ContainerStatusUnknown"},
      {EndCause::evicted, "TerminationByKubelet", "Error"},
      {EndCause::worker_unreachable, "WorkerUnreachable", "Error"},
  };
  feed.admit(1, make_job("a", uid_of(1), 10));
  feed.create(1, 0, 10);
  uint32_t index = 0;
  for (const auto& row : table) {
    feed.bind(1, {index, 0});
    feed.start(1, {index, 0});
    auto one = Feeder::end_of({index, 0}, 137, core::Counted::failed);
    one.end.cause = row.cause;
    one.end.message = "quote \" and \x01 and \xff";
    feed.records(1, {core::PodsEnded{kStart, {one}, 0, 0}});
    const Json json = pod({index++, 0});
    const Json target = condition(json, "DisruptionTarget");
    EXPECT_EQ(target.is_null() ? "" : target["reason"].get<std::string>(), row.disruption);
    EXPECT_EQ(json["status"]["containerStatuses"][0]["state"]["terminated"]["reason"],
              row.container);
  }
}

TEST_F(JsonTest, DeletedPodShowsDeletionTimestampAndGrace) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  feed.bind(1, {0, 0});
  feed.records(1, {core::PodsStopping{kStart, {{{0, 0}, core::Counted::released}}}});
  const Json json = pod({0, 0});
  EXPECT_EQ(json["metadata"]["deletionTimestamp"], "2023-11-14T22:13:50Z")
      << "with the grace of 30 s";
  EXPECT_EQ(json["metadata"]["deletionGracePeriodSeconds"], 30);
}

TEST_F(JsonTest, NodeAndEventShowConditionsAndReasons) {
  feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  Json node = get(view.node("n1"));
  EXPECT_EQ(condition(node, "Ready")["status"], "True");
  EXPECT_EQ(node["status"]["capacity"], Json::parse(R"({"cpu":"4","memory":"8192Ki","pods":"4"})"));
  EXPECT_EQ(node["status"]["nodeInfo"]["bootID"], "boot-1");
  EXPECT_EQ(node["metadata"]["labels"]["zone"], "a");
  view.health(core::health_of(make_node(1, "n1", core::NodeInfo::Health::lost)));
  EXPECT_EQ(condition(get(view.node("n1")), "Ready")["status"], "Unknown");
  auto troubled = make_node(1, "n1", core::NodeInfo::Health::ready);
  troubled.trouble = {"SpoolNotWritable", "spool: write: No space left on device"};
  view.health(core::health_of(troubled));
  const Json ready = condition(get(view.node("n1")), "Ready");
  EXPECT_EQ(ready["status"], "False") << "p13";
  EXPECT_EQ(ready["reason"], "SpoolNotWritable");
  EXPECT_EQ(ready["message"], "spool: write: No space left on device");
  EXPECT_TRUE(condition(get(view.node("n1")), "Healthy").is_null()) << "it has no health check";
  auto checked = make_node(1, "n1", core::NodeInfo::Health::ready);
  checked.check = {true, ""};
  view.health(core::health_of(checked));
  EXPECT_EQ(condition(get(view.node("n1")), "Healthy")["status"], "True");
  checked.check.failure = "ERROR: nhc: no /scratch";
  checked.starts_failing = "pods of 2 users cannot start here: cwd /home/u";
  view.health(core::health_of(checked));
  node = get(view.node("n1"));
  EXPECT_EQ(condition(node, "Healthy")["status"], "False");
  EXPECT_EQ(condition(node, "Healthy")["message"], "ERROR: nhc: no /scratch");
  EXPECT_EQ(condition(node, "StartsFailing")["status"], "True") << "p15";
  EXPECT_TRUE(condition(node, "StartsFailing")["message"].get<std::string>().starts_with(
      "pods of 2 users cannot start here: cwd /home/u; one pod at a time"));
  EXPECT_EQ(condition(node, "Ready")["reason"], "HealthCheckFailed");
  checked.check = {};
  view.health(core::health_of(checked));
  node = get(view.node("n1"));
  EXPECT_EQ(condition(node, "Ready")["reason"], "StartsFailing");
  auto cordoned = make_node(1, "n1", core::NodeInfo::Health::ready);
  cordoned.spec.unschedulable = true;
  feed.node(cordoned);
  node = get(view.node("n1"));
  EXPECT_EQ(node["spec"]["unschedulable"], true);
  EXPECT_EQ(node["spec"]["taints"][0]["effect"], "NoSchedule");

  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  const Json event = get(view.event("default", "a.1-0"));
  EXPECT_EQ(event["reason"], "SuccessfulCreate");
  EXPECT_EQ(event["type"], "Normal");
  EXPECT_EQ(event["message"], "Created pod: " + core::pod_name("a", uid_of(1), true, {0, 0}));
  EXPECT_EQ(event["involvedObject"]["uid"], uid_of(1));
  EXPECT_EQ(event["source"]["component"], "job-controller");

  feed.records(1, {core::GangBroken{kStart, {{0, 0}, true, false, "why"}}});
  const Json broken = get(view.event("default", "a.1-1"));
  EXPECT_EQ(broken["reason"], "GangBroken");
  EXPECT_EQ(broken["type"], "Warning");
  EXPECT_EQ(broken["message"],
            "Failed pod broke the gang: " + core::pod_name("a", uid_of(1), true, {0, 0}));
}

TEST_F(JsonTest, TablesHaveACellForEachColumn) {
  feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  feed.admit(1, make_job("a", uid_of(1)));
  feed.records(1, {core::JobStarted{kStart}});
  feed.create(1, 0, 1);
  feed.bind(1, {0, 0});
  feed.start(1, {0, 0});
  for (Kind kind : {Kind::job, Kind::pod, Kind::node, Kind::event})
    view.each(kind, "", nullptr, [&](const Shown& shown) {
      EXPECT_EQ(table_cells(view, shown, kStart).size(), table_columns(kind).size())
          << kind_name(kind);
      std::string text;
      renderer.whole(text, shown, Form::table);
      const Json json = Json::parse(text, nullptr, false);
      ASSERT_TRUE(json.is_object()) << text;
      EXPECT_EQ(json["rows"][0]["object"]["kind"], "PartialObjectMetadata");
      EXPECT_TRUE(json["rows"][0]["object"]["metadata"].contains("name"));
    });
  const auto cells = table_cells(view, *view.job("default", "a"), kStart + 60'000);
  EXPECT_EQ(cells[1], "Running");
  EXPECT_EQ(cells[2], "0/3");
  EXPECT_EQ(cells[3], "60s");
}

TEST(Span, AsKubectlWritesIt) {
  const struct {
    int64_t seconds;
    const char* text;
  } table[] = {
      {-5, "0s"},      {0, "0s"},         {119, "119s"},   {120, "2m"},          {125, "2m5s"},
      {600, "10m"},    {10'799, "179m"},  {10'800, "3h"},  {11'000, "3h3m"},     {100'000, "27h"},
      {172'800, "2d"}, {180'000, "2d2h"}, {800'000, "9d"}, {70'000'000, "2y80d"}};
  for (const auto& row : table) EXPECT_EQ(span_text(row.seconds * 1000), row.text) << row.seconds;
}

}  // namespace
}  // namespace muster::api
