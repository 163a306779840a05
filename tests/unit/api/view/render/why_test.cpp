// What `why` says of nodes.
#include "api/view/render/why.hpp"

#include "tests/unit/api/view/view_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::api {
namespace {

using namespace testing;
using Health = core::NodeInfo::Health;

class WhyTest : public ::testing::Test {
 protected:
  WhyTest() {
    feed.admit(1, make_job("a", uid_of(1)));
    feed.create(1, 0, 1);
    feed.bind(1, {0, 0});
  }
  std::vector<std::string> details(const core::NodeInfo& node) {
    feed.node(node);
    return why_job(view, *view.job("default", "a")->job, kStart, {}).details;
  }
  View view;
  Feeder feed{view};
};

TEST_F(WhyTest, SaysWhyANodeWithPodsIsNotReady) {
  core::NodeInfo node = make_node(1, "n1", Health::ready);
  EXPECT_EQ(details(node), std::vector<std::string>{});
  node.trouble = {"KeeperNotResponding", "the keeper has not responded for 5 s"};
  EXPECT_EQ(details(node),
            std::vector<std::string>{"node n1 is not ready: KeeperNotResponding: the keeper has "
                                     "not responded for 5 s"});
  node.trouble = {};
  node.health = Health::suspect;
  node.heartbeat_ms = kStart;
  EXPECT_EQ(details(node),
            std::vector<std::string>{"node n1 is not ready: NodeStatusUnknown: the agent has not "
                                     "responded since 2023-11-14T22:13:20Z"});
  node.loss_held = true;
  EXPECT_EQ(details(node),
            std::vector<std::string>{"node n1 is not ready: NodeStatusUnknown: the agent has not "
                                     "responded since 2023-11-14T22:13:20Z; no node responds, so "
                                     "none is lost"});
}

TEST_F(WhyTest, SaysWhichNodesDoNotReachEachOther) {
  const std::vector<core::Unreached> pairs = {
      {{"n1", "10.0.0.1"}, {"n2", "10.0.0.2"}, "no route to host"}};
  view.set_unreached(1, pairs);
  const core::NodeInfo node = make_node(1, "n1", Health::ready);
  EXPECT_EQ(details(node), core::reach_lines(pairs));
  EXPECT_EQ(why_index(view, *view.job("default", "a")->job, 0, {}, kStart, {}).details,
            core::reach_lines(pairs));
  view.set_unreached(1, std::vector<core::Unreached>{});
  EXPECT_EQ(details(node), std::vector<std::string>{});
}

TEST_F(WhyTest, SaysThatAGangNeedsMoreThanThereIs) {
  auto object = std::make_shared<core::JobObject>(*make_job("g", uid_of(2), 7));
  object->meta.annotations["muster.dev/gang"] = "true";
  feed.admit(2, object);
  for (uint32_t i = 0; i < 7; ++i) feed.create(2, i, 1);
  const auto said = [this] {
    return why_job(view, *view.job("default", "g")->job, kStart, {}).summary;
  };
  feed.node(make_node(1, "n1", Health::ready));  // 4 slots, of which one is in use
  EXPECT_EQ(
      said(),
      "7 pods are waiting for a slot: a gang of 7 needs 7 slots at once, and the nodes that it "
      "may use have 4 in all");
  feed.node(make_node(2, "n2", Health::suspect));
  EXPECT_THAT(said(), ::testing::HasSubstr("1 not ready")) << "it may come back";
  feed.node(make_node(2, "n2", Health::ready));
  EXPECT_EQ(said(), "7 pods are waiting for a slot: 2 of 2 nodes fit");
}

TEST_F(WhyTest, SaysWhoHoldsAJobSinceWhenAndWhy) {
  feed.node(make_node(1, "n1", Health::ready));
  feed.create(1, 1, 1);
  feed.records(1, {core::JobHeld{kStart, "olga", true, "maintenance"}});
  const auto job = view.job("default", "a");
  const Explanation why = why_job(view, *job->job, kStart, {});
  EXPECT_EQ(why.state, "Held");
  EXPECT_EQ(why.summary,
            "olga holds the job: maintenance; only operators can release it (since "
            "2023-11-14T22:13:20.000Z; muster release job/a)");
  EXPECT_EQ(why.details, std::vector<std::string>{"1 pod keeps running"});
  EXPECT_EQ(why_index(view, *job->job, 1, std::nullopt, kStart, {}).state, "Held");
  feed.records(1, {core::JobReleased{kStart, "olga"}});
  EXPECT_EQ(why_job(view, *view.job("default", "a")->job, kStart, {}).state, "Starting");
}

TEST_F(WhyTest, SaysWhatAPodHasThatRanOutAndWhetherANodeFits) {
  auto object = std::make_shared<core::JobObject>(
      *make_job("more", uid_of(2), 2, R"(,"backoffLimitPerIndex":0)", "default",
                R"(,"resources":{"limits":{"memory":"4Mi"}})"));
  object->meta.annotations["muster.dev/retry-memory"] = "8Mi,16Mi";
  feed.node(make_node(1, "n1", Health::ready));
  feed.admit(2, object);
  feed.create(2, 0, 2);
  feed.bind(2, {0, 0});
  feed.bind(2, {1, 0});
  feed.start(2, {1, 0});
  const auto run_out = [&](uint32_t attempt, uint8_t step) {
    core::PodsEnded::One one = Feeder::end_of({0, attempt}, 137, core::Counted::ignored);
    one.end.cause = core::EndCause::out_of_memory;
    one.action = core::FailureAction::ignore;
    one.raised = {step, 0};
    feed.records(2, {core::PodsEnded{kStart + 3000, {one}, 0, 0}});
    feed.create(2, 0, 1, attempt + 1);
  };
  run_out(0, 1);
  feed.bind(2, {0, 1});
  run_out(1, 2);
  const auto more = view.job("default", "more");
  const Explanation all = why_job(view, *more->job, kStart + 4000, {});
  EXPECT_EQ(all.state, "Running");
  EXPECT_THAT(all.details, ::testing::Contains(
                               "1 pod is waiting for a slot with 16Mi of memory: 0 of 1 nodes fit "
                               "(1 too small); the pod requests 16Mi memory; the node has 8Mi"));
  const auto last = *more->job->pod({0, 1});
  const Explanation one = why_index(view, *more->job, 0, last, kStart + 4000, {});
  EXPECT_EQ(one.summary, "attempt 2 is waiting for a slot: 0 of 1 nodes fit (1 too small)");
  EXPECT_THAT(one.details, ::testing::Contains("it has 16Mi of memory"));
  EXPECT_THAT(one.details,
              ::testing::Contains("attempt 1 on node n1, with 8Mi of memory, ended 1s ago: exit "
                                  "137, OOMKilled; not counted: the next attempt has more memory "
                                  "(muster.dev/retry-memory)"));
  EXPECT_THAT(why_index(view, *more->job, 1, std::nullopt, kStart + 4000, {}).summary,
              ::testing::HasSubstr("with 4Mi of memory"));
}

TEST_F(WhyTest, SaysWhenAJobBegins) {
  auto object = std::make_shared<core::JobObject>(*make_job("later", uid_of(2)));
  object->meta.annotations["muster.dev/begin"] = "2023-11-15T08:00:00+01:00";
  feed.admit(2, object);
  const auto job = view.job("default", "later");
  const Explanation why = why_job(view, *job->job, kStart, {});
  EXPECT_EQ(why.state, "Held");
  EXPECT_EQ(why.summary, "the job begins at 2023-11-15T07:00:00Z, in 8h (muster.dev/begin)");
  EXPECT_EQ(why.until_ms, kStart + ((8 * 60 + 46) * 60 + 40) * 1000);
  EXPECT_EQ(why_index(view, *job->job, 1, std::nullopt, kStart, {}).state, "Held");
  EXPECT_EQ(why_job(view, *job->job, why.until_ms, {}).state, "Waiting");
  feed.records(2, {core::JobHeld{kStart, "alice"}});
  EXPECT_THAT(why_job(view, *view.job("default", "later")->job, kStart, {}).details,
              ::testing::Contains("the job begins at 2023-11-15T07:00:00Z"));
}

TEST_F(WhyTest, SaysWhoSetThePriority) {
  feed.node(make_node(1, "n1", Health::ready));
  feed.records(1, {core::OverridesSet{kStart, {100}, "olga"}});
  EXPECT_EQ(why_job(view, *view.job("default", "a")->job, kStart, {}).details,
            std::vector<std::string>{"set by olga: priority 100 "
                                     "(2023-11-14T22:13:20.000Z); the template says priority 0"});
}

TEST_F(WhyTest, SaysWhoIsAheadInTheQueueAndWhichQueuesAre) {
  auto object = std::make_shared<core::JobObject>(*make_job("b", uid_of(2)));
  object->meta.annotations[std::string(core::kOwnerUidKey)] = "1001";
  object->meta.annotations[std::string(core::kQueueKey)] = "lab";
  feed.admit(2, object);
  feed.create(2, 0, 1);
  core::cluster::ShowShares shares;
  const auto said = [&] {
    view.set_shares(shares);
    return why_job(view, *view.job("default", "b")->job, kStart, {}).details;
  };
  auto& all = shares.standings;
  all = {{.user = 1001, .name = "ann", .queue = "lab", .held = 0.3, .use = 0.2, .waiting = 1}};
  EXPECT_EQ(said(), std::vector<std::string>{}) << "nobody else is there";
  all.push_back({.user = 1002, .name = "bob", .queue = "lab", .held = 0.4, .waiting = 3});
  EXPECT_EQ(said(), std::vector<std::string>{
                        "no other user is ahead: ann holds 30% of the cluster, and lately had 20%, "
                        "0.4 times an equal share"});
  all[1].weight = 2;
  EXPECT_EQ(said(), std::vector<std::string>{
                        "1 of 2 users is ahead: ann holds 30% of the cluster, and lately had 20%, "
                        "0.4 times an equal share"});
  all.push_back({.user = 1003, .queue = "gpu", .held = 0.1, .waiting = 1, .queue_level = 0.1});
  for (auto* one : {&all[0], &all[1]}) one->queue_level = 0.7;
  EXPECT_EQ(said(),
            (std::vector<std::string>{"1 of 2 users in queue lab is ahead: ann holds 30% of the "
                                      "cluster there, and lately had 20% in all queues, 0.6 times "
                                      "an equal share",
                                      "a queue that holds less for its weight goes first: gpu"}));
  all[2].waiting = 0;
  EXPECT_EQ(said().size(), 1u) << "it wants nothing";
}

TEST_F(WhyTest, CountsPodsThatWaitOnTheirNodeAsWaiting) {
  core::NodeInfo node = make_node(1, "n1", Health::ready);
  node.slots = 1;
  feed.node(node);
  EXPECT_EQ(why_job(view, *view.job("default", "a")->job, kStart, {}).state, "Starting");
  feed.create(1, 1, 2);
  feed.bind(1, {1, 0});
  feed.bind(1, {2, 0});
  feed.start(1, {0, 0});
  const auto job = view.job("default", "a");
  const Explanation why = why_job(view, *job->job, kStart, {});
  EXPECT_EQ(why.state, "Running");
  EXPECT_EQ(why.summary.substr(0, 10), "1 of at mo");
  EXPECT_EQ(why.details,
            std::vector<std::string>{"2 pods are waiting on their node for a slot there"});
  const Explanation parked = why_index(view, *job->job, 2, std::nullopt, kStart, {});
  EXPECT_EQ(parked.state, "Pending");
  EXPECT_EQ(parked.summary, "attempt 0 is waiting on node n1 for a slot there");
}

TEST_F(WhyTest, NamesNodesThatCouldNotStartPods) {
  feed.node(make_node(1, "n1", Health::ready));
  core::PodsEnded ended{.at_ms = kStart};
  ended.ends.push_back({.pod = {0, 0},
                        .end = {.cause = core::EndCause::returned,
                                .exit_code = 127,
                                .ended_at = kStart,
                                .message = "./step: not found"},
                        .counted = core::Counted::released});
  feed.records(1, {ended});
  feed.create(1, 0, 1, 1);
  const auto job = view.job("default", "a");
  const Explanation why = why_job(view, *job->job, kStart, {});
  EXPECT_EQ(why.details.back(),
            "pods could not be started on node n1 (StartFailure: ./step: not found); other nodes "
            "are tried");
}

TEST_F(WhyTest, SaysWhichNodesAJobKeepsAwayFrom) {
  feed.node(make_node(1, "n1", Health::ready));
  core::PodsEnded ended{.at_ms = kStart};
  ended.ends.push_back({.pod = {0, 0},
                        .end = {.cause = core::EndCause::returned,
                                .exit_code = 127,
                                .ended_at = kStart,
                                .message = "./step: not found"},
                        .counted = core::Counted::released});
  feed.records(1, {ended});
  feed.create(1, 0, 1, 1);
  const auto job = view.job("default", "a");
  EXPECT_EQ(why_job(view, *job->job, kStart, {}).summary,
            "1 pod is waiting for a slot: 0 of 1 nodes fit (1 avoided)");
  EXPECT_EQ(why_job(view, *job->job, kStart + core::Slots::kAvoidMs, {}).summary,
            "1 pod is waiting for a slot: 1 of 1 nodes fits");
}

TEST_F(WhyTest, SaysWhyNodesDoNotFitAlsoWhileSomePodsRun) {
  core::NodeInfo node = make_node(1, "n1", Health::ready);
  node.slots = 1;
  feed.node(node);
  feed.start(1, {0, 0});
  feed.create(1, 1, 1);
  EXPECT_THAT(why_job(view, *view.job("default", "a")->job, kStart, {}).details,
              ::testing::Contains("1 pod is waiting for a slot: 0 of 1 nodes fit (1 full)"));
}

TEST_F(WhyTest, SaysWhatAGangNeedsThatIsLargerThanTheCluster) {
  core::NodeInfo node = make_node(1, "n1", Health::ready);
  node.slots = 2;
  feed.node(node);
  auto gang = std::make_shared<core::JobObject>(*make_job("gang", uid_of(2)));
  gang->meta.annotations["muster.dev/gang"] = "true";
  feed.admit(2, gang);
  feed.create(2, 0, 3);
  const Explanation why = why_job(view, *view.job("default", "gang")->job, kStart, {});
  EXPECT_EQ(why.summary,
            "3 pods are waiting for a slot: a gang of 3 needs 3 slots at once, and the nodes that "
            "it may use have 2 in all");
}

TEST_F(WhyTest, SaysThatNoNodeIsLostWhileNoneHasRegistered) {
  core::NodeInfo node = make_node(1, "n1", Health::unknown);
  node.loss_held = true;
  EXPECT_EQ(details(node),
            std::vector<std::string>{"node n1 is not ready: NodeStatusNeverUpdated: the agent has "
                                     "not registered since the coordinator's start; no node "
                                     "responds, so none is lost"});
}

}  // namespace
}  // namespace muster::api
