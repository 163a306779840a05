#include "api/view/render/metrics.hpp"

#include "core/job/rules/decide.hpp"
#include "tests/unit/api/view/view_fixture.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

namespace muster::api {
namespace {

using namespace testing;

// A View with metrics, fed by the test.
struct Rig {
  Millis now = kStart;
  View view;
  Metrics metrics;
  Feeder feed{view};
  explicit Rig(SiteFacts facts = {})
      : metrics(
            "1.2.3", [this] { return now; }, std::move(facts)) {
    view.observe(&metrics);
  }

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

TEST(MetricsTest, PodsByPhaseAndByWhatTheyWaitFor) {
  Rig rig;
  rig.feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  rig.feed.admit(1, make_job("a", uid_of(1), 4));
  rig.feed.create(1, 0, 4);
  rig.feed.bind(1, {0, 0});
  rig.feed.bind(1, {1, 0});
  rig.feed.start(1, {1, 0});
  rig.now = kStart + 90'000;
  EXPECT_EQ(rig.value("muster_pods{phase=\"pending\"}"), 2);
  EXPECT_EQ(rig.value("muster_pods{phase=\"starting\"}"), 1);
  EXPECT_EQ(rig.value("muster_pods{phase=\"running\"}"), 1);
  EXPECT_EQ(rig.value("muster_pods_pending{reason=\"slots\"}"), 2);
  EXPECT_EQ(rig.value("muster_pods_oldest_pending_seconds{reason=\"slots\"}"), 90);
  EXPECT_EQ(rig.value("muster_slots"), 4);
  EXPECT_EQ(rig.value("muster_slots_used"), 2);
  EXPECT_EQ(rig.value("muster_slots_free"), 2);
  EXPECT_EQ(rig.value("muster_queue_pods{queue=\"default\",state=\"pending\"}"), 2);

  core::NodeInfo cordoned = make_node(1, "n1", core::NodeInfo::Health::ready);
  cordoned.spec.unschedulable = true;
  rig.feed.node(cordoned);
  EXPECT_EQ(rig.value("muster_slots_used"), 2);
  EXPECT_EQ(rig.value("muster_slots_free"), 0);

  // The queue is full: a limit, and no lack of slots.
  core::cluster::ShowShares shares;
  shares.queue_waits[1] = {.queue = "default", .why = core::Slots::QueueWait::Why::limit};
  rig.view.set_shares(shares);
  EXPECT_EQ(rig.value("muster_pods_pending{reason=\"queue_limit\"}"), 2);
  EXPECT_EQ(rig.value("muster_pods_pending{reason=\"slots\"}"), 0);
  EXPECT_EQ(rig.value("muster_pods_oldest_pending_seconds{reason=\"slots\"}"), 0);

  rig.feed.records(1, {core::JobHeld{.at_ms = kStart, .by = "olga"}});
  EXPECT_EQ(rig.value("muster_pods_pending{reason=\"hold\"}"), 2);
  rig.feed.records(1, {core::JobReleased{kStart, "olga"}});
  EXPECT_EQ(rig.value("muster_pods_pending{reason=\"hold\"}"), -1) << "a series that is over";
}

TEST(MetricsTest, WaitingTimesAndStartsAreObservedOnce) {
  Rig rig;
  rig.feed.admit(1, make_job("a", uid_of(1)));
  rig.feed.create(1, 0, 3);
  rig.feed.bind(1, {0, 0});   // a second after its creation
  rig.feed.start(1, {0, 0});  // a second later
  rig.feed.start(1, {0, 0}, 4712);
  EXPECT_EQ(rig.value("muster_pod_wait_duration_seconds_count"), 1);
  EXPECT_EQ(rig.value("muster_pod_wait_duration_seconds_sum"), 1);
  EXPECT_EQ(rig.value("muster_pod_start_duration_seconds_count"), 1);
  EXPECT_EQ(rig.value("muster_pod_start_duration_seconds_sum"), 1);
  // A start that is known only with the end.
  rig.feed.bind(1, {1, 0});
  core::PodsEnded::One one = Feeder::end_of({1, 0}, 0);
  one.start = core::StartOf<Millis>{4713, kStart + 4000};
  rig.feed.records(1, {core::PodsEnded{kStart + 5000, {one}}});
  EXPECT_EQ(rig.value("muster_pod_start_duration_seconds_count"), 2);
  EXPECT_EQ(rig.value("muster_pod_start_duration_seconds_sum"), 4);
}

TEST(MetricsTest, NodesByState) {
  struct Case {
    const char* state;
    const char* reason;
    std::function<void(core::NodeInfo&)> change;
  };
  using Health = core::NodeInfo::Health;
  const Case cases[] = {
      {"ready", "", [](core::NodeInfo&) {}},
      {"cordoned", "", [](core::NodeInfo& n) { n.spec.unschedulable = true; }},
      {"starts_failing", "", [](core::NodeInfo& n) { n.starts_failing = "no homes"; }},
      {"health_check_failing", "",
       [](core::NodeInfo& n) {
         n.check = {true, "no fans"};
       }},
      {"trouble", "DiskPressure",
       [](core::NodeInfo& n) {
         n.trouble = {"DiskPressure", "the disk is full"};
       }},
      {"shutting_down", "", [](core::NodeInfo& n) { n.draining = true; }},
      {"silent", "", [](core::NodeInfo& n) { n.health = Health::suspect; }},
      {"lost", "", [](core::NodeInfo& n) { n.health = Health::lost; }},
      {"lost", "", [](core::NodeInfo& n) { n.gone = true; }},
      {"unknown", "", [](core::NodeInfo& n) { n.health = Health::unknown; }},
      {"left", "",
       [](core::NodeInfo& n) {
         n.left_ms = kStart;
         n.health = Health::lost;
         n.gone = true;
       }},
  };
  for (const Case& one : cases) {
    Rig rig;
    core::NodeInfo node = make_node(1, "n1", Health::ready);
    one.change(node);
    rig.feed.node(node);
    rig.view.health(core::health_of(node));
    EXPECT_EQ(rig.value(std::string("muster_nodes_by_state{reason=\"") + one.reason +
                        "\",state=\"" + one.state + "\"}"),
              1)
        << one.state;
    const bool left = one.state == std::string("left");
    EXPECT_EQ(rig.value("muster_nodes{ready=\"left\"}"), left ? 1 : 0) << one.state;
    if (left) {
      EXPECT_EQ(rig.value("muster_nodes{ready=\"false\"}"), 0);
    }
  }
}

TEST(MetricsTest, UsersAreShownUnlessTheirJobsArePrivate) {
  for (const bool shown : {true, false}) {
    Rig rig({.user_pods_max = 8, .users_shown = shown});
    core::cluster::ShowShares shares;
    shares.standings.push_back({.user = 1001, .name = "ada", .queue = "default", .held = 0.125});
    shares.standings.push_back({.user = 1001, .name = "ada", .queue = "short", .held = 0.125});
    rig.view.set_shares(shares);
    EXPECT_EQ(rig.value("muster_user_share_ratio{user=\"ada\"}"), shown ? 0.25 : -1);
    EXPECT_EQ(rig.value("muster_user_pods_max"), 8);
  }
}

TEST(MetricsTest, MachineOfTheCoordinator) {
  Rig rig({.data_dir = "/", .certificates = {{"authority", kStart + 1000}}});
  EXPECT_GT(rig.value("muster_disk_free_bytes"), 0);
  EXPECT_GT(rig.value("muster_disk_bytes"), rig.value("muster_disk_free_bytes"));
  EXPECT_EQ(rig.value("muster_certificate_expiry_timestamp_seconds{certificate=\"authority\"}"),
            kStart / 1000 + 1);
  EXPECT_EQ(rig.value("muster_last_backup_timestamp_seconds"), -1);
  rig.metrics.backed_up(kStart);
  EXPECT_EQ(rig.value("muster_last_backup_timestamp_seconds"), kStart / 1000);
  rig.metrics.committed(0.002, 100);
  rig.metrics.committed(0.003, 50);
  EXPECT_EQ(rig.value("muster_commit_duration_seconds_count"), 2);
  EXPECT_EQ(rig.value("muster_commit_bytes_total"), 150);
}

TEST(MetricsTest, CoordinatorsAreShownIfThereAreSeveral) {
  using core::standby::MemberFigures;
  Rig rig;
  EXPECT_EQ(rig.value("muster_coordinator_leader"), -1) << "it is alone";
  core::standby::LeadFigures figures{.term = 7, .store_answers = true};
  figures.members = {
      MemberFigures{.name = "a", .leads = true, .in_sync = true, .connected = true, .commit = 42}};
  figures.members.push_back(
      {.name = "b", .in_sync = true, .connected = true, .commit = 40, .round_trip_us = 250});
  figures.members.push_back({.name = "c"});
  rig.metrics.set_lead(figures);
  EXPECT_EQ(rig.value("muster_coordinator_leader"), 1);
  EXPECT_EQ(rig.value("muster_coordinator_term"), 7);
  EXPECT_EQ(rig.value("muster_coordinator_store_answers"), 1);
  EXPECT_EQ(rig.value("muster_coordinator_store_wiped"), 0);
  EXPECT_EQ(rig.value("muster_coordinator_in_sync_replicas"), 2);
  EXPECT_EQ(rig.value("muster_coordinator_replica_in_sync{member=\"b\"}"), 1);
  EXPECT_EQ(rig.value("muster_coordinator_replica_in_sync{member=\"c\"}"), 0);
  EXPECT_EQ(rig.value("muster_coordinator_replica_in_sync{member=\"a\"}"), -1) << "it leads";
  EXPECT_EQ(rig.value("muster_coordinator_replica_lag_commits{member=\"b\"}"), 2);
  EXPECT_EQ(rig.value("muster_coordinator_replica_lag_commits{member=\"c\"}"), -1) << "not known";
  EXPECT_EQ(rig.value("muster_coordinator_replica_round_trip_seconds{member=\"b\"}"), 0.00025);
  figures.store_answers = false;
  figures.store_wiped = true;
  figures.members.pop_back();
  rig.metrics.set_lead(figures);
  EXPECT_EQ(rig.value("muster_coordinator_store_answers"), 0);
  EXPECT_EQ(rig.value("muster_coordinator_store_wiped"), 1);
  EXPECT_EQ(rig.value("muster_coordinator_replica_in_sync{member=\"c\"}"), -1) << "removed";
}

}  // namespace
}  // namespace muster::api
