// Who gets which slots: demands, placement, preemption.
#include "core/cluster/placement.hpp"

#include <gtest/gtest.h>

#include <random>

namespace muster::core {

namespace {

JobObject object(std::map<std::string, std::string> requests) {
  JobObject job;
  Container container;
  container.resources.requests = std::move(requests);
  job.spec.pod.containers.push_back(container);
  return job;
}

uint64_t granted(const Grants& grants, JobId job) {
  uint64_t n = 0;
  if (auto it = grants.find(job); it != grants.end())
    for (auto [node, count] : it->second) n += count;
  return n;
}

TEST(Demand, IsTheContainersTogetherOrTheLargestInitContainer) {
  JobObject job = object({{"cpu", "500m"}, {"memory", "1Gi"}, {"nvidia.com/gpu", "1"}});
  Container second, init;
  second.resources.limits = {{"cpu", "1"}};  // a limit counts where there is no request
  init.resources.requests = {{"cpu", "4"}, {"memory", "1Mi"}};
  job.spec.pod.containers.push_back(second);
  job.spec.pod.init_containers.push_back(init);
  Demand demand = demand_of(job);
  EXPECT_EQ(demand.amounts.cpu_millis, 4000);
  EXPECT_EQ(demand.amounts.memory_bytes, int64_t{1} << 30);
  EXPECT_EQ(demand.amounts.named.at("nvidia.com/gpu"), 1);
  EXPECT_TRUE(demand_of(object({})).amounts.none());
}

TEST(Demand, TaintsSelectorsAndCordons) {
  NodeInfo node;
  StringMap labels = {{"zone", "a"}};
  Demand demand;
  EXPECT_TRUE(admits(node, labels, demand));
  demand.node_selector = {{"zone", "b"}};
  EXPECT_FALSE(admits(node, labels, demand));
  demand.node_selector.clear();
  node.spec.taints = {{"gpu", "yes", "NoSchedule"}};
  EXPECT_FALSE(admits(node, labels, demand));
  demand.tolerations = {{"gpu", "Equal", "no", "", {}}};
  EXPECT_FALSE(admits(node, labels, demand));
  demand.tolerations = {{"gpu", "Equal", "yes", "NoSchedule", {}}};
  EXPECT_TRUE(admits(node, labels, demand));
  node.spec.taints = {{"old", "", "PreferNoSchedule"}};
  EXPECT_TRUE(admits(node, labels, demand));
  EXPECT_EQ(reluctance(node, demand), 1u);
  node.spec.unschedulable = true;
  EXPECT_FALSE(admits(node, labels, demand));
  demand.tolerations = {{"", "Exists", "", "", {}}};
  EXPECT_TRUE(admits(node, labels, demand));
}

TEST(Placement, HigherPriorityFirstEqualOnesFairly) {
  Demand high;
  high.priority = 10;
  Grants grants =
      place({{1, 6, {}, nullptr, nullptr}}, {{1, 100, nullptr}, {2, 100, nullptr}, {3, 4, &high}});
  EXPECT_EQ(granted(grants, 3), 4u);
  EXPECT_EQ(granted(grants, 1), 1u);
  EXPECT_EQ(granted(grants, 2), 1u);
}

TEST(Placement, AGangGetsAllOrNothingAndKeepsNobodyWaiting) {
  Demand gang;
  gang.gang = true;
  std::vector<FreeNode> nodes = {{1, 2, {}, nullptr, nullptr}, {2, 2, {}, nullptr, nullptr}};
  Grants grants = place(nodes, {{1, 5, &gang}, {2, 3, &gang}, {3, 9, nullptr}});
  EXPECT_EQ(granted(grants, 1), 0u);
  EXPECT_EQ(granted(grants, 2), 3u);
  EXPECT_EQ(granted(grants, 3), 1u);
}

TEST(Placement, NodesWithAPreferNoScheduleTaintAreFilledLast) {
  NodeInfo tainted, plain;
  StringMap labels;
  tainted.spec.taints = {{"slow", "", "PreferNoSchedule"}};
  Grants grants =
      place({{1, 4, {}, &tainted, &labels}, {2, 2, {}, &plain, &labels}}, {{7, 3, nullptr}});
  EXPECT_EQ(grants.at(7).at(2), 2u);
  EXPECT_EQ(grants.at(7).at(1), 1u);
}

// Never more than there is; and no slot stays idle that some plain job could take.
TEST(Placement, RandomCasesNeverOverAllocate) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    std::mt19937_64 random(seed);
    auto pick = [&random](uint64_t n) { return random() % n; };
    std::vector<FreeNode> nodes;
    for (NodeId id = 1; id <= 1 + pick(5); ++id)
      nodes.push_back(
          {id,
           static_cast<uint32_t>(pick(6)),
           {static_cast<int64_t>(pick(5000)), 0, {{"x/gpu", static_cast<int64_t>(pick(4))}}},
           nullptr,
           nullptr});
    std::vector<Demand> demands(1 + pick(6));
    std::vector<WaitingJob> jobs;
    bool plain_waits = false;
    for (size_t i = 0; i < demands.size(); ++i) {
      demands[i].priority = static_cast<int32_t>(pick(3));
      demands[i].gang = pick(4) == 0;
      if (pick(2)) demands[i].amounts.cpu_millis = static_cast<int64_t>(pick(1500));
      if (pick(4) == 0) demands[i].amounts.named["x/gpu"] = static_cast<int64_t>(1 + pick(2));
      jobs.push_back({i + 1, static_cast<uint32_t>(pick(9)), &demands[i]});
    }
    Grants grants = place(nodes, jobs);
    for (const FreeNode& node : nodes) {
      uint64_t slots = 0;
      Amounts taken;
      for (const auto& [job, on] : grants)
        if (auto it = on.find(node.node); it != on.end()) {
          slots += it->second;
          taken.add(demands[job - 1].amounts, it->second);
        }
      ASSERT_LE(slots, node.free) << seed;
      ASSERT_LE(taken.cpu_millis, std::max<int64_t>(node.room.cpu_millis, 0)) << seed;
      ASSERT_LE(taken.named["x/gpu"], node.room.named.at("x/gpu")) << seed;
      plain_waits = false;
      for (const WaitingJob& job : jobs) {
        const uint64_t got = granted(grants, job.job);
        ASSERT_TRUE(!job.demand->gang || got == 0 || got == job.wanted) << seed;
        plain_waits |= !job.demand->gang && job.demand->amounts.none() &&
                       granted(grants, job.job) < job.wanted;
      }
      ASSERT_TRUE(!plain_waits || slots == node.free) << seed;
    }
  }
}

TEST(Preemption, TakesTheLowestAndNoMoreThanHelps) {
  Demand high, low, lowest;
  high.priority = 10;
  high.amounts.cpu_millis = 2000;
  low.priority = 5;
  low.amounts.cpu_millis = 1000;
  lowest.priority = 0;
  lowest.amounts.cpu_millis = 1000;
  FreeNode full{1, 0, {}, nullptr, nullptr};
  Grants victims = preempt({full}, {9, 1, &high}, {{1, 1, 2, &low}, {2, 1, 2, &lowest}});
  EXPECT_EQ(granted(victims, 2), 2u) << "two pods of one CPU make room for one of two";
  EXPECT_EQ(granted(victims, 1), 0u);
  EXPECT_TRUE(preempt({full}, {9, 1, &lowest}, {{1, 1, 2, &low}}).empty()) << "never upwards";
  EXPECT_TRUE(preempt({full}, {9, 1, &high}, {{2, 1, 1, &lowest}}).empty()) << "it would not help";
  FreeNode room{1, 1, {2000, 0, {}}, nullptr, nullptr};
  EXPECT_TRUE(preempt({room}, {9, 1, &high}, {{2, 1, 2, &lowest}}).empty()) << "there is room";
}

}  // namespace

}  // namespace muster::core
