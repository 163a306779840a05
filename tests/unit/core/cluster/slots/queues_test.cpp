// Queues in Slots: which nodes their jobs get, how much, at which priority, and why they wait.
#include "tests/unit/core/cluster/slots/play.hpp"

#include <gtest/gtest.h>

#include <random>

namespace muster::core {

namespace {

using Play = SlotsPlay;
using Why = Slots::QueueWait::Why;

struct Asks {
  std::string queue;
  std::optional<uint32_t> owner{};
  uint32_t pods = 100;
  std::optional<int32_t> priority{};
  bool gang = false;
  std::string cpu{};
  std::optional<int64_t> time_s{};
  bool given = false;   // the priority is an operator's
  bool placed = false;  // the queue is an operator's
  std::string priority_class{};
};

JobObjectPtr object_of(const Asks& asks) {
  auto object = Play::object_of(asks.priority, asks.gang, asks.cpu, asks.owner);
  auto& annotations = object->meta.annotations;
  if (!asks.queue.empty()) annotations[std::string(kQueueKey)] = asks.queue;
  if (asks.owner) {
    annotations[std::string(kOwnerGidKey)] = "100";
    annotations[std::string(kOwnerKey)] = "u" + std::to_string(*asks.owner);
  }
  object->spec.pod.active_deadline_s = asks.time_s;
  object->priority_given = asks.given;
  object->queue_given = asks.placed;
  object->spec.pod.priority_class_name = asks.priority_class;
  return object;
}

void add(Play& play, JobId id, const Asks& asks) {
  play.jobs[id] = {object_of(asks), asks.pods, 0, {}};
  play.want(id);
}

QueueLimits pods(uint32_t most) {
  return {.pods = most};
}

void label(Play& play, NodeId id, const StringMap& labels) {
  play.nodes.at(id).spec.labels = labels;
  play.slots.set_node(play.nodes.at(id));
}

std::optional<Why> why(const Play& play, JobId id) {
  const auto waits = play.slots.queue_waits();
  const auto found = waits.find(id);
  return found == waits.end() ? std::nullopt : std::optional(found->second.why);
}

TEST(Queues, ShareByWeightAndTheirUsersWithinThem) {
  Play play;
  play.slots.set_queues({{.name = "a", .weight = 2}, {.name = "b"}});
  add(play, 1, {"a", 1});
  add(play, 2, {"a", 2});
  add(play, 3, {"a", 2});
  for (JobId id = 10; id < 30; ++id) add(play, id, {"b", 1});
  play.node(1, 60);
  play.round();
  EXPECT_EQ(play.running(1), 20u);
  EXPECT_EQ(play.running(2), 10u);
  EXPECT_EQ(play.running(3), 10u);
  uint64_t b = 0;
  for (JobId id = 10; id < 30; ++id) b += play.running(id);
  EXPECT_EQ(b, 20u) << "number of jobs and users does not matter";
  for (JobId id : {1, 2, 3}) {  // what one queue does not want goes to the others
    play.jobs.at(id).pending = 0;
    play.want(id);
  }
  play.end(1, 1, 20, false, std::nullopt);
  play.round();
  b = 0;
  for (JobId id = 10; id < 30; ++id) b += play.running(id);
  EXPECT_EQ(b, 40u);
}

TEST(Queues, AUserInTwoQueuesSharesInBoth) {
  Play play;
  play.slots.set_queues({{.name = "a"}});
  add(play, 1, {"a", 1});
  add(play, 2, {"", 1});
  add(play, 3, {"default", 2});
  play.node(1, 40);
  play.round();
  EXPECT_EQ(play.running(1), 20u);
  EXPECT_EQ(play.running(2), 10u);
  EXPECT_EQ(play.running(3), 10u);
}

TEST(Queues, UsersShareByTheirWeightsInTheQueue) {
  Play play;
  Queue a{.name = "a", .user_weights = {{"u1", 3}}};
  play.slots.set_queues({a});
  add(play, 1, {"a", 1});
  add(play, 2, {"a", 2});
  add(play, 3, {"", 1});
  add(play, 4, {"", 2});
  play.node(1, 80);
  play.round();
  EXPECT_EQ(play.running(1), 30u);
  EXPECT_EQ(play.running(2), 10u);
  EXPECT_EQ(play.running(3), 20u) << "the weight is of queue a";
  EXPECT_EQ(play.running(4), 20u);
  a.user_weights = {{"u2", 9}};
  play.slots.set_queues({a});
  for (JobId id : {1, 2, 3, 4}) play.end(id, 1, 10, true, std::nullopt);
  play.round();
  EXPECT_EQ(play.running(2), 20u) << "a change acts at once";
  EXPECT_EQ(play.running(1), 20u);
}

TEST(Queues, StandingsAreOfEachUserInEachQueue) {
  Play play;
  play.slots.set_queues({{.name = "a", .weight = 2}});
  play.slots.restore_use(7, 0.5, 0);
  add(play, 1, {"a", 1, 3});
  add(play, 2, {"a", 2, 1});
  add(play, 3, {"", 1, 5});
  play.node(1, 8);
  play.round();
  play.slots.note_use(play.now);
  std::map<std::pair<UserId, std::string>, Slots::Standing> found;
  for (const Slots::Standing& one : play.slots.standings()) found[{one.user, one.queue}] = one;
  ASSERT_EQ(found.size(), 4u);
  EXPECT_DOUBLE_EQ(found.at({1, "a"}).held, 3.0 / 8);
  EXPECT_DOUBLE_EQ(found.at({2, "a"}).held, 1.0 / 8);
  EXPECT_DOUBLE_EQ(found.at({1, "default"}).held, 4.0 / 8);
  EXPECT_EQ(found.at({1, "default"}).waiting, 1u);
  EXPECT_EQ(found.at({1, "a"}).waiting, 0u);
  EXPECT_DOUBLE_EQ(found.at({2, "a"}).queue_level, 4.0 / 8 / 2);
  EXPECT_DOUBLE_EQ(found.at({1, "default"}).queue_level, 4.0 / 8);
  EXPECT_EQ(found.at({1, "a"}).name, "u1");
  EXPECT_DOUBLE_EQ(found.at({7, ""}).use, 0.5) << "a user who has nothing, and had much";
}

TEST(Queues, LimitPodsInAllAndOfEachUser) {
  Play play;
  play.node(1, 40);
  play.slots.set_queues({{.name = "a", .total = pods(10), .per_user = pods(6)}});
  add(play, 1, {"a", 1});
  add(play, 2, {"a", 1});
  play.round();
  EXPECT_EQ(play.running(1) + play.running(2), 6u);
  add(play, 3, {"a", 2});
  add(play, 4, {"", 1, 5});
  play.round();
  EXPECT_EQ(play.running(3), 4u);
  EXPECT_EQ(play.running(4), 5u) << "the limits are of queue a";
  play.slots.set_queues({{.name = "a", .total = pods(11), .per_user = pods(6)}});
  play.round();
  EXPECT_EQ(play.running(3), 5u);
  play.slots.set_queues({{.name = "a", .total = pods(1)}});
  play.end(3, 1, 1, true, std::nullopt);
  play.round();
  EXPECT_EQ(play.running(1) + play.running(2) + play.running(3), 10u) << "nothing ends, or starts";
  EXPECT_EQ(play.slots.queue_waits().at(3).shortage, (Allowance::Shortage{"pods", 1, 10, 96}));
}

// What becomes free under the limit goes to the user who has least, not to whoever is served first.
TEST(Queues, UsersShareWhatALimitLeaves) {
  Play play;
  play.node(1, 40);
  play.slots.set_queues({{.name = "a", .total = pods(12)}});
  add(play, 1, {"a", 1});
  add(play, 2, {"a", 2});
  add(play, 3, {"a", 3});
  play.round();
  for (JobId id : {1, 2, 3}) EXPECT_EQ(play.running(id), 4u);
  for (JobId id : {3, 1, 2, 1}) {
    play.end(id, 1, 2, true, std::nullopt);
    play.round();
    for (JobId each : {1, 2, 3}) EXPECT_EQ(play.running(each), 4u);
  }
}

// It would be wrong to name a limit that only all of the job's pods together exceed.
TEST(Queues, TheLimitThatKeepsAJobWaitingIsNamed) {
  Play play;
  play.node(1, 40, 40'000);
  play.slots.set_queues({{.name = "a", .total = {.pods = 50, .cpu_millis = 2000}}});
  add(play, 1, {"a", 1, 60, {}, false, "1"});
  play.round();
  EXPECT_EQ(play.slots.queue_waits().at(1),
            (Slots::QueueWait{"a", Why::limit, false, {{"cpu", 2000, 2000, 58'000}}}));
}

TEST(Queues, WhatALimitNeverAllowsIsNamed) {
  Play play;
  play.node(1, 40, 40'000);
  play.slots.set_queues({{.name = "a", .total = {.pods = 4, .cpu_millis = 2000}}});
  add(play, 1, {"a", 1, 5, {}, true});
  add(play, 2, {"a", 1, 5, {}, false, "3"});
  play.round();
  EXPECT_EQ(play.slots.queue_waits().at(1).shortage->never, 5);
  EXPECT_EQ(play.slots.queue_waits().at(2).shortage->never, 3000);
}

std::vector<std::string> refused(const JobSpec& spec, const StringMap& annotations,
                                 const Queue& queue) {
  JobMeta meta;
  meta.annotations = annotations;
  meta.annotations[std::string(kQueueKey)] = queue.name;
  Violations found;
  fit_limits(meta, spec, {{queue}, {}}, found);
  std::vector<std::string> details;
  for (const Violation& one : found.list()) details.push_back(one.path + ": " + one.detail);
  return details;
}

TEST(Queues, WhatALimitNeverAllowsIsRefused) {
  using Details = std::vector<std::string>;
  JobSpec spec;
  spec.parallelism = spec.completions = 5;
  spec.pod.containers.resize(1);
  spec.pod.containers[0].resources.requests["nvidia.com/gpu"] = "3";
  Queue gpu{.name = "gpu", .total = {.named = {{"nvidia.com/gpu", 2}}}};
  EXPECT_EQ(
      refused(spec, {}, gpu),
      Details{"metadata.annotations[muster.dev/queue]: a pod takes 3 nvidia.com/gpu, and queue gpu "
              "allows 2; an operator may raise the limit (muster queue gpu --limit "
              "nvidia.com/gpu=N)"});
  gpu.total.named["nvidia.com/gpu"] = 3;
  EXPECT_EQ(refused(spec, {}, gpu), Details{}) << "one pod at a time";
  const StringMap gang{{"muster.dev/gang", "true"}};
  EXPECT_EQ(refused(spec, gang, gpu).size(), 1u);
  const StringMap own_gang{{"muster.dev/gang", "true"}, {std::string(kOwnerUidKey), "7"}};
  const Queue four{.name = "q", .per_user = pods(4)};
  EXPECT_EQ(refused(spec, own_gang, four),
            Details{"metadata.annotations[muster.dev/queue]: a gang of 5 pods takes 5 pods, and "
                    "queue q allows each user 4; an "
                    "operator may raise the limit (muster queue q --user-limit pods=N)"});
  EXPECT_EQ(refused(spec, gang, four), Details{}) << "without users, no limit of each";
  spec.completions = 4;
  EXPECT_EQ(refused(spec, own_gang, four), Details{});
  spec.completions = 9;
  spec.parallelism = 4;
  EXPECT_EQ(refused(spec, own_gang, four), Details{}) << "four at once";
  const Queue none{.name = "q", .total = {.jobs = 0}};
  EXPECT_EQ(refused(spec, {}, none).size(), 1u);
  spec.parallelism = 0;
  EXPECT_EQ(refused(spec, {}, none), Details{}) << "it asks for nothing yet";
}

TEST(Line, JobThatNoPlaceCanBeExpectedForIsNotInIt) {
  Play play;
  play.node(1, 2);
  play.node(2, 2);
  play.job(1, 9);
  play.round();
  play.job(2, 5, 0, true);
  play.job(3, 4, 0, true);
  play.round();
  std::vector<JobId> line;
  for (const Expectation& one : play.slots.line(play.now)) line.push_back(one.job);
  EXPECT_EQ(line, (std::vector<JobId>{3, 1})) << "5 pods never fit into 4 slots";
}

TEST(Line, OnlyJobsForTheSameNodesAreAhead) {
  Play play;
  for (const NodeId id : {1, 2}) {
    play.node(id, 2);
    label(play, id, {{"rack", std::to_string(id)}});
  }
  play.job(1, 4, 10);
  play.round();
  const auto in_rack = [&play](JobId id, const char* rack, int32_t priority) {
    auto object = Play::object_of(priority, false, "", std::nullopt);
    if (rack[0] != 0) object->spec.pod.node_selector["rack"] = rack;
    play.jobs[id] = {object, 1, 0, {}};
    play.want(id);
  };
  in_rack(2, "1", 9);
  in_rack(3, "1", 8);
  in_rack(4, "2", 7);
  in_rack(5, "", 6);
  play.round();
  std::map<JobId, uint32_t> ahead;
  for (const Expectation& one : play.slots.line(play.now)) ahead[one.job] = one.ahead;
  EXPECT_EQ(ahead, (std::map<JobId, uint32_t>{{2, 0}, {3, 1}, {4, 0}, {5, 3}}));
}

TEST(Queues, LimitJobsThatHavePods) {
  Play play;
  play.node(1, 40);
  play.slots.set_queues({{.name = "a", .total = {.jobs = 2}}});
  for (JobId id = 1; id <= 3; ++id) add(play, id, {"a", 1, 5});
  play.round();
  EXPECT_EQ(play.running(1) + play.running(2) + play.running(3), 10u);
  EXPECT_EQ(play.running(3), 0u);
  EXPECT_EQ(play.slots.queue_waits().at(3).shortage, (Allowance::Shortage{"jobs", 2, 2, 1}));
  play.end(1, 1, 5, false, std::nullopt);
  play.round();
  EXPECT_EQ(play.running(3), 5u);
}

TEST(Queues, LimitJobsThatHadPodsBefore) {
  Play play;
  play.node(1, 40);
  play.slots.set_queues({{.name = "a"}});
  for (JobId id = 1; id <= 2; ++id) add(play, id, {"a", 1, 5});
  play.round();
  play.slots.set_queues({{.name = "a", .total = {.jobs = 2}}});
  add(play, 3, {"a", 1, 5});
  play.round();
  EXPECT_EQ(play.running(3), 0u);
  EXPECT_EQ(play.slots.queue_waits().at(3).shortage, (Allowance::Shortage{"jobs", 2, 2, 1}));
  play.slots.set_queues({{.name = "a"}});
  play.round();
  EXPECT_EQ(play.running(3), 5u);
}

TEST(Queues, AGangWaitsUntilALimitHasRoomForAllOfIt) {
  Play play;
  play.node(1, 40, 40'000);
  play.slots.set_queues({{.name = "a", .total = {.cpu_millis = 8000}}});
  add(play, 1, {"a", 1, 3, {}, false, "1"});
  play.round();
  ASSERT_EQ(play.running(1), 3u);
  add(play, 2, {"a", 2, 3, 9, true, "2"});
  play.round();
  play.round(Slots::kPatienceMs);
  EXPECT_EQ(play.running(2), 0u);
  EXPECT_FALSE(play.slots.awaited()) << "it reserves nothing";
  EXPECT_EQ(play.victims(1), 0u) << "and preempts nothing";
  EXPECT_EQ(play.slots.queue_waits().at(2).shortage,
            (Allowance::Shortage{"cpu", 8000, 3000, 6000}));
  add(play, 3, {"", 1, 99});
  play.round();
  EXPECT_EQ(play.running(3), 37u) << "no slot is kept for it";
  play.end(3, 1, 10, false, std::nullopt);
  play.end(1, 1, 1, false, std::nullopt);
  play.round();
  EXPECT_EQ(play.running(2), 3u);
}

TEST(Queues, PrefetchStaysWithinTheLimit) {
  Play play;
  play.node(1, 4);
  play.slots.set_queues({{.name = "a", .per_user = pods(6)}});
  add(play, 1, {"a", 1});
  play.round();
  play.end(1, 1, 4, true, Millis{10});
  play.round(10);
  EXPECT_EQ(play.slots.used(1), 6u);
}

TEST(Queues, SlotsAreNotKeptWhereOthersWaitForTheLimit) {
  Play play;
  play.node(1, 40);
  play.slots.set_queues({{.name = "a", .total = pods(4)}});
  add(play, 1, {"a", 1, 4});
  play.round();
  EXPECT_TRUE(play.slots.may_keep(1));
  EXPECT_FALSE(play.slots.must_share(1));
  add(play, 2, {"a", 2, 4});
  play.round();
  EXPECT_FALSE(play.slots.lacks()) << "no slot is lacking";
  EXPECT_TRUE(play.slots.any_waits());
  EXPECT_TRUE(play.slots.must_share(1));
  EXPECT_FALSE(play.slots.may_keep(1));
  play.slots.set_queues({{.name = "a", .total = pods(3)}});
  play.jobs.at(2).pending = 0;
  play.want(2);
  EXPECT_FALSE(play.slots.may_keep(1)) << "it has more than is allowed";
  play.slots.set_queues({{.name = "a", .users = {"u2"}}});
  EXPECT_FALSE(play.slots.may_keep(1)) << "the queue is closed to it";
}

TEST(Queues, PriorityIsTheQueuesUnlessTheJobHasOneAndIsBounded) {
  const Queue queue{.name = "a", .priority_default = 5, .priority_max = 10};
  // Whether the job goes before one of this priority.
  auto before = [&queue](const Asks& asks, int32_t other) {
    Play play;
    play.slots.set_queues({queue});
    add(play, 1, asks);
    add(play, 2, {"", {}, 100, other});
    play.node(1, 1);
    play.round();
    return play.running(1) == 1;
  };
  auto priority = [&before](const Asks& asks) {
    int32_t other = -1;
    while (other < 200 && before(asks, other)) ++other;
    return other - 1;  // among equals, it comes first
  };
  EXPECT_EQ(priority({"a", 1}), 5);
  EXPECT_EQ(priority({"a", 1, 100, 0}), 0);
  EXPECT_EQ(priority({"a", 1, 100, 7}), 7);
  EXPECT_EQ(priority({"a", 1, 100, 50}), 10);
  EXPECT_EQ(priority({"a", {}, 100, 50}), 50) << "it is not a user's";
  Asks given{"a", 1, 100, 50};
  given.given = true;
  EXPECT_EQ(priority(given), 50) << "an operator gave it this";
}

// The priority of a job, by which others it goes before: those of less, and its equals.
int32_t priority_of(const Asks& asks, const std::vector<Queue>& queues,
                    const PriorityClasses& classes, int32_t user_max = INT32_MAX) {
  int32_t other = -1;
  for (bool first = true; first && other < 200; ++other) {
    Play play(SlotsSettings{.user_priority_max = user_max});
    play.slots.set_queues(queues, classes);
    add(play, 1, asks);
    add(play, 2, {"other", {}, 100, other});
    play.node(1, 1);
    play.round();
    first = play.running(1) == 1;
  }
  return other - 2;
}

TEST(Queues, PriorityClassesAreNamesForPriorities) {
  const PriorityClasses classes{{"high", {50}}, {"usual", {3, true}}};
  std::vector<Queue> queues{{.name = "a", .priority_max = 10}, {.name = "other"}};
  const auto priority = [&](Asks asks) { return priority_of(asks, queues, classes); };
  Asks high{"a"};
  high.priority_class = "high";
  EXPECT_EQ(priority(high), 50);
  high.owner = 1;
  EXPECT_EQ(priority(high), 10) << "of a user, whose queue allows no more";
  EXPECT_EQ(priority({"a"}), 3) << "of all pods that say nothing";
  EXPECT_EQ(priority({"a", {}, 100, 0}), 0);
  queues[0].priority_default = 5;
  EXPECT_EQ(priority({"a"}), 5) << "the queue's own comes first";
  Asks gone{"a"};
  gone.priority_class = "deleted";
  EXPECT_EQ(priority(gone), 5);
}

// A class that is created again with a higher value, or a queue that loses its maximum, lifts no
// job of a user above what that user may ask for now.
TEST(Queues, NoChangeLiftsAUsersJobAboveTheMaximumForUsers) {
  Asks asks{"a", 1, 100, 8}, named{"a", 1}, of_operator{"a", {}, 100, 8}, given{"a", 1, 100, 8};
  named.priority_class = "mid";
  given.given = true;
  const Queue other{.name = "other"}, bounded{.name = "a", .priority_max = 9};
  EXPECT_EQ(priority_of(asks, {bounded, other}, {}, 3), 8) << "the queue allows more than others";
  EXPECT_EQ(priority_of(named, {bounded, other}, {{"mid", {7}}}, 3), 7);
  EXPECT_EQ(priority_of(named, {bounded, other}, {{"mid", {100}}}, 3), 9);
  const std::vector<Queue> unbounded{{.name = "a"}, other};
  EXPECT_EQ(priority_of(asks, unbounded, {}, 3), 3);
  EXPECT_EQ(priority_of(named, unbounded, {{"mid", {100}}}, 3), 3);
  EXPECT_EQ(priority_of(of_operator, unbounded, {}, 3), 8);
  EXPECT_EQ(priority_of(given, unbounded, {}, 3), 8) << "an operator gave it this";
  // What an operator gives all jobs is not what the user asked for.
  EXPECT_EQ(priority_of({"a", 1}, {{.name = "a", .priority_default = 5}, other}, {}, 3), 5);
  EXPECT_EQ(priority_of({"a", 1}, unbounded, {{"usual", {6, true}}}, 3), 6);
}

TEST(Queues, AClassMayForbidPreemption) {
  for (const bool preempts : {true, false}) {
    for (const bool usual : {true, false}) {  // the class is the default of all pods
      Play play;
      play.slots.set_queues({}, {{"high", {50, usual, preempts}}});
      play.node(1, 2);
      add(play, 1, {"", {}, 2, 0});
      play.round();
      Asks high{"", {}, 2};
      if (!usual) high.priority_class = "high";
      add(play, 2, high);
      play.round();
      EXPECT_EQ(play.victims(1), preempts ? 2u : 0u) << usual;
      if (preempts) continue;
      play.slots.set_queues({}, {{"high", {50, usual, true}}});
      play.round();
      EXPECT_EQ(play.victims(1), 2u) << "a change acts at once";
    }
  }
}

TEST(Queues, TheDefaultClassSaysNothingOfPodsWithAPriorityOfTheirOwn) {
  Play play;
  play.slots.set_queues({{.name = "b", .priority_default = 50}}, {{"usual", {1, true, false}}});
  play.node(1, 4);
  add(play, 1, {"", {}, 4, 0});
  play.round();
  add(play, 2, {"", {}, 1, 50});
  play.round();
  EXPECT_EQ(play.victims(1), 1u);
  add(play, 3, {"b", {}, 1});
  play.round();
  EXPECT_EQ(play.victims(1), 2u) << "the queue's priority comes before the default";
}

TEST(Queues, WhatAnOperatorSetIsNotJudgedByTheQueue) {
  Play play;
  play.node(1, 8);
  play.slots.set_queues({{.name = "closed", .users = {"u2"}, .time_max_s = 60}});
  Asks asks{"closed", 1, 1, {}, false, "", 61};
  add(play, 1, asks);
  play.round();
  EXPECT_EQ(why(play, 1), Why::not_open);
  asks.placed = true;
  add(play, 2, asks);
  play.round();
  EXPECT_EQ(play.running(1), 0u);
  EXPECT_EQ(play.running(2), 1u);
}

TEST(Queues, PreemptOnlyThoseTheyMay) {
  Play play;
  play.slots.set_queues({{.name = "a", .preempts = {{"b"}}},
                         {.name = "b"},
                         {.name = "c", .preempts = std::vector<std::string>{}},
                         {.name = "d"}});
  play.node(1, 8);
  add(play, 1, {"b", 1, 4});
  add(play, 2, {"", 1, 4});
  play.round();
  add(play, 3, {"c", 1, 1, 9});
  play.round();
  EXPECT_EQ(play.victims(1) + play.victims(2), 0u);
  add(play, 4, {"a", 1, 6, 9});
  play.round();
  EXPECT_EQ(play.victims(1), 4u);
  EXPECT_EQ(play.victims(2), 0u);
  add(play, 5, {"d", 1, 1, 9});
  play.round();
  EXPECT_EQ(play.victims(2), 1u) << "any, without a list";
}

// Until its victims have ended, nobody else may use up the limit for which it made room.
TEST(Queues, RoomMadeByPreemptionCountsUnderTheLimit) {
  Play play;
  play.deaf = true;
  play.slots.set_queues({{.name = "a", .total = pods(4)}, {.name = "b"}});
  play.node(1, 4);
  add(play, 1, {"b", 1, 4});
  play.round();
  add(play, 2, {"a", 2, 4, 5});
  play.round();
  EXPECT_EQ(play.victims(1), 4u);
  play.node(2, 8);
  add(play, 3, {"a", 3, 8});
  play.round(10);
  EXPECT_EQ(play.running(2) + play.running(3), 4u);
  EXPECT_EQ(play.running(2), 4u) << "it takes what is free first";
}

TEST(Queues, RoomMadeByPreemptionIsNotMadeInVain) {
  Play play;
  play.deaf = true;
  play.slots.set_queues({{.name = "a", .total = pods(4)}, {.name = "b"}});
  play.node(1, 4, 8000);
  play.node(2, 8, 1000);
  add(play, 1, {"b", 1, 4, {}, false, "2"});
  play.round();
  ASSERT_EQ(play.running(1), 4u);
  Asks large{"a", 2, 4, 5};
  large.cpu = "2";
  add(play, 2, large);
  play.round();
  EXPECT_EQ(play.victims(1), 4u);
  add(play, 3, {"a", 3, 8});
  play.round(10);
  EXPECT_EQ(play.running(3), 0u) << "though node 2 is free";
  EXPECT_EQ(play.slots.queue_waits().at(3).shortage, (Allowance::Shortage{"pods", 4, 4, 8, 4}));
  EXPECT_EQ(why(play, 2), std::nullopt) << "it waits for slots";
  add(play, 4, {"a", 4, 1, 9});
  play.round(10);
  EXPECT_EQ(play.running(4), 1u) << "of higher priority";
  play.end(4, 2, 1, false, std::nullopt);
  play.end(1, 1, 4, false, std::nullopt);
  play.round();
  EXPECT_EQ(play.running(2), 4u);
  play.end(2, 1, 4, false, std::nullopt);
  play.round();
  EXPECT_EQ(play.running(3), 4u) << "nothing is kept any more";
}

// Likewise for places that are kept for a gang, but not for pods that end before it starts.
TEST(Queues, PlacesKeptForAGangCountUnderTheLimit) {
  Play play;
  play.slots.set_queues({{.name = "a", .total = pods(7)}});
  play.node(1, 8);
  add(play, 1, {"", 1, 4, {}, false, "", 600});
  play.round();
  add(play, 3, {"a", 3, 7, {}, true});
  play.round();
  play.round(Slots::kPatienceMs);
  ASSERT_TRUE(play.slots.awaited());
  play.node(2, 2);
  add(play, 4, {"a", 4, 8});
  play.round();
  EXPECT_EQ(play.running(4), 0u) << "the gang would wait for its pods, too";
  add(play, 5, {"a", 5, 8, {}, false, "", 60});
  play.round();
  EXPECT_EQ(play.running(5), 6u) << "they end in time, also where places are kept";
  for (auto [node, count] : std::map(play.jobs.at(5).runs))
    play.end(5, node, count, false, std::nullopt);
  play.jobs.at(5).pending = 0;
  play.want(5);
  play.end(1, 1, 4, false, std::nullopt);
  play.round();
  EXPECT_EQ(play.running(3), 7u);
}

TEST(Queues, PodsGoOnlyToTheirQueuesNodes) {
  Play play;
  play.node(1, 4);
  play.node(2, 4);
  play.slots.set_queues({{.name = "a", .node_selector = {{"disk", "ssd"}}}});
  add(play, 1, {"a", 1, 6});
  play.round();
  EXPECT_EQ(play.running(1), 0u);
  EXPECT_EQ(why(play, 1), Why::no_node);
  label(play, 2, {{"disk", "ssd"}});
  play.round();
  EXPECT_EQ(play.jobs.at(1).runs, (std::map<NodeId, uint32_t>{{2, 4}}));
  EXPECT_EQ(why(play, 1), std::nullopt) << "it waits for slots";
  play.slots.set_queues({{.name = "a"}});
  play.round();
  EXPECT_EQ(play.jobs.at(1).runs, (std::map<NodeId, uint32_t>{{1, 2}, {2, 4}}));
}

// A job that selects other nodes than its queue has gets none.
TEST(Queues, TheJobsOwnSelectorDoesNotReplaceTheQueues) {
  Play play;
  play.node(1, 4);
  label(play, 1, {{"disk", "hdd"}});
  play.slots.set_queues({{.name = "a", .node_selector = {{"disk", "ssd"}}}});
  auto object = std::make_shared<JobObject>(*object_of({"a", 1}));
  object->spec.pod.node_selector = {{"disk", "hdd"}};
  play.jobs[1] = {object, 4, 0, {}};
  play.want(1);
  play.round();
  EXPECT_EQ(play.running(1), 0u);
}

TEST(Queues, AJobThatItsQueueDoesNotTakeWaitsAndHoldsNothingUp) {
  Play play;
  play.node(1, 8);
  add(play, 9, {"", 9, 8});
  play.round();
  play.slots.set_queues({{.name = "closed", .users = {"u2"}},
                         {.name = "short", .time_max_s = 60},
                         {.name = "usual", .time_default_s = 60, .time_max_s = 60}});
  add(play, 1, {"none", 1, 8, 9, true});
  add(play, 2, {"closed", 1, 8, 9, true});
  add(play, 3, {"short", 1, 8, 9, true, "", 61});
  add(play, 4, {"short", 1, 8, 9, true});
  play.round();
  play.round(Slots::kPatienceMs);
  EXPECT_EQ(play.victims(9), 0u);
  EXPECT_FALSE(play.slots.awaited());
  EXPECT_FALSE(play.slots.lacks());
  EXPECT_EQ(why(play, 1), Why::no_queue);
  EXPECT_EQ(why(play, 2), Why::not_open);
  EXPECT_EQ(why(play, 3), Why::time_limit);
  EXPECT_EQ(why(play, 4), Why::time_limit) << "it may run for ever";
  EXPECT_EQ(why(play, 9), std::nullopt);
  play.end(9, 1, 8, false, std::nullopt);
  add(play, 5, {"closed", 2, 1});
  add(play, 6, {"short", 1, 1, {}, false, "", 60});
  add(play, 7, {"usual", 1, 1, {}, false, "", 60});
  play.round();
  for (JobId id : {5, 6, 7}) EXPECT_EQ(play.running(id), 1u) << id;
  // Changes act at once on what waits.
  play.slots.set_queues({{.name = "none"}, {.name = "closed", .groups = {100}}, {.name = "short"}});
  for (JobId id : {5, 6, 7}) play.end(id, 1, 1, false, std::nullopt);
  for (JobId id : {1, 2, 3, 4}) {
    play.round();
    EXPECT_EQ(play.running(id) + play.jobs.at(id).pending, 8u);
  }
  uint64_t running = 0;
  for (JobId id : {1, 2, 3, 4}) running += play.running(id);
  EXPECT_EQ(running, 8u);
  EXPECT_TRUE(play.slots.queue_waits().empty());
}

TEST(Queues, AQueueThatIsDeletedStopsItsJobsButEndsNoPod) {
  Play play;
  play.node(1, 4);
  play.slots.set_queues({{.name = "a"}});
  add(play, 1, {"a", 1, 6});
  play.round();
  play.slots.set_queues({});
  play.round();
  EXPECT_EQ(play.running(1), 4u);
  EXPECT_EQ(play.victims(1), 0u);
  play.end(1, 1, 1, true, std::nullopt);
  play.round();
  EXPECT_EQ(play.running(1), 3u);
  EXPECT_EQ(why(play, 1), Why::no_queue);
}

// What jobs in a queue, or of a user in it, have on nodes.
struct Held {
  uint64_t pods = 0, jobs = 0;
  int64_t cpu_millis = 0;
  // Where it has grown from `before`.
  bool grew_within(const Held& before, const QueueLimits& most) const {
    return (pods <= before.pods || pods <= most.pods.value_or(UINT32_MAX)) &&
           (jobs <= before.jobs || jobs <= most.jobs.value_or(UINT32_MAX)) &&
           (cpu_millis <= before.cpu_millis || cpu_millis <= most.cpu_millis.value_or(INT64_MAX));
  }
};

struct History {
  std::mt19937_64 random;
  Play play;
  std::map<JobId, Asks> asks;
  std::vector<Queue> queues;
  NodeId nodes = 0;

  const uint32_t user_max;  // 0: no limit

  explicit History(uint64_t seed)
      : random(seed), play(seed % 3 == 0 ? 7 : 0), user_max(seed % 3 == 0 ? 7 : 0) {}
  uint64_t pick(uint64_t n) { return random() % n; }

  QueueLimits limits() {
    QueueLimits made;
    if (pick(3) == 0) made.pods = static_cast<uint32_t>(1 + pick(8));
    if (pick(4) == 0) made.jobs = static_cast<uint32_t>(1 + pick(3));
    if (pick(4) == 0) made.cpu_millis = static_cast<int64_t>(1000 + pick(6000));
    return made;
  }
  void new_queues() {
    queues.clear();
    for (const char* name : {"default", "a", "b"}) {
      if (pick(6) == 0) continue;
      Queue queue{.name = name};
      if (pick(3) == 0) queue.node_selector = {{"kind", pick(2) ? "x" : "y"}};
      if (pick(5) == 0) queue.users = {"u" + std::to_string(pick(3))};
      queue.total = limits();
      queue.per_user = limits();
      queue.weight = static_cast<double>(1 + pick(3));
      queues.push_back(queue);
    }
    play.slots.set_queues(queues);
  }
  void new_node() {
    play.node(++nodes, static_cast<uint32_t>(1 + pick(6)), 1000 * (1 + pick(6)));
    label(play, nodes, {{"kind", pick(2) ? "x" : "y"}});
  }
  void lose_node(NodeId id) {
    play.slots.remove_node(id);
    play.nodes.erase(id);
    for (auto& [job, state] : play.jobs)
      if (const auto runs = state.runs.find(id); runs != state.runs.end()) {
        state.pending += runs->second;
        state.runs.erase(runs);
        play.want(job);
      }
  }
  const Queue* queue_of_job(JobId id) const {
    static const Queue kOpen{.name = "default"};
    const std::string name = asks.at(id).queue.empty() ? "default" : asks.at(id).queue;
    for (const Queue& queue : queues)
      if (queue.name == name) return &queue;
    return name == "default" ? &kOpen : nullptr;
  }
  bool takes(JobId id) const {
    const Queue* queue = queue_of_job(id);
    return queue && open_to(*queue, owner_of(play.jobs.at(id).object->meta.annotations));
  }
  int64_t cpu(JobId id) const { return demand_of(*play.jobs.at(id).object).amounts.cpu_millis; }

  // Under each limit: of the queue, of a user in it, and of a user in all queues.
  std::map<std::string, Held> held(std::optional<JobId> one_more = {}) const {
    std::map<std::string, Held> all;
    for (const auto& [id, job] : play.jobs) {
      const uint64_t pods = play.running(id) + (one_more == id ? 1 : 0);
      if (pods == 0) continue;
      const std::string queue = asks.at(id).queue.empty() ? "default" : asks.at(id).queue;
      const std::string user = std::to_string(*asks.at(id).owner);
      for (const std::string& under : {queue, queue + " " + user, "user " + user}) {
        all[under].pods += pods;
        ++all[under].jobs;
        all[under].cpu_millis += static_cast<int64_t>(pods) * cpu(id);
      }
    }
    return all;
  }
  bool allowed_one_more(JobId id) const {
    const auto before = held(), after = held(id);
    const Queue& queue = *queue_of_job(id);
    const std::string user = std::to_string(*asks.at(id).owner);
    auto may = [&](const std::string& under, const QueueLimits& most) {
      const auto was = before.find(under);
      return after.at(under).grew_within(was == before.end() ? Held{} : was->second, most);
    };
    return may(queue.name, queue.total) && may(queue.name + " " + user, queue.per_user) &&
           (user_max == 0 || may("user " + user, pods(user_max)));
  }

  bool fits(JobId id, NodeId node) const {
    const NodeInfo& info = play.nodes.at(node);
    if (play.slots.used(node) >= info.slots) return false;
    int64_t cpu_taken = cpu(id);
    for (const auto& [other, job] : play.jobs)
      if (const auto runs = job.runs.find(node); runs != job.runs.end())
        cpu_taken += runs->second * cpu(other);
    if (cpu(id) > 0 && cpu_taken > static_cast<int64_t>(info.cpu_millis)) return false;
    return has_labels(info.spec.labels, queue_of_job(id)->node_selector);
  }

  void check_grants(const Slots::Round& round, const std::map<std::string, Held>& before) {
    const auto after = held();
    for (const Slots::Granted& granted : round.grants) {
      const JobId job = granted.job;
      ASSERT_TRUE(takes(job)) << job;
      const Queue& queue = *queue_of_job(job);
      ASSERT_TRUE(has_labels(play.nodes.at(granted.node).spec.labels, queue.node_selector)) << job;
      const std::string user = std::to_string(*asks.at(job).owner);
      // A lowered limit may be exceeded already.
      auto check = [&](const std::string& under, const QueueLimits& most) {
        const auto was = before.find(under);
        ASSERT_TRUE(after.at(under).grew_within(was == before.end() ? Held{} : was->second, most))
            << "j" << job << " under " << under;
      };
      check(queue.name, queue.total);
      check(queue.name + " " + user, queue.per_user);
      if (user_max > 0) check("user " + user, pods(user_max));
    }
  }
  void check_nothing_idle() {
    for (const auto& [id, job] : play.jobs) {
      if (job.pending == 0 || asks.at(id).gang || !takes(id) || !allowed_one_more(id)) continue;
      for (const auto& [node, info] : play.nodes)
        ASSERT_FALSE(fits(id, node)) << "j" << id << " could have a slot on n" << node;
    }
  }
  void step(JobId& last) {
    if (pick(40) == 0) new_queues();
    if (nodes < 3 || pick(60) == 0) new_node();
    if (pick(60) == 0 && !play.nodes.empty()) lose_node(play.nodes.begin()->first);
    if (pick(6) == 0) {
      const std::string names[] = {"", "a", "b"};
      Asks one{names[pick(3)], static_cast<uint32_t>(pick(3))};
      one.pods = static_cast<uint32_t>(1 + pick(8));
      one.gang = pick(5) == 0;
      if (pick(3) == 0) one.cpu = std::to_string(1 + pick(2));
      asks[++last] = one;
      add(play, last, one);
    }
    for (auto& [id, job] : play.jobs)
      if (!job.runs.empty() && pick(8) == 0)
        play.end(id, job.runs.begin()->first, 1, pick(4) == 0, std::nullopt);
  }
};

TEST(Queues, RandomHistoriesKeepLimitsAndLeaveNothingIdle) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    JobId last = 0;
    for (int step = 0; step < 400; ++step) {
      SCOPED_TRACE(step);
      history.step(last);
      const auto before = history.held();
      const bool kept = history.play.slots.awaited().has_value();
      const Slots::Round round = history.play.round(kPrefetchSpanMs + 10);  // without prefetch
      history.check_grants(round, before);
      if (!kept) history.check_nothing_idle();
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace

}  // namespace muster::core
