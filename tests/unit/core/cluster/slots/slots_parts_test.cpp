// Slots of a large cluster: what looks at all that others hold is done in parts, one in each round,
// and comes to the same as all at once.
#include "tests/unit/core/cluster/slots/play.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace muster::core {
namespace {

constexpr Millis kRoundMs = 5;

// Every round looks at a node or two.
SlotsSettings in_parts() {
  return {.looks_max = 3};
}

// Ten nodes of two slots: eighteen pods of job 1, of priority 5, and two of job 2, of priority 0,
// on the last node.
struct FullCluster : SlotsPlay {
  explicit FullCluster(SlotsSettings settings) : SlotsPlay(settings) {
    for (NodeId id = 1; id <= 9; ++id) node(id, 2);
    job(1, 18, 5);
    round();
    node(10, 2);
    job(2, 2);
    round();
    EXPECT_EQ(running(1) + running(2), 20u);
  }
  // Returns whether all its pods run, after at most so many rounds.
  bool starts(JobId id, uint64_t pods, int rounds = 400) {
    for (int i = 0; i < rounds && running(id) < pods; ++i) round(kRoundMs);
    return running(id) == pods;
  }
};

TEST(SlotsInParts, PodsOfTheLowestPriorityEndFirstWhereverTheyAre) {
  for (const SlotsSettings& settings : {SlotsSettings{}, in_parts()}) {
    FullCluster play(settings);
    play.job(3, 2, 10);
    ASSERT_TRUE(play.starts(3, 2));
    EXPECT_EQ(play.victims(1), 0u);
    EXPECT_EQ(play.victims(2), 2u);
    play.job(4, 1, 10);
    ASSERT_TRUE(play.starts(4, 1));
    EXPECT_EQ(play.victims(1), 1u) << "there is nobody else left";
  }
}

TEST(SlotsInParts, AGangPreemptsWhatItNeedsOnceItFindsEnough) {
  for (const SlotsSettings& settings : {SlotsSettings{}, in_parts()}) {
    FullCluster play(settings);
    play.deaf = true;
    play.job(3, 12, 10, true);
    for (int i = 0; i < 400; ++i) play.round(kRoundMs);
    EXPECT_EQ(play.victims(1) + play.victims(2), 12u) << "and no pod twice";
    const auto victims = play.notified;
    for (const auto& [job, nodes] : victims)
      for (const auto& [node, count] : nodes)
        for (uint32_t pod = 0; pod < count; ++pod) {
          EXPECT_EQ(play.running(3), 0u) << "all of it starts at once";
          play.end(job, node, 1, false);
          for (int i = 0; i < 20; ++i) play.round(kRoundMs);
        }
    EXPECT_TRUE(play.starts(3, 12));
    EXPECT_EQ(play.victims(1) + play.victims(2), 12u);
  }
}

TEST(SlotsInParts, NothingIsPreemptedInVain) {
  for (const SlotsSettings& settings : {SlotsSettings{}, in_parts()}) {
    FullCluster play(settings);
    play.job(3, 21, 10, true);
    play.job(4, 1, 10, false, "1");
    for (int i = 0; i < 400; ++i) play.round(kRoundMs);
    EXPECT_EQ(play.victims(1) + play.victims(2), 0u) << "there are 20 slots, and no CPUs";
    play.job(5, 3, 10, true);
    EXPECT_TRUE(play.starts(5, 3)) << "who waits in vain does not keep others from it";
    EXPECT_EQ(play.victims(1) + play.victims(2), 3u);
  }
}

// The gang is to run where pods are expected to end first: on nodes 4 to 6.
TEST(SlotsInParts, APlanIsTheSame) {
  std::optional<Millis> starts;
  for (const SlotsSettings& settings : {SlotsSettings{}, in_parts()}) {
    SlotsPlay play(settings);
    for (NodeId id = 1; id <= 9; ++id) play.node(id, 2);
    for (JobId id = 1; id <= 9; ++id) {
      play.job(id, 2);
      play.round(kRoundMs);
      const Millis runs_ms = id >= 4 && id <= 6 ? 60'000 : 600'000;
      play.slots.freed(id, {}, {}, {1, runs_ms}, play.now);
    }
    play.job(10, 6, 0, true);
    for (int i = 0; i < 600 && !play.slots.awaited(); ++i) play.round(kRoundMs);
    ASSERT_TRUE(play.slots.awaited());
    EXPECT_EQ(play.slots.awaited()->job, 10u);
    const Millis start_ms = play.slots.awaited()->start_ms;
    EXPECT_EQ(starts.value_or(start_ms), start_ms);
    starts = start_ms;
    for (JobId id = 4; id <= 6; ++id) {
      play.job(20 + id, 1);  // who comes later does not get what is kept
      play.end(id, play.jobs.at(id).runs.begin()->first, 2, false, {}, {});
      play.round(kRoundMs);
    }
    EXPECT_EQ(play.running(10), 6u);
  }
}

// What users hold is counted in parts, too, when there are many jobs.
TEST(SlotsInParts, UseIsOfAllJobs) {
  constexpr JobId kJobs = 3'000;
  SlotsPlay play;
  play.node(1, kJobs);
  for (JobId id = 1; id <= kJobs; ++id) play.job(id, 1, 0, false, "", id % 2 == 0 ? 7 : 8);
  for (int i = 0; i < 10; ++i) play.round(1'000);
  ASSERT_EQ(play.slots.used(1), kJobs);
  const auto& uses = play.slots.uses();
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_NEAR(uses.at(7), uses.at(8), 1e-9);
  EXPECT_GT(uses.at(7), 0);
  double held = 0;
  for (const Slots::Standing& one : play.slots.standings()) held += one.held;
  EXPECT_NEAR(held, 1, 1e-6);
}

// More users than there are places: each decision gives away all that is free, and in the end all
// have as much.
TEST(SlotsInParts, ACrowdSharesWhatIsFreeAsFewDo) {
  constexpr uint32_t kUsers = 200;
  for (const std::string& cpu : {std::string(), std::string("1")}) {
    SlotsPlay play(SlotsSettings{.use_half_life_ms = 0});  // what they had before does not count
    std::map<uint32_t, uint64_t> has;
    for (JobId id = 1; id <= 2 * kUsers; ++id)
      play.job(id, 100, 0, false, cpu, static_cast<uint32_t>(id % kUsers));
    const auto count = [&] {
      has.clear();
      for (JobId id = 1; id <= 2 * kUsers; ++id)
        has[static_cast<uint32_t>(id % kUsers)] += play.running(id);
    };
    for (NodeId node = 1; node <= 60; ++node) {
      play.node(node, 10, 10'000);
      uint64_t granted = 0;
      for (const auto& one : play.round().grants) granted += one.pods;
      EXPECT_EQ(granted, 10u) << node;
      count();
      const auto [least, most] = std::minmax_element(
          has.begin(), has.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
      // With requests, patience gives places to one of them.
      EXPECT_LE(most->second - least->second, cpu.empty() ? 1u : 2u) << node;
    }
    EXPECT_EQ(has.size(), kUsers);
  }
}

}  // namespace
}  // namespace muster::core
