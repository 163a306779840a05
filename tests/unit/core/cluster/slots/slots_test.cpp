// Slots over time: nothing is granted twice, room goes to the job it was made for, and no job
// starves.
#include "core/cluster/slots/slots.hpp"

#include "core/cluster/slots/prefetch.hpp"
#include "tests/unit/core/cluster/slots/play.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

namespace muster::core {

namespace {

using Play = SlotsPlay;

TEST(Slots, JobWithoutDemandOrSlotsIsForgotten) {
  Play play;
  play.node(1, 2);
  play.job(1, 2);
  play.round();
  EXPECT_EQ(play.running(1), 2u);
  EXPECT_TRUE(play.slots.knows(1));
  play.end(1, 1, 2, false);
  EXPECT_FALSE(play.slots.knows(1));
  EXPECT_EQ(play.slots.used(1), 0u);
  play.job(2, 1);
  play.jobs.at(2).pending = 0;
  play.want(2);
  EXPECT_FALSE(play.slots.knows(2));
}

TEST(Slots, P15AJobKeepsAwayFromANodeThatCouldNotStartItsPods) {
  Play play;
  play.node(1, 1);
  play.node(2, 2);
  play.job(1, 1);
  play.round();
  ASSERT_EQ(play.jobs.at(1).runs, (std::map<NodeId, uint32_t>{{1, 1}}));
  play.slots.avoid(1, {1}, play.now);
  play.end(1, 1, 1, false, std::nullopt);
  EXPECT_TRUE(play.slots.knows(1)) << "or it would be forgotten between an end and its replacement";
  play.jobs.at(1).pending = 3;
  play.want(1);
  EXPECT_TRUE(play.round().nowhere.empty());
  EXPECT_EQ(play.jobs.at(1).runs, (std::map<NodeId, uint32_t>{{2, 2}})) << "the rest waits";
  play.job(2, 1);
  play.round();
  EXPECT_EQ(play.jobs.at(2).runs, (std::map<NodeId, uint32_t>{{1, 1}})) << "others may use it";
  play.end(2, 1, 1, false);
  play.round(Slots::kAvoidMs);
  EXPECT_EQ(play.jobs.at(1).runs, (std::map<NodeId, uint32_t>{{1, 1}, {2, 2}})) << "not forever";
}

TEST(Slots, P15AJobThatWouldHaveToAvoidEveryNodeIsToldSo) {
  Play play;
  play.node(1, 2);
  play.node(2, 2, 500);
  play.job(1, 1, 0, false, "1");  // neither has that much
  play.job(2, 2, 0, false, "100m");
  play.round();
  EXPECT_EQ(play.running(2), 2u);
  play.slots.avoid(2, {2}, play.now);
  play.end(2, 2, 2, true, std::nullopt);
  const Slots::Round round = play.round();
  Millis tried = play.now;
  EXPECT_EQ(round.nowhere, std::vector<JobId>{2}) << "node 1 has no CPUs";
  EXPECT_EQ(play.running(2), 2u) << "it may use the node again";
  EXPECT_TRUE(play.round().nowhere.empty());
  for (int i = 0; i < 3; ++i) {
    play.slots.avoid(2, {2}, play.now);
    play.end(2, 2, 2, true, std::nullopt);
    const Slots::Round again = play.round();
    EXPECT_EQ(again.nowhere, std::vector<JobId>{2}) << "so that nobody blames the node";
    EXPECT_EQ(play.running(2), 0u) << "not so soon";
    ASSERT_TRUE(again.again_ms);
    EXPECT_LE(play.now + *again.again_ms, tried + Slots::kNowhereAgainMs);
    EXPECT_TRUE(play.round(tried + Slots::kNowhereAgainMs - 1 - play.now).nowhere.empty());
    EXPECT_EQ(play.running(2), 0u);
    play.round(1);
    EXPECT_EQ(play.running(2), 2u);
    tried = play.now;
  }
}

TEST(Slots, SlotsHeldAtStartAreNotFree) {
  Play play;
  play.node(1, 2);
  play.job(1, 0);
  play.slots.hold(1, play.jobs.at(1).object, {{1, 2}, {77, 1}});
  play.jobs.at(1).runs[1] = 2;
  play.job(2, 1);
  play.round();
  EXPECT_EQ(play.running(2), 0u);
  play.end(1, 1, 2, false);
  play.round();
  EXPECT_EQ(play.running(2), 1u);
}

TEST(Slots, AUserHasNoMorePodsOnNodesThanAllowed) {
  Play play(3);
  play.node(1, 20, 4000);
  play.job(1, 5, 0, false, "64", 1001);  // fits nowhere, and takes nothing from the others
  play.job(2, 5, 0, false, "", 1001);
  play.job(3, 5, 9, false, "", 1001);
  play.job(4, 2, 0, false, "", 1002);
  play.job(5, 5);  // without an owner
  play.round();
  EXPECT_EQ(play.running(1), 0u);
  EXPECT_EQ(play.running(2), 0u);
  EXPECT_EQ(play.running(3), 3u) << "its higher priority goes first";
  EXPECT_EQ(play.running(4), 2u);
  EXPECT_EQ(play.running(5), 5u);
  EXPECT_FALSE(play.slots.may_keep(3)) << "its user's other job waits, too";
  play.end(3, 1, 2, false);
  play.round();
  EXPECT_EQ(play.running(2) + play.running(3), 3u);
  EXPECT_EQ(play.victims(4) + play.victims(5), 0u) << "nobody else gives way for it";
}

TEST(Slots, AGangWaitsUntilItsUserMayHaveAllOfIt) {
  Play play(4);
  play.node(1, 10);
  play.job(1, 2, 0, false, "", 1001);
  play.round();
  play.job(2, 3, 0, true, "", 1001);
  play.job(3, 5, 0, true, "", 1002);  // more than any user may have
  play.round(Slots::kPatienceMs + 1);
  EXPECT_EQ(play.running(2) + play.running(3), 0u);
  play.job(4, 8);
  play.round();
  EXPECT_EQ(play.running(4), 8u) << "nothing is kept free for them";
  play.end(4, 1, 8, false);
  play.end(1, 1, 1, false);
  play.round();
  EXPECT_EQ(play.running(2), 3u);
}

TEST(Slots, PreemptionFreesNoMoreThanUserLimit) {
  Play play(5);
  play.node(1, 60);
  play.job(1, 60);
  play.round();
  for (JobId id = 2; id < 20; ++id) play.job(id, 5, 9, false, "", 1001);
  play.round();
  EXPECT_EQ(play.victims(1), 5u);
}

// A reservation does not hold up others while its job's user may have no more pods.
TEST(Slots, ReservationIsSkippedWhileUserIsAtLimit) {
  Play play(4);
  play.deaf = true;
  play.node(1, 4, 4000);
  play.job(1, 4, 0, false, "1");
  play.round();
  play.job(2, 4, 0, true, "", 1001);
  play.round(Slots::kPatienceMs + 1);  // gets the reservation
  play.round();
  play.job(3, 1, 9, false, "", 1001);
  play.end(1, 1, 1, false);
  play.round();
  EXPECT_EQ(play.running(3), 1u);
  play.job(4, 3, 0, true);
  play.round();
  play.round(Slots::kPatienceMs + 1);
  play.job(5, 3);
  play.end(1, 1, 1, false);
  play.round();
  EXPECT_EQ(play.running(5), 0u) << "it is kept for the gang";
  play.end(1, 1, 2, false);
  play.round();
  EXPECT_EQ(play.running(4), 3u);
}

// The limit was higher before the restart.
TEST(Slots, JobAboveUserLimitKeepsNoSlot) {
  Play play(2);
  play.node(1, 10);
  play.job(1, 5, 0, false, "", 1001);
  play.slots.hold(1, play.jobs.at(1).object, {{1, 4}});
  play.jobs.at(1).runs[1] = 4;
  play.round();
  EXPECT_FALSE(play.slots.may_keep(1));
  play.end(1, 1, 2, false);
  play.round();
  EXPECT_TRUE(play.slots.may_keep(1));
  EXPECT_EQ(play.running(1), 2u);
  play.end(1, 1, 1, false);
  play.round();
  EXPECT_EQ(play.running(1), 2u);
}

TEST(Slots, RemovedNodeHoldsNoSlots) {
  Play play;
  play.node(1, 2);
  play.job(1, 2);
  play.round();
  play.slots.remove_node(1);
  EXPECT_FALSE(play.slots.knows(1));
  play.slots.freed(1, {{1, 2}}, {}, {}, play.now);  // too late: no effect
  play.node(2, 1);
  play.job(2, 1);
  play.round();
  EXPECT_EQ(play.running(2), 1u);
}

TEST(Slots, PreemptedSlotsGoToPreemptor) {
  Play play;
  play.node(1, 4, 4000);
  play.job(1, 100, 0, false, "1");
  play.round();
  ASSERT_EQ(play.running(1), 4u);
  play.job(2, 1, 10, false, "3");
  play.deaf = true;
  play.round();
  EXPECT_EQ(play.victims(1), 3u);
  for (int i = 0; i < 3; ++i) {  // its victims end one by one and wait for slots again
    play.round();
    play.end(1, 1, 1, true);
    play.round();
    EXPECT_EQ(play.running(1), 3u - static_cast<unsigned>(i));
  }
  play.round();
  EXPECT_EQ(play.running(2), 1u);
  EXPECT_EQ(play.running(1), 1u);
  EXPECT_EQ(play.victims(1), 3u) << "no pod was preempted twice for one need";
}

TEST(Slots, HigherPriorityGangGetsAllPreemptedSlots) {
  Play play;
  play.node(1, 2);
  play.node(2, 2);
  play.job(1, 100);
  play.round();
  play.job(2, 3, 10, true);
  play.deaf = true;
  play.round();
  ASSERT_EQ(play.victims(1), 3u);
  for (auto [node, count] : play.notified[1])
    for (uint32_t i = 0; i < count; ++i) {
      play.end(1, node, 1, true);
      play.round();
    }
  EXPECT_EQ(play.running(2), 3u);
  EXPECT_EQ(play.victims(1), 3u);
}

TEST(Slots, PreemptionPolicyNeverWaitsInsteadOfPreempting) {
  Play play;
  play.node(1, 1);
  play.job(1, 2);
  play.round();
  play.job(2, 1, 10);
  auto patient = std::make_shared<JobObject>(*play.jobs.at(2).object);
  patient->spec.pod.kept = R"({"spec":{"preemptionPolicy":"Never"}})";
  play.jobs.at(2).object = patient;
  play.want(2);
  play.round();
  EXPECT_EQ(play.victims(1), 0u);
  play.end(1, 1, 1, false);
  play.round();
  EXPECT_EQ(play.running(2), 1u) << "but it goes first";
}

TEST(Slots, JobThatCannotPreemptBlocksNobody) {
  Play play;
  play.node(1, 1, 1000);
  play.job(1, 2);
  play.round();
  play.job(2, 1, 10, false, "64");
  play.job(3, 1, 5);
  play.round();
  play.round();
  EXPECT_EQ(play.victims(1), 1u);
  EXPECT_EQ(play.running(3), 1u);
}

TEST(Slots, AGangDoesNotStarveBehindSmallJobs) {
  Play play;
  play.node(1, 4);
  play.node(2, 4);
  play.job(1, 1'000'000);
  play.round();
  play.job(2, 8, 0, true);
  Millis began = play.now;
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000 && play.running(2) == 0; ++i) {  // one pod ends at a time
    NodeId node = static_cast<NodeId>(1 + random() % 2);
    if (play.jobs.at(1).runs.contains(node)) play.end(1, node, 1, true);
    play.round();
  }
  EXPECT_EQ(play.running(2), 8u);
  EXPECT_GE(play.now - began, Slots::kPatienceMs) << "the small ones had their chance";
}

TEST(Slots, OneGangAtATimeHasAReservation) {
  Play play;
  play.node(1, 4);
  play.job(1, 1'000'000);
  play.round();
  play.job(2, 3, 0, true);
  play.job(3, 3, 0, true);
  play.job(4, 5, 0, true);  // never fits
  for (int i = 0; i < 3000 && play.running(2) + play.running(3) < 6; ++i) {
    for (JobId id : {2, 3})
      if (play.running(id) == 3) play.end(id, 1, 3, false);
    if (play.jobs.at(1).runs.contains(1)) play.end(1, 1, 1, true);
    play.round();
    if (play.jobs.at(2).pending == 0 && play.jobs.at(3).pending == 0) break;
  }
  EXPECT_EQ(play.jobs.at(2).pending, 0u);
  EXPECT_EQ(play.jobs.at(3).pending, 0u);
  EXPECT_EQ(play.running(4), 0u);
}

// What it has is half of the cluster: nothing is kept idle for more.
TEST(Slots, AJobWithItsShareGetsNoReservation) {
  Play play;
  play.node(1, 8, 8000);
  play.node(2, 8, 8000);
  play.job(1, 1, 0, false, "8");
  play.round();
  play.job(2, 100, 0, false, "1");
  play.round();
  ASSERT_EQ(play.running(2), 8u);
  play.jobs.at(1).pending = 1;
  play.want(1);
  play.round();
  play.round(Slots::kPatienceMs);
  play.round(Slots::kPatienceMs);
  EXPECT_FALSE(play.slots.awaited());
  play.job(3, 1, 0, false, "8");
  play.round();
  play.round(Slots::kPatienceMs);
  ASSERT_TRUE(play.slots.awaited());
  EXPECT_EQ(play.slots.awaited()->job, 3u) << "it has nothing";
}

TEST(Slots, UsersWhoAreGoneHaveNoShare) {
  Play play;
  for (NodeId id = 1; id <= 4; ++id) play.node(id, 8, 8000);
  for (JobId id = 10; id < 60; ++id) {
    play.job(id, 1, 0, false, "", static_cast<uint32_t>(id));
    play.round();
    play.end(id, play.jobs.at(id).runs.begin()->first, 1, false, std::nullopt);
  }
  play.job(1, 1, 0, false, "8", 1001);
  play.round();
  play.job(2, 100, 0, false, "1", 1002);
  play.round();
  ASSERT_EQ(play.running(2), 24u);
  play.jobs.at(1).pending = 1;
  play.want(1);
  play.round();
  play.round(Slots::kPatienceMs);
  ASSERT_TRUE(play.slots.awaited()) << "it has a quarter, not half";
  EXPECT_EQ(play.slots.awaited()->job, 1u);
}

// Patience must not move what preemption has made room for: other pods would be preempted again.
TEST(Slots, RoomMadeByPreemptionStaysWhereItIs) {
  Play play;
  play.deaf = true;
  play.node(1, 4);
  play.job(1, 4);
  play.round();
  play.node(2, 4);
  play.job(2, 100);
  play.round();
  play.end(2, 2, 1, true, std::nullopt, 20'000);  // its pods are expected to end soon
  play.round();
  play.job(3, 4, 10, true);
  play.round();
  const NodeId there = play.notified.begin()->second.begin()->first;
  const JobId victim = play.notified.begin()->first;
  ASSERT_EQ(play.victims(victim), 4u);
  for (int i = 0; i < 4; ++i) {
    play.round(Slots::kPatienceMs);
    play.end(victim, there, 1, true, std::nullopt);
    play.round();
  }
  EXPECT_EQ(play.running(3), 4u);
  EXPECT_EQ(play.victims(1) + play.victims(2), 4u);
}

TEST(Slots, APrefetchedPodHoldsNothing) {
  Play play;
  play.node(1, 4);
  play.job(1, 100, 0, false, "", 1001);
  play.round();
  play.end(1, 1, 4, true, Millis{10});
  play.round(10);
  ASSERT_GT(play.slots.used(1), 8u);
  play.slots.note_use(play.now + 2'000);
  ASSERT_EQ(play.slots.standings().size(), 1u);
  EXPECT_DOUBLE_EQ(play.slots.standings()[0].held, 1);
}

TEST(Slots, PrefetchOnlyForPlainJobsOfTheHighestPriority) {
  auto ahead = [](int32_t other, bool gang, const std::string& cpu) {
    Play play;
    play.node(1, 4, 100'000);
    play.job(1, 100, 0, gang, cpu);
    if (gang) play.jobs.at(1).pending = 4;
    play.want(1);
    play.round();
    if (other != 0) {
      play.job(2, 1, other, false, "1000");  // no node can ever satisfy it
      play.round();
    }
    for (int i = 0; i < 4; ++i) play.end(1, 1, 1, true);
    play.round(10);
    return play.slots.used(1);
  };
  EXPECT_EQ(ahead(0, false, ""), 8u);
  EXPECT_EQ(ahead(0, true, ""), 4u);
  EXPECT_EQ(ahead(0, false, "1"), 4u);
  EXPECT_EQ(ahead(5, false, ""), 4u);
}

// Long pods that end together, or returned pods, do not predict short ones: prefetched pods would
// wait here while another node is idle.
TEST(Slots, PrefetchOnlyAfterShortPods) {
  auto ahead = [](std::optional<Millis> quick_ms) {
    Play play;
    play.node(1, 4);
    play.job(1, 100);
    play.round();
    play.end(1, 1, 4, true, quick_ms);
    play.round(10);
    return play.slots.used(1);
  };
  EXPECT_EQ(ahead(kPrefetchSpanMs), 8u);
  EXPECT_EQ(ahead(kPrefetchSpanMs / 5), 4u + 20u) << "as many as will end";
  EXPECT_EQ(ahead(0), 4u + 4u * kPrefetchPerEnd) << "no more, before more have ended";
  EXPECT_EQ(ahead(std::nullopt), 4u);
}

// However much is lacking, one decision stays short, and the next ones fill the rest.
TEST(Slots, ARoundPrefetchesOnlySoMuch) {
  Play play;
  for (const NodeId id : {1u, 2u, 3u}) play.node(id, 50);
  play.job(1, 10'000);
  play.round();
  for (const NodeId id : {1u, 2u, 3u}) play.end(1, id, 10 * id, true, Millis{0});
  auto ahead = [&play](NodeId id) { return play.slots.used(id) - 50; };
  EXPECT_EQ(play.round(1).again_ms, 1);
  EXPECT_EQ(ahead(3), 30 * kPrefetchPerEnd) << "the node that lacks most comes first";
  EXPECT_EQ(ahead(2), kPrefetchPerRound - ahead(3));
  EXPECT_EQ(ahead(1), 0u);
  EXPECT_EQ(play.round(1).again_ms, std::nullopt);
  for (const NodeId id : {1u, 2u, 3u}) EXPECT_EQ(ahead(id), 10 * id * kPrefetchPerEnd);
}

// Random histories: jobs of all kinds arrive, run and end. No node ever holds more than it has, and
// once no more jobs arrive, all of them finish. (Rounds are too far apart for prefetch.)
TEST(Slots, RandomHistoriesFinishAndNeverOverAllocate) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    auto pick = [&random](uint64_t n) { return random() % n; };
    const auto limit = static_cast<uint32_t>(seed % 2 == 0 ? 0 : 2 + pick(6));
    Play play(limit);
    play.deaf = true;
    uint32_t all_slots = 0;
    for (NodeId id = 1; id <= 2 + pick(3); ++id) {
      uint32_t count = static_cast<uint32_t>(2 + pick(4));
      play.node(id, count, 4000);
      all_slots += count;
    }
    JobId last = 0;
    for (int step = 0; step < 20'000; ++step) {
      if (last < 12 && pick(20) == 0) {
        bool gang = pick(4) == 0;
        const uint32_t largest_gang = limit == 0 ? all_slots : std::min(limit, all_slots);
        uint32_t pods = static_cast<uint32_t>(1 + pick(gang ? largest_gang : 30));
        ++last;
        play.job(last, pods, static_cast<int32_t>(pick(3)), gang,
                 !gang && pick(3) == 0 ? std::to_string(1 + pick(4)) : "",
                 static_cast<uint32_t>(last % 3));
      }
      // Preempted pods end sooner or later; otherwise a random pod ends.
      for (auto& [id, on] : play.notified)
        for (auto& [node, count] : on) {
          auto runs = play.jobs.at(id).runs.find(node);
          count = std::min(count, runs == play.jobs.at(id).runs.end() ? 0 : runs->second);
          if (count > 0 && pick(4) == 0) {
            --count;
            play.end(id, node, 1, true);
          }
        }
      for (auto& [id, job] : play.jobs)
        if (!job.runs.empty() && pick(10) == 0) play.end(id, job.runs.begin()->first, 1, false);
      play.round(kPrefetchSpanMs + 10 + static_cast<Millis>(pick(500)));
      bool done = last == 12;
      std::map<NodeId, std::pair<uint32_t, int64_t>> on;
      std::map<JobId, uint64_t> of_user;
      for (const auto& [id, job] : play.jobs) {
        Demand demand = demand_of(*job.object);
        for (auto [node, count] : job.runs) {
          on[node].first += count;
          on[node].second += count * demand.amounts.cpu_millis;
          of_user[id % 3] += count;
        }
        done &= job.pending == 0 && job.runs.empty();
      }
      for (auto [node, held] : on) {
        ASSERT_EQ(held.first, play.slots.used(node));
        ASSERT_LE(held.first, play.nodes.at(node).slots);
        ASSERT_LE(held.second, 4000);
      }
      for (const auto& [user, pods] : of_user)
        ASSERT_LE(pods, limit == 0 ? all_slots : limit) << user;
      if (done) break;
      ASSERT_LT(step, 19'999) << "somebody waits for ever";
    }
    for (const auto& [id, job] : play.jobs) ASSERT_FALSE(play.slots.knows(id));
  }
}

// Jobs whose pods run for a known time, on a clock that goes from one end to the next.
struct Day {
  struct Running {
    JobId job;
    NodeId node;
    Millis since;
  };
  Play play;
  std::map<JobId, Millis> runs_ms;
  std::map<JobId, Millis> slow_ms;  // of every fifth pod, if it differs
  uint32_t started = 0;
  std::multimap<Millis, Running> running;  // by end
  std::map<JobId, Millis> first;           // when the job's first pod started
  std::map<JobId, double> slot_ms;         // that its pods had, a whole node as all its slots
  std::map<JobId, uint32_t> size;          // of a pod, in slots
  const uint32_t slots;                    // of each node
  // Short pods are prefetched, and wait on their node for one of its slots.
  bool prefetches = false;
  std::map<NodeId, uint32_t> busy;  // slots
  std::map<NodeId, std::deque<JobId>> parked;

  Day(NodeId nodes, uint32_t slots_of_each, uint64_t cpu_millis = 0) : slots(slots_of_each) {
    for (NodeId id = 1; id <= nodes; ++id) play.node(id, slots, cpu_millis);
  }

  void job(JobId id, uint32_t pods, Millis ms, std::optional<uint32_t> owner = {},
           bool gang = false, const std::string& cpu = "") {
    runs_ms[id] = ms;
    size[id] = cpu.empty() ? 1 : static_cast<uint32_t>(std::stoul(cpu));
    play.job(id, pods, 0, gang, cpu, owner);
  }
  void start(JobId id, NodeId node) {
    first.try_emplace(id, play.now);
    const bool slow = slow_ms.contains(id) && ++started % 5 == 0;
    running.emplace(play.now + (slow ? slow_ms : runs_ms).at(id), Running{id, node, play.now});
    ++busy[node];
  }
  // A job that always has more pods (`again`) is never done.
  void run(Millis span, bool again) {
    const Millis end = play.now + span;
    while (play.now < end) {
      std::map<JobId, std::map<NodeId, uint32_t>> before;
      for (const auto& [id, job] : play.jobs) before[id] = job.runs;
      const Slots::Round round = play.round(0);
      for (const auto& [id, job] : play.jobs)
        for (auto [node, count] : job.runs)
          for (uint32_t i = before[id][node]; i < count; ++i) {
            if (busy[node] < slots)
              start(id, node);
            else
              parked[node].push_back(id);
          }
      Millis next = std::min(end, play.now + round.again_ms.value_or(end));
      if (!running.empty()) next = std::min(next, running.begin()->first);
      for (const auto& [at, one] : running)
        slot_ms[one.job] += static_cast<double>((next - play.now) * size.at(one.job));
      play.now = next;
      while (!running.empty() && running.begin()->first <= play.now) {
        const Running one = running.begin()->second;
        running.erase(running.begin());
        const Millis ran_ms = play.now - one.since;
        const bool quick = prefetches && ran_ms < kPrefetchSpanMs;
        play.end(one.job, one.node, 1, again, quick ? std::optional(ran_ms) : std::nullopt, ran_ms);
        --busy[one.node];
        auto& waiting = parked[one.node];
        if (waiting.empty() || busy[one.node] >= slots) continue;
        start(waiting.front(), one.node);
        waiting.pop_front();
      }
    }
  }
  double part(const std::vector<JobId>& jobs) const {
    double all = 0, these = 0;
    for (const auto& [id, ms] : slot_ms) all += ms;
    for (const JobId id : jobs) these += slot_ms.contains(id) ? slot_ms.at(id) : 0;
    return these / all;
  }
};

TEST(Day, OneJobOfOneUserGetsAsMuchAsManyJobsOfAnother) {
  Day day(4, 8);
  for (JobId id = 1; id <= 31; ++id) day.job(id, 1000, 1000 + static_cast<Millis>(id), 1001);
  day.run(5'000, true);
  day.job(32, 1000, 1000, 1002);
  day.run(2'000, true);
  day.slot_ms.clear();
  day.run(60'000, true);
  EXPECT_NEAR(day.part({32}), 0.5, 0.03);
}

TEST(Day, AGangStartsWithinSecondsAmongShortPods) {
  Day day(4, 8);
  day.job(1, 10, 3'600'000);  // ten slots are taken for an hour
  day.run(1'000, true);
  day.job(2, 100'000, 200);
  day.run(10'000, true);
  day.job(3, 12, 60'000, {}, true);
  const Millis asked = day.play.now;
  day.run(10'000, true);
  ASSERT_TRUE(day.first.contains(3));
  EXPECT_LE(day.first.at(3) - asked, Slots::kPatienceMs + 500);
}

// Where pods are so short that others wait for their slots on the nodes, all nodes look alike, and
// as if the next one were about to be free.
TEST(Day, LargeDemandsStartWithinSecondsAmongPrefetchedPods) {
  struct Case {
    NodeId nodes;
    uint32_t pods;
    bool gang;
    const char* cpu;
  };
  for (const Millis runs_ms : {50, 200, 400})
    for (const Case& one : {Case{2, 1, false, "1"}, Case{4, 1, false, "1"}, Case{4, 1, false, "8"},
                            Case{4, 12, true, ""}, Case{4, 32, true, ""}, Case{4, 4, true, "2"}}) {
      SCOPED_TRACE(std::to_string(runs_ms) + " ms, " + std::to_string(one.nodes) + " nodes, " +
                   std::to_string(one.pods) + " pods of " + one.cpu);
      Day day(one.nodes, 8, 8000);
      day.prefetches = true;
      day.job(1, 100'000, runs_ms, 1001);
      day.run(3'000, true);
      day.job(2, one.pods, 60'000, 1002, one.gang, one.cpu);
      const Millis asked = day.play.now;
      day.run(10'000, true);
      ASSERT_TRUE(day.first.contains(2));
      EXPECT_LE(day.first.at(2) - asked, Slots::kPatienceMs + 3'000);
    }
}

TEST(Day, PodsOfAWholeNodeGetHalfBesideSmallOnes) {
  Day day(4, 8, 8000);
  day.job(1, 100'000, 700);
  day.run(5'000, true);
  day.job(2, 8, 20'000, {}, false, "8");
  day.run(10'000, true);
  day.slot_ms.clear();
  day.run(600'000, true);
  EXPECT_NEAR(day.part({2}), 0.5, 0.05);
}

// The gang's slots are kept for it until long pods end; pods that end before that use them.
TEST(Day, ShortPodsFlowAroundAReservation) {
  Day day(4, 8);
  day.job(1, 30, 600'000);
  day.run(10, true);
  day.job(2, 100'000, 1'000);
  day.run(300'000, true);
  day.job(3, 32, 60'000, {}, true);
  day.slot_ms.clear();
  const Millis asked = day.play.now;
  day.run(290'000, true);
  EXPECT_GE(day.part({2}) * 32, 1.8) << "of the two slots that long pods left";
  day.run(60'000, false);
  ASSERT_TRUE(day.first.contains(3));
  EXPECT_LE(day.first.at(3) - asked, 302'000);
}

// Pods that run much longer than the average look overdue, and put off what is expected; what is
// lent is not put off with it.
TEST(Day, AGangDoesNotWaitForWhatIsLentAgainAndAgain) {
  Day day(4, 8);
  day.job(1, 100'000, 1'000);
  day.slow_ms[1] = 10'000;
  day.run(60'000, true);
  day.job(2, 32, 60'000, {}, true);
  const Millis asked = day.play.now;
  day.run(30'000, true);
  ASSERT_TRUE(day.first.contains(2));
  EXPECT_LE(day.first.at(2) - asked, 15'000);
}

// For how long a gang keeps its reservation behind pods that do not end. `limit`: theirs.
Millis kept_for(std::optional<Millis> limit) {
  SlotsPlay play;
  play.node(1, 4);
  play.job(1, 4);
  auto object = std::make_shared<JobObject>(*play.jobs[1].object);
  if (limit) object->spec.pod.active_deadline_s = *limit / 1'000;
  play.jobs[1].object = object;
  play.want(1);
  play.round();
  play.job(2, 4, 0, true);
  play.round();
  play.round(Slots::kPatienceMs);
  const Millis since = play.now;
  EXPECT_TRUE(play.slots.awaited());
  while (play.slots.awaited() && play.now - since < 24 * 3'600'000) play.round(60'000);
  return play.now - since;
}

// As long as the plan is met, it holds.
TEST(Slots, AReservationIsGivenUpOnceItsPlanIsAnHourLate) {
  constexpr Millis kHour = 3'600'000, kStep = 60'000;
  EXPECT_NEAR(double(kept_for({})), kHour, 2 * kStep) << "nothing is known of the pods";
  EXPECT_NEAR(double(kept_for(kHour / 2)), 1.5 * kHour, 2 * kStep);
  EXPECT_NEAR(double(kept_for(5 * kHour)), 6 * kHour, 2 * kStep);
}

TEST(Day, WhoHasHadMoreGetsLess) {
  Day day(1, 32);
  day.play.slots.restore_use(1001, 0.5, 0);  // exactly a fair share of two
  day.job(1, 1000, 1000, 1001);
  day.job(2, 1000, 1000, 1002);
  day.run(60'000, true);
  EXPECT_NEAR(day.part({1}), 1.0 / 3, 0.03) << "half the weight of the other";
  day.play.jobs.at(2).pending = 0;
  day.run(10'000, false);
  day.slot_ms.clear();
  day.play.jobs.at(1).pending = 1000;
  day.play.want(1);
  day.run(10'000, true);
  EXPECT_DOUBLE_EQ(day.part({1}), 1) << "nothing is kept from who is alone";
}

TEST(Slots, NoExecuteTaintEvictsPodsThatDoNotTolerateIt) {
  Play play;
  play.node(1, 4);
  play.job(1, 2);
  play.job(2, 1);
  auto tolerant = std::make_shared<JobObject>(*play.jobs[2].object);
  tolerant->spec.pod.tolerations.push_back({"gpu", "Exists", "", "NoExecute", 5});
  play.jobs[2].object = tolerant;
  play.want(2);
  Slots::Round round = play.slots.place(play.now);
  EXPECT_EQ(round.grants.size(), 2u);
  for (const Slots::Granted& granted : round.grants) play.receive(granted);
  NodeInfo node = play.nodes[1];
  node.spec.taints = {{"gpu", "broken", "NoExecute"}};
  play.slots.set_node(node);
  round = play.slots.place(play.now += 10);
  EXPECT_EQ(round.tainted, (std::map<JobId, std::vector<NodeId>>{{1, {1}}}));
  EXPECT_GT(round.again_ms.value_or(0), 0);
  round = play.slots.place(play.now += 10);
  EXPECT_TRUE(round.tainted.empty()) << "it was told just now";
  round = play.slots.place(play.now += 5000);
  EXPECT_EQ(round.tainted.size(), 2u) << "the toleration of the other is over, too";
  node.spec.taints.clear();
  play.slots.set_node(node);
  EXPECT_TRUE(play.slots.place(play.now += 5000).tainted.empty());
}

}  // namespace

}  // namespace muster::core
