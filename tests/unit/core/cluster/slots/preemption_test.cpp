// Preemption: which pods make room for a higher priority, and that none is preempted in vain.
#include "core/cluster/slots/preemption.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace muster::core {

namespace {

uint64_t total(const Grants& grants, JobId job) {
  uint64_t n = 0;
  if (auto it = grants.find(job); it != grants.end())
    for (auto [node, count] : it->second) n += count;
  return n;
}

uint64_t total(const Reservation& places) {
  uint64_t n = 0;
  for (auto [node, count] : places) n += count;
  return n;
}

Demand demand(int32_t priority, int64_t cpu_millis = 0) {
  Demand d;
  d.priority = priority;
  d.amounts.cpu_millis = cpu_millis;
  return d;
}

FreeNode full(NodeId id, uint32_t free = 0, int64_t cpu_millis = 0) {
  return {id, free, {cpu_millis, 0, {}}, nullptr, nullptr};
}

TEST(Preemption, TakesLowestPriorityAndNoMoreThanNeeded) {
  Demand high = demand(10, 2000), low = demand(5, 1000), lowest = demand(0, 1000);
  MadeRoom made =
      Preemption({full(1)}, {{1, 1, 2, &low}, {2, 1, 2, &lowest}}).make_room({9, 1, &high});
  EXPECT_EQ(total(made.victims, 2), 2u) << "two pods of one CPU make room for one of two";
  EXPECT_EQ(total(made.victims, 1), 0u);
  EXPECT_EQ(made.places, (Reservation{{1, 1}}));
  made = Preemption({full(1)}, {{1, 1, 2, &low}}).make_room({9, 1, &lowest});
  EXPECT_TRUE(made.victims.empty() && made.places.empty()) << "never upwards";
  made = Preemption({full(1)}, {{1, 1, 2, &low}}).make_room({9, 1, &low});
  EXPECT_TRUE(made.victims.empty()) << "never among equals";
  made = Preemption({full(1)}, {{2, 1, 1, &lowest}}).make_room({9, 1, &high});
  EXPECT_TRUE(made.victims.empty()) << "it would not help";
}

TEST(Preemption, UsesFreeOrFreeingSlotsFirst) {
  Demand high = demand(10), low = demand(0);
  Preemption preemption({full(1), full(2, 1)}, {{1, 1, 2, &low}});
  MadeRoom made = preemption.make_room({9, 1, &high});
  EXPECT_TRUE(made.victims.empty());
  EXPECT_EQ(made.places, (Reservation{{2, 1}}));
  made = preemption.make_room({8, 1, &high});
  EXPECT_EQ(total(made.victims, 1), 1u) << "the next job finds that place taken";
}

TEST(Preemption, SparesPodsThatHoldNothingNeeded) {
  Demand high = demand(10, 1000), idle = demand(0, 0), busy = demand(1, 1000);
  MadeRoom made =
      Preemption({full(1, 1)}, {{1, 1, 3, &idle}, {2, 1, 2, &busy}}).make_room({9, 1, &high});
  EXPECT_EQ(total(made.victims, 1), 0u) << "lower, but it holds none of what is short";
  EXPECT_EQ(total(made.victims, 2), 1u);
}

TEST(Preemption, TheNodeWithTheLowestVictimsIsTaken) {
  Demand high = demand(10), low = demand(5), lowest = demand(0);
  MadeRoom made = Preemption({full(1), full(2), full(3)},
                             {{1, 1, 1, &low}, {2, 2, 1, &lowest}, {3, 3, 1, &low}})
                      .make_room({9, 2, &high});
  EXPECT_EQ(total(made.victims, 2), 1u);
  EXPECT_EQ(total(made.victims, 1) + total(made.victims, 3), 1u);
}

TEST(Preemption, ClearsPodsAboveSlotCountFirst) {
  Demand high = demand(10), low = demand(0);
  FreeNode node = full(1);
  node.over = 2;
  MadeRoom made = Preemption({node}, {{1, 1, 6, &low}}).make_room({9, 1, &high});
  EXPECT_EQ(total(made.victims, 1), 3u);
}

TEST(Preemption, TakesNobodyForGangThatWouldNotFit) {
  Demand gang = demand(10), high = demand(9), low = demand(0);
  gang.gang = true;
  Preemption preemption({full(1, 1), full(2)}, {{1, 1, 1, &low}, {2, 2, 1, &low}});
  EXPECT_TRUE(preemption.make_room({9, 4, &gang}).victims.empty());
  EXPECT_TRUE(preemption.make_room({9, 4, &gang}).places.empty());
  EXPECT_EQ(total(preemption.make_room({8, 3, &high}).places), 3u) << "nothing of it was kept";
}

TEST(Preemption, RandomCasesTakeNoUnneededVictim) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    std::mt19937_64 random(seed);
    auto pick = [&random](uint64_t n) { return random() % n; };
    std::vector<Demand> demands;
    for (int i = 0; i < 6; ++i) {
      demands.push_back(demand(static_cast<int32_t>(pick(4)), 0));
      if (pick(2)) demands.back().amounts.cpu_millis = static_cast<int64_t>(1 + pick(2000));
      demands.back().gang = pick(4) == 0;
    }
    std::vector<FreeNode> nodes;
    std::vector<Holder> holders;
    for (NodeId id = 1; id <= 1 + pick(4); ++id) {
      nodes.push_back(full(id, static_cast<uint32_t>(pick(2)), static_cast<int64_t>(pick(1500))));
      for (JobId job = 1; job <= 4; ++job)
        if (pick(2))
          holders.push_back({job, id, static_cast<uint32_t>(pick(3)), &demands[job - 1]});
    }
    WaitingJob waiting{9, static_cast<uint32_t>(1 + pick(5)), &demands[5]};
    MadeRoom made = Preemption(nodes, holders).make_room(waiting);
    ASSERT_LE(total(made.places), waiting.wanted) << seed;
    ASSERT_TRUE(!demands[5].gang || made.places.empty() || total(made.places) == waiting.wanted)
        << seed;
    // Without the victims everything fits; with any one of them back, it no longer does.
    auto fits = [&](const Grants& victims) {
      for (FreeNode node : nodes) {
        for (const auto& [job, on] : victims)
          if (auto it = on.find(node.node); it != on.end()) {
            node.free += it->second;
            node.room.add(demands[job - 1].amounts, it->second);
          }
        auto place = made.places.find(node.node);
        uint32_t count = place == made.places.end() ? 0 : place->second;
        if (room_for(node, demands[5], count) < count) return false;
      }
      return true;
    };
    ASSERT_TRUE(fits(made.victims)) << seed;
    for (const auto& [job, on] : made.victims) {
      ASSERT_LT(demands[job - 1].priority, demands[5].priority) << seed;
      for (auto [node, count] : on) {
        auto held = std::find_if(holders.begin(), holders.end(),
                                 [&](const Holder& h) { return h.job == job && h.node == node; });
        ASSERT_TRUE(held != holders.end() && count <= held->slots) << seed;
        Grants without = made.victims;
        --without[job][node];
        ASSERT_TRUE(waiting.wanted > 1 || !fits(without)) << seed;
      }
    }
  }
}

}  // namespace

}  // namespace muster::core
