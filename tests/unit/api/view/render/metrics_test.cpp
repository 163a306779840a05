#include "api/view/render/metrics.hpp"

#include "core/job/rules/decide.hpp"
#include "tests/unit/api/view/view_fixture.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

using namespace testing;

// A View with metrics, fed by the test.
struct Rig {
  View view;
  Metrics metrics{"1.2.3", [] { return kStart; }};
  Feeder feed{view};
  Rig() { view.observe(&metrics); }

  // The value of the line with this name and labels, or -1.
  double value(const std::string& line) {
    const std::string text = "\n" + metrics.text(view);
    const size_t at = text.find("\n" + line + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + line.size() + 2));
  }
  void end(JobId id, PodKey pod, int code, core::Counted counted,
           core::FailureAction action = core::FailureAction::none) {
    core::PodsEnded::One one;
    one.pod = pod;
    one.end.exit_code = code;
    one.counted = counted;
    one.action = action;
    feed.records(id, {core::PodsEnded{kStart, {one}}});
  }
};

constexpr const char* kFinished =
    "job_controller_job_pods_finished_total{completion_mode=\"Indexed\",result=";

TEST(MetricsTest, CountsDurableRecords) {
  Rig rig;
  rig.feed.admit(1, make_job("a", uid_of(1)));
  rig.feed.create(1, 0, 2);
  EXPECT_EQ(
      rig.value("job_controller_job_pods_creation_total{reason=\"new\",status=\"succeeded\"}"), 2);
  rig.feed.bind(1, {0, 0});
  rig.feed.bind(1, {1, 0});
  rig.end(1, {0, 0}, 0, core::Counted::succeeded);
  rig.end(1, {1, 0}, 1, core::Counted::failed, core::FailureAction::count);
  EXPECT_EQ(rig.value(std::string(kFinished) + "\"succeeded\"}"), 1);
  EXPECT_EQ(rig.value(std::string(kFinished) + "\"failed\"}"), 1);
  EXPECT_EQ(
      rig.value("job_controller_pod_failures_handled_by_failure_policy_total{action=\"Count\"}"),
      1);
  EXPECT_EQ(rig.value("job_controller_terminated_pods_tracking_finalizer_total{event=\"add\"}"), 2);
  EXPECT_EQ(rig.value("job_controller_terminated_pods_tracking_finalizer_total{event=\"delete\"}"),
            2);
  rig.feed.create(1, 1, 1, 1);
  EXPECT_EQ(rig.value("job_controller_job_pods_creation_total{reason=\"recreate_terminating_or_"
                      "failed\",status=\"succeeded\"}"),
            1);
}

TEST(MetricsTest, DeferredPodCountsOnceItsReplacementExists) {
  Rig rig;
  rig.feed.admit(1, make_job("a", uid_of(1)));
  rig.feed.create(1, 0, 1);
  rig.feed.bind(1, {0, 0});
  rig.end(1, {0, 0}, 1, core::Counted::not_yet, core::FailureAction::ignore);
  const char* policy =
      "job_controller_pod_failures_handled_by_failure_policy_total{action=\"Ignore\"}";
  EXPECT_EQ(rig.value(policy), -1);
  EXPECT_EQ(rig.value("job_controller_terminated_pods_tracking_finalizer_total{event=\"delete\"}"),
            -1);
  rig.feed.records(
      1,
      {core::PodsCreated{
          kStart,
          {{.first = 0, .attempt = 1, .ignored = 1, .deferred_counted = core::Counted::ignored}}}});
  EXPECT_EQ(rig.value(policy), 1);
  EXPECT_EQ(rig.value("job_controller_terminated_pods_tracking_finalizer_total{event=\"delete\"}"),
            1);
}

// #112873: a job that was synced again after it had finished counted as finished twice.
TEST(MetricsTest, K112873AFinishedJobCountsOnce) {
  Rig rig;
  rig.feed.admit(1, make_job("a", uid_of(1)));
  rig.feed.records(
      1, {core::FinishDecided{kStart, true, core::ConditionReason::completions_reached, "m"},
          core::JobFinished{kStart}});
  const char* line =
      "job_controller_jobs_finished_total{completion_mode=\"Indexed\",reason="
      "\"CompletionsReached\",result=\"succeeded\"}";
  EXPECT_EQ(rig.value(line), 1);
  core::Job job = *rig.view.job("default", "a")->job;
  core::decide(job, {core::TimePassed{}}, kStart, {});
  core::Decision again = core::decide(job, {core::TimePassed{}}, kStart, {});
  EXPECT_TRUE(again.records.empty()) << "a finished job has nothing to say";
  rig.feed.records(1, {core::JobDeleted{kStart, true}});
  EXPECT_EQ(rig.value(line), 1);
}

TEST(MetricsTest, PrintsSyncCountersAndGauges) {
  Rig rig;
  rig.feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  rig.feed.admit(1, make_job("a", uid_of(1)));
  rig.metrics.synced(true, "pods_created", 0.001);
  EXPECT_EQ(rig.value("job_controller_job_syncs_total{action=\"pods_created\",completion_mode="
                      "\"Indexed\",result=\"success\"}"),
            1);
  EXPECT_EQ(rig.value("muster_nodes{ready=\"true\"}"), 1);
  EXPECT_EQ(rig.value("muster_jobs{state=\"running\"}"), 1);
  EXPECT_EQ(rig.value("muster_build_info{version=\"1.2.3\"}"), 1);
}

}  // namespace
}  // namespace muster::api
