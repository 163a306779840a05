// Demands and placement: which job gets which slots.
#include "core/cluster/slots/placement.hpp"

#include "core/cluster/nodes/hollow.hpp"
#include "core/cluster/slots/fair_share.hpp"
#include "core/cluster/slots/reservation.hpp"

#include <gtest/gtest.h>

#include <cmath>
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

TEST(Demand, IsSumOfContainersOrLargestInitContainer) {
  JobObject job = object({{"cpu", "500m"}, {"memory", "1Gi"}, {"nvidia.com/gpu", "1"}});
  Container second, init;
  second.resources.limits = {{"cpu", "1"}};  // a limit stands in for a missing request
  init.resources.requests = {{"cpu", "4"}, {"memory", "1Mi"}};
  job.spec.pod.containers.push_back(second);
  job.spec.pod.init_containers.push_back(init);
  Demand demand = demand_of(job);
  EXPECT_EQ(demand.amounts.cpu_millis, 4000);
  EXPECT_EQ(demand.amounts.memory_bytes, int64_t{1} << 30);
  EXPECT_EQ(demand.amounts.named.at("nvidia.com/gpu"), 1);
  EXPECT_TRUE(demand_of(object({})).amounts.none());
}

TEST(Demand, HugeQuantitiesFitNowhereAndDoNotOverflow) {
  JobObject job = object({{"cpu", "9E"}, {"memory", "8Ei"}, {"x/gpu", "9E"}});
  for (int i = 0; i < 100; ++i) job.spec.pod.containers.push_back(job.spec.pod.containers.front());
  Demand demand = demand_of(job);
  EXPECT_EQ(times_in({1'000'000'000, int64_t{1} << 50, {{"x/gpu", 1'000'000}}}, demand.amounts, 9),
            0u);
  Amounts room;
  room.add(demand.amounts, -1000);
  EXPECT_LT(room.memory_bytes, 0);
}

TEST(Demand, ReadsPriorityAndPreemptionPolicy) {
  JobObject job = object({});
  EXPECT_EQ(demand_of(job).priority, 0);
  EXPECT_TRUE(demand_of(job).preempts);
  job.spec.pod.priority = -7;
  EXPECT_EQ(demand_of(job).priority, -7);
  job.spec.pod.priority_class_name = "system-node-critical";
  EXPECT_EQ(demand_of(job).priority, 2'000'001'000);
  job.spec.pod.kept = R"({"spec":{"command":"\"preemptionPolicy\":\"Never\""}})";
  EXPECT_TRUE(demand_of(job).preempts) << "a text that looks like it is not it";
  job.spec.pod.kept = R"({"spec":{"preemptionPolicy":"Never"}})";
  EXPECT_FALSE(demand_of(job).preempts);
}

TEST(P18Limits, RequiredLimitsKeepPodsOffNodesThatDoNotEnforceThem) {
  struct Row {
    bool memory_limit, cpu_limit;  // of the pod
    bool memory, cpu, required;    // of the node
    bool admitted;
  };
  for (const Row& row : std::vector<Row>{
           {true, true, false, false, false, true},  // not required: the limits do not matter
           {true, false, false, true, true, false},
           {true, false, true, false, true, true},
           {false, true, true, false, true, false},
           {false, true, false, true, true, true},
           {true, true, true, true, true, true},
           {false, false, false, false, true, true},
       }) {
    JobObject job = object({});
    Resources& first = job.spec.pod.containers.front().resources;
    first = {};
    if (row.memory_limit) first.limits["memory"] = "64Mi";
    if (row.cpu_limit) first.limits["cpu"] = "1";
    NodeInfo node;
    node.limits = {row.memory, row.cpu, "", row.required};
    EXPECT_EQ(admits(node, {}, demand_of(job)), row.admitted)
        << row.memory_limit << row.cpu_limit << row.memory << row.cpu << row.required;
  }
}

TEST(Demand, RespectsTaintsSelectorsAndCordons) {
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

TEST(Demand, P11UsersTolerateNeitherACordonNorANoExecuteTaint) {
  NodeInfo node;
  Demand demand;
  demand.tolerations = {{"", "Exists", "", "", {}}, {"gpu", "Exists", "", "NoExecute", 60}};
  for (const bool user : {false, true}) {
    demand.of_user = user;
    node.spec = {};
    node.spec.unschedulable = true;
    EXPECT_EQ(admits(node, {}, demand), !user);
    node.spec = {};
    node.spec.taints = {{"gpu", "broken", "NoExecute"}};
    EXPECT_EQ(admits(node, {}, demand), !user);
    EXPECT_EQ(may_stay(node, demand), user ? Millis{0} : Millis{60'000});
    node.spec.taints = {{"gpu", "", "NoSchedule"}};
    EXPECT_TRUE(admits(node, {}, demand)) << "what is reserved for those who ask for it";
  }
  Demand operators = demand;
  operators.of_user = false;
  EXPECT_FALSE(alike(demand, operators));
}

TEST(Demand, RespectsNodeNameAndAffinity) {
  NodeInfo node;
  node.name = "n1";
  Demand demand;
  demand.node_name = "n2";
  EXPECT_FALSE(admits(node, {}, demand));
  demand.node_name = "n1";
  EXPECT_TRUE(admits(node, {}, demand));
  node.spec.unschedulable = true;
  EXPECT_FALSE(admits(node, {}, demand)) << "a name is no way around a cordon";
  node.spec.unschedulable = false;
  demand.affinity.required = {{{{"zone", "In", {"a"}}}, {}}};
  EXPECT_FALSE(admits(node, {}, demand));
  EXPECT_TRUE(admits(node, {{"zone", "a"}}, demand));
  Demand other = demand;
  EXPECT_TRUE(alike(demand, other));
  other.node_name = "n2";
  EXPECT_FALSE(alike(demand, other));
  other = demand;
  other.affinity.required.reset();
  EXPECT_FALSE(alike(demand, other));
  EXPECT_TRUE(selects(node, labels_of(node), demand) == false);
  demand = {};
  demand.node_selector = {{"kubernetes.io/os", "linux"}};
  EXPECT_TRUE(admits(node, labels_of(node), demand));
}

TEST(P30Hollow, HollowNodeIsTaintedUnlessTaintsAreSetByHand) {
  NodeInfo node;
  Demand demand;
  const Taint own = {"gpu", "yes", "PreferNoSchedule"};
  node.spec.taints = {own};
  const StringMap labels = {{"muster.dev/hollow", "true"}};
  take_labels(node, labels, false);
  EXPECT_FALSE(admits(node, labels_of(node), demand));
  demand.tolerations = {{"muster.dev/hollow", "Exists", "", "", {}}};
  EXPECT_TRUE(admits(node, labels_of(node), demand));
  node.spec.taints = {own};  // set by hand
  take_labels(node, labels, true);
  EXPECT_EQ(node.spec.taints, std::vector{own}) << "what people do stays";
  take_labels(node, labels, false);
  take_labels(node, {}, true);
  EXPECT_EQ(node.spec.taints, std::vector{own}) << "a real one by the same name";
}

TEST(Placement, HigherPriorityGoesFirstAndEqualOnesShare) {
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

// Nodes of this many slots, of which so many are free, and how many pods each gets, as "1:4 3:2".
std::string filled(const std::vector<std::pair<uint32_t, uint32_t>>& slots, uint32_t wanted,
                   PlacementChoice site = PlacementChoice::pack) {
  std::vector<NodeInfo> infos(slots.size());
  const StringMap labels;
  std::vector<FreeNode> nodes;
  for (size_t i = 0; i < slots.size(); ++i) {
    infos[i].slots = slots[i].first;
    nodes.push_back({static_cast<NodeId>(i + 1), slots[i].second, {}, &infos[i], &labels});
  }
  Grants grants = place(nodes, {{7, wanted, nullptr}}, site);
  std::string text;
  for (auto [node, count] : grants[7])
    text += (text.empty() ? "" : " ") + std::to_string(node) + ":" + std::to_string(count);
  return text;
}

TEST(Placement, NodesInUseAreFilledBeforeIdleOnesAreOpened) {
  EXPECT_EQ(filled({{8, 8}, {8, 3}, {8, 5}, {4, 4}}, 3), "2:3") << "the fullest";
  EXPECT_EQ(filled({{8, 8}, {8, 3}, {8, 5}, {4, 4}}, 8), "2:3 3:5");
  EXPECT_EQ(filled({{8, 8}, {8, 3}, {8, 5}, {4, 4}}, 10), "2:3 3:5 4:2") << "the smallest idle one";
  EXPECT_EQ(filled({{8, 8}, {8, 3}, {8, 5}, {4, 4}}, 14), "1:2 2:3 3:5 4:4");
  EXPECT_EQ(filled({{64, 32}, {2, 2}}, 2), "1:2") << "though the idle one has less free";
  EXPECT_EQ(filled({{8, 8}, {8, 3}, {8, 5}, {4, 4}}, 10, PlacementChoice::spread), "1:8 3:2");
}

// Pods of many jobs, of which some need more than is left on the first nodes.
TEST(Placement, NoNodeIsOpenedWhileThePodFitsOnOneInUse) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<NodeInfo> infos(2 + random() % 6);
    const StringMap labels;
    std::vector<FreeNode> nodes;
    for (NodeInfo& info : infos) {
      info.slots = 4;
      nodes.push_back({static_cast<NodeId>(nodes.size() + 1), 4, {4'000, 0, {}}, &info, &labels});
    }
    std::vector<Demand> demands(1 + random() % 8);
    std::vector<WaitingJob> jobs;
    for (Demand& demand : demands) {
      demand.amounts.cpu_millis = 1'000 * static_cast<int64_t>(1 + random() % 4);
      demand.priority = -static_cast<int32_t>(jobs.size());  // in this order
      jobs.push_back({jobs.size() + 1, 1, &demand});
    }
    const Grants grants = place(nodes, jobs);
    std::vector<int64_t> free(infos.size() + 1, 4'000);
    for (size_t i = 0; i < demands.size(); ++i) {
      if (granted(grants, i + 1) == 0) continue;
      const int64_t needs = demands[i].amounts.cpu_millis;
      const NodeId there = grants.at(i + 1).begin()->first;
      for (NodeId node = 1; node <= infos.size(); ++node)
        ASSERT_FALSE(free[there] == 4'000 && free[node] < 4'000 && free[node] >= needs)
            << seed << ": job " << i + 1 << " opened node " << there << " beside " << node;
      free[there] -= needs;
    }
  }
}

// Work spreads, but not over the nodes that a job which waits needs as a whole.
TEST(Placement, WhereASiteSpreadsTheFullestNodesAreFilledFirstWhileALargeJobWaits) {
  constexpr auto kSpread = PlacementChoice::spread;
  Demand gang, large, small;
  gang.gang = true;
  large.amounts.cpu_millis = 9'000;
  small.amounts.cpu_millis = 1'000;
  const std::vector<FreeNode> nodes = {{1, 8, {8'000}}, {2, 2, {2'000}}, {3, 5, {5'000}}};
  const Grants spread = {{1, {{1, 3}}}}, tight = {{1, {{2, 2}, {3, 1}}}};
  EXPECT_EQ(place(nodes, {{1, 3, &small}}, kSpread), spread);
  EXPECT_EQ(
      place(nodes, {{1, 3, &small}, {.job = 2, .wanted = 1, .demand = &large, .cost = 9}}, kSpread),
      tight);
  EXPECT_EQ(place(nodes, {{1, 3, &small}, {2, 20, &gang}}, kSpread), tight);
  const Grants whole = {{2, {{1, 8}}}};
  EXPECT_EQ(place(nodes, {{2, 8, &gang}}, kSpread), whole) << "over as few nodes as before";
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

// What nodes with these free slots grant a gang with this placement, as "1:4 3:2".
std::string chosen(PlacementChoice choice, const std::vector<uint32_t>& free, uint32_t wanted,
                   const std::map<NodeId, uint32_t>& before = {}) {
  Holdings held;
  for (auto [node, pods] : before) held.at(node).pods = pods;
  Demand demand;
  demand.gang = true;
  demand.placement = choice;
  std::vector<FreeNode> nodes;
  for (uint32_t slots : free)
    nodes.push_back({static_cast<NodeId>(nodes.size() + 1), slots, {}, nullptr, nullptr});
  Grants grants = place(nodes, {{.job = 7, .wanted = wanted, .demand = &demand, .held = &held}});
  std::string text;
  for (auto [node, count] : grants[7])
    text += (text.empty() ? "" : " ") + std::to_string(node) + ":" + std::to_string(count);
  return text;
}

TEST(Placement, PreferredNodesAreFilledFirst) {
  std::vector<NodeInfo> infos(4);
  std::vector<StringMap> labels = {{}, {{"disk", "ssd"}}, {{"disk", "ssd"}, {"gen", "2"}}, {}};
  std::vector<FreeNode> nodes;
  for (size_t i = 0; i < infos.size(); ++i)
    nodes.push_back({static_cast<NodeId>(i + 1), i == 0 ? 9u : 2u, {}, &infos[i], &labels[i]});
  infos[2].spec.taints = {{"old", "", "PreferNoSchedule"}};
  Demand demand;
  demand.affinity.preferred = {{1, {{{"disk", "In", {"ssd"}}}, {}}},
                               {50, {{{"gen", "Gt", {"1"}}}, {}}}};
  auto placed = [&](uint32_t wanted) {
    return place(nodes, {{.job = 1, .wanted = wanted, .demand = &demand}})[1];
  };
  using Placed = std::map<NodeId, uint32_t>;
  EXPECT_EQ(placed(3), (Placed{{2, 2}, {4, 1}}));
  EXPECT_EQ(placed(14), (Placed{{1, 9}, {2, 2}, {3, 1}, {4, 2}})) << "an old one is still last";
  infos[2].spec.taints.clear();
  EXPECT_EQ(placed(3), (Placed{{2, 1}, {3, 2}}));
  EXPECT_EQ(placed(99), (Placed{{1, 9}, {2, 2}, {3, 2}, {4, 2}})) << "they are no condition";
}

TEST(Placement, PackUsesFewestNodesAndKeepsLargeOnesFree) {
  constexpr auto kPack = PlacementChoice::pack;
  EXPECT_EQ(chosen(kPack, {4, 8, 2, 6}, 6), "4:6") << "the one that is just large enough";
  EXPECT_EQ(chosen(kPack, {4, 8, 2, 6}, 9), "2:8 3:1");
  EXPECT_EQ(chosen(kPack, {4, 8, 2, 6}, 10), "2:8 3:2");
  EXPECT_EQ(chosen(kPack, {4, 8, 2, 6}, 11), "1:3 2:8");
  EXPECT_EQ(chosen(kPack, {4, 8, 2, 6}, 21), "") << "a gang gets all or nothing";
  EXPECT_EQ(chosen(kPack, {4, 8, 2, 6}, 1, {{1, 3}}), "1:1") << "where its other pods are";
  EXPECT_EQ(chosen(PlacementChoice::usual, {4, 8, 2, 6}, 6), "4:6") << "a gang is packed anyway";
}

TEST(Placement, SpreadIsAsEvenAsFreeSlotsAllow) {
  constexpr auto kSpread = PlacementChoice::spread;
  EXPECT_EQ(chosen(kSpread, {4, 8, 2, 6}, 4), "1:1 2:1 3:1 4:1");
  EXPECT_EQ(chosen(kSpread, {4, 8, 2, 6}, 2), "2:1 4:1") << "the emptiest of equal ones";
  EXPECT_EQ(chosen(kSpread, {4, 8, 2, 6}, 11), "1:3 2:3 3:2 4:3");
  EXPECT_EQ(chosen(kSpread, {4, 8, 2, 6}, 20), "1:4 2:8 3:2 4:6");
  EXPECT_EQ(chosen(kSpread, {4, 8, 2, 6}, 1, {{2, 1}, {4, 1}}), "1:1");
}

TEST(Placement, PackAndSpreadCountResourcesAndUseTaintedNodesLast) {
  NodeInfo plain, tainted;
  StringMap labels;
  tainted.spec.taints = {{"slow", "", "PreferNoSchedule"}};
  Demand demand;
  demand.amounts.cpu_millis = 1000;
  const std::vector<FreeNode> nodes = {{1, 8, {2000, 0, {}}, &plain, &labels},
                                       {2, 4, {3000, 0, {}}, &plain, &labels},
                                       {3, 8, {9000, 0, {}}, &tainted, &labels}};
  demand.placement = PlacementChoice::pack;
  EXPECT_EQ(place(nodes, {{7, 3, &demand}}), (Grants{{7, {{2, 3}}}}));
  demand.placement = PlacementChoice::spread;
  EXPECT_EQ(place(nodes, {{7, 6, &demand}}), (Grants{{7, {{1, 2}, {2, 3}, {3, 1}}}}));
}

// Never grants more than a node has, and leaves no slot idle that a plain job could take.
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
      demands[i].placement = static_cast<PlacementChoice>(pick(3));
      if (pick(2)) demands[i].amounts.cpu_millis = static_cast<int64_t>(pick(1500));
      if (pick(4) == 0) demands[i].amounts.named["x/gpu"] = static_cast<int64_t>(1 + pick(2));
      jobs.push_back({i + 1, static_cast<uint32_t>(pick(9)), &demands[i]});
    }
    Grants grants = place(nodes, jobs, pick(2) ? PlacementChoice::pack : PlacementChoice::spread);
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

TEST(Placement, ReservationHoldsAgainstAllButHigherPriority) {
  Demand gang, high;
  gang.gang = true;
  gang.priority = 5;
  high.priority = 9;
  Reservation reservation = {{1, 2}, {2, 2}};
  std::vector<FreeNode> nodes = {{1, 2, {}, nullptr, nullptr}, {2, 1, {}, nullptr, nullptr}};
  Demand equal;
  equal.priority = 5;
  Grants grants = place(nodes, {{1, 9, &equal}, {2, 4, &gang, &reservation}, {3, 9, nullptr}});
  EXPECT_TRUE(grants.empty()) << "three of four places are free, and kept";
  grants = place(nodes, {{1, 9, &high}, {2, 4, &gang, &reservation}});
  EXPECT_EQ(granted(grants, 1), 3u);
  nodes.push_back({3, 2, {}, nullptr, nullptr});
  grants = place(nodes, {{1, 9, &equal}, {2, 4, &gang, &reservation}});
  EXPECT_EQ(granted(grants, 2), 4u) << "it takes what fits, reserved or not";
  EXPECT_EQ(granted(grants, 1), 1u);
}

// Otherwise a gang that lost a member would hold its slots forever: it would wait for slots
// reserved for another gang, which waits for the slots it holds.
TEST(Placement, AGangThatRunsGetsItsMissingMembersBeforeItsEqualsGetAnything) {
  std::vector<FreeNode> nodes = {{1, 3, {}, nullptr}};
  Demand gang, high;
  gang.gang = true;
  high.priority = 1;
  Reservation reservation = {{1, 3}};
  const WaitingJob waits{1, 3, &gang, &reservation};
  WaitingJob runs{2, 1, &gang};
  EXPECT_EQ(granted(place(nodes, {waits, runs}), 1), 3u);
  runs.begun = true;
  const Grants grants = place(nodes, {waits, runs});
  EXPECT_EQ(granted(grants, 1), 0u);
  EXPECT_EQ(granted(grants, 2), 1u);
  EXPECT_EQ(granted(place(nodes, {{3, 3, &high}, runs}), 3), 3u);
}

TEST(Placement, AReservationKeepsResourcesToo) {
  Demand large, small;
  large.amounts.cpu_millis = 4000;
  small.amounts.cpu_millis = 1000;
  Reservation reservation = {{1, 1}};
  std::vector<FreeNode> nodes = {{1, 8, {3000, 0, {}}, nullptr, nullptr}};
  Grants grants = place(nodes, {{1, 9, &small}, {2, 1, &large, &reservation}, {3, 9, nullptr}});
  EXPECT_EQ(granted(grants, 1), 0u) << "its CPUs would come from what is reserved";
  EXPECT_EQ(granted(grants, 3), 7u) << "who asks for none of them takes the other slots";
}

TEST(Reservation, GangThatCanNeverFitReservesNothing) {
  Demand gang;
  gang.gang = true;
  const std::vector<Outlook> nodes = {{{1, 2, {}, nullptr, nullptr}, {}},
                                      {{2, 2, {}, nullptr, nullptr}, {}}};
  EXPECT_EQ(plan(nodes, {1, 3, &gang}, 0)->places, (Reservation{{1, 2}, {2, 1}}));
  EXPECT_FALSE(plan(nodes, {1, 5, &gang}, 0));
  Demand large;
  large.amounts.cpu_millis = 1;
  EXPECT_FALSE(plan(nodes, {1, 1, &large}, 0));
}

TEST(Reservation, IsWhereAllOfItIsFreeFirst) {
  Demand gang, small, large;
  gang.gang = true;
  small.amounts.cpu_millis = 1000;
  large.amounts.cpu_millis = 4000;
  const std::vector<Outlook> nodes = {
      {{1, 1, {1000, 0, {}}, nullptr, nullptr}, {{9000, 3, &small}}},
      {{2, 0, {0, 0, {}}, nullptr, nullptr}, {{500, 2, &small}, {300, 2, &small}}},
      {{3, 0, {0, 0, {}}, nullptr, nullptr}, {{400, 4, &small}}}};
  const WaitingJob five{1, 5, &gang}, one{2, 7, &large};
  const std::optional<Plan> places = plan(nodes, five, 100);
  ASSERT_TRUE(places);
  EXPECT_EQ(places->places, (Reservation{{1, 1}, {2, 2}, {3, 2}}));
  EXPECT_EQ(places->due.start_ms, 400);
  const std::optional<Plan> whole = plan(nodes, one, 100);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->places, (Reservation{{3, 1}})) << "a node of its own, as soon as there is one";
  EXPECT_EQ(whole->due.start_ms, 400);
  auto starts = [&nodes](const Reservation& there, const WaitingJob& job) {
    Planning planning(job, there, 100);
    for (const Outlook& node : nodes) planning.look(node);
    const std::optional<Due> due = planning.due_of_kept();
    return due ? std::optional(due->start_ms) : std::nullopt;
  };
  EXPECT_EQ(starts({{2, 1}}, one), 500);
  EXPECT_EQ(starts({{1, 1}, {2, 4}}, five), 500);
  EXPECT_EQ(starts({{4, 1}}, five), std::nullopt) << "there is no such node";
}

TEST(Reservation, APlanThatNeedsAnEndOfWhichNothingIsKnownIsNotKnown) {
  const Demand gang{.gang = true};
  auto known = [&gang](uint32_t pods) {
    const std::vector<Outlook> nodes = {
        {{1, 1, {}, nullptr, nullptr}, {{500, 2, nullptr}, {900, 2, nullptr, false}}}};
    return plan(nodes, {1, pods, &gang}, 100).value().due.known;
  };
  EXPECT_TRUE(known(1));
  EXPECT_TRUE(known(3));
  EXPECT_FALSE(known(4));
}

// A pod that would end before the reservation is complete runs in its place; one of which nothing
// is known does not.
TEST(Placement, KeptPlacesAreLentToPodsThatEndInTime) {
  Demand gang;
  gang.gang = true;
  const Reservation reservation = {{1, 2}, {2, 2}};
  const std::vector<FreeNode> nodes = {{1, 2, {}, nullptr, nullptr}, {2, 1, {}, nullptr, nullptr}};
  WaitingJob waits{1, 4, &gang, &reservation};
  waits.starts_in_ms = 60'000;
  WaitingJob quick{.job = 2, .wanted = 2}, slow{.job = 3, .wanted = 9},
      unknown{.job = 4, .wanted = 9};
  quick.runs_ms = 60'000;
  slow.runs_ms = 60'001;
  Grants grants = place(nodes, {unknown, slow, waits, quick});
  EXPECT_EQ(granted(grants, 2), 2u);
  EXPECT_EQ(granted(grants, 3) + granted(grants, 4), 0u);
  Demand low;
  low.priority = -1;
  WaitingJob other{.job = 5, .wanted = 9, .demand = &low};
  other.runs_ms = 1;
  grants = place(nodes, {other, waits, quick});
  EXPECT_EQ(granted(grants, 2), 2u);
  EXPECT_EQ(granted(grants, 5), 1u) << "what is left is lent to lower priorities";
  waits.starts_in_ms = 0;
  other.runs_ms = 0;
  EXPECT_TRUE(place(nodes, {other, waits}).empty()) << "it is due";
}

TEST(FairShare, LevelsWhatEachHas) {
  auto of = [](const std::vector<Sharer>& sharers, double amount) {
    std::vector<long> rounded;
    for (const double one : level(sharers, amount)) rounded.push_back(std::lround(one));
    return rounded;
  };
  EXPECT_EQ(of({{0, 100}, {0, 100}}, 10), (std::vector<long>{5, 5}));
  EXPECT_EQ(of({{8, 100}, {0, 100}}, 10), (std::vector<long>{1, 9}));
  EXPECT_EQ(of({{30, 100}, {0, 100}}, 10), (std::vector<long>{0, 10}));
  EXPECT_EQ(of({{0, 2}, {0, 100}}, 10), (std::vector<long>{2, 8})) << "no more than wanted";
  EXPECT_EQ(of({{0, 100, 3}, {0, 100, 1}}, 8), (std::vector<long>{6, 2}));
  EXPECT_EQ(of({{5, 1}, {0, 1}}, 10), (std::vector<long>{1, 1}));
  EXPECT_EQ(of({{0, 1e15}, {0, 100}, {0, 100}}, 12), (std::vector<long>{4, 4, 4}));
  EXPECT_TRUE(of({}, 10).empty());
}

// Few are divided in another way than many; those who have too much already change nothing.
TEST(FairShare, FewGetWhatTheyWouldGetAmongMany) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Sharer> few(1 + random() % 9);
    for (Sharer& one : few)
      one = {double(random() % 50), double(random() % 40), 1.0 / double(1 + random() % 4)};
    std::vector<Sharer> many = few;
    many.resize(few.size() + 100, {1e4, 10, 1});
    const double amount = double(random() % 100);
    const std::vector<double> here = level(few, amount), there = level(many, amount);
    for (size_t i = 0; i < few.size(); ++i) ASSERT_NEAR(here[i], there[i], 1e-4) << seed;
  }
}

TEST(FairShare, UsersComeBeforeTheirJobs) {
  UserShare one, other;
  std::vector<WaitingJob> jobs;
  for (JobId id = 1; id <= 31; ++id) jobs.push_back({.job = id, .wanted = 100, .user = &one});
  jobs.push_back({.job = 32, .wanted = 100, .user = &other});
  Grants grants = place({{1, 32, {}, nullptr, nullptr}}, jobs);
  EXPECT_EQ(granted(grants, 32), 16u);
  one = {31, 1};  // it has them all: whatever becomes free goes to the other
  other = {1, 1};
  grants = place({{1, 10, {}, nullptr, nullptr}}, jobs);
  EXPECT_EQ(granted(grants, 32), 10u);
  one = {16, 1};
  other = {16, 1};
  grants = place({{1, 2, {}, nullptr, nullptr}}, jobs);
  EXPECT_EQ(granted(grants, 32), 1u);
}

// A pod that takes a whole node counts as all of the node's slots.
TEST(FairShare, CountsTheDominantResource) {
  Demand whole;
  whole.amounts.cpu_millis = 8000;
  WaitingJob large{.job = 1, .wanted = 9, .demand = &whole, .cost = 8, .share = 8};
  WaitingJob small{.job = 2, .wanted = 99, .share = 16};
  const std::vector<FreeNode> nodes = {{1, 8, {8000, 0, {}}, nullptr, nullptr}};
  EXPECT_EQ(granted(place(nodes, {small, large}), 1), 1u);
  large.share = 16;
  small.share = 8;
  EXPECT_EQ(granted(place(nodes, {small, large}), 2), 8u);
  // What is too little for one goes to the other.
  large.share = 0;
  EXPECT_EQ(granted(place({{1, 3, {3000, 0, {}}, nullptr, nullptr}}, {small, large}), 2), 3u);
}

}  // namespace

}  // namespace muster::core
