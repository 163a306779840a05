// Planted faults of who gets what when. They break no rule at any moment, but cost users their
// time: with each of them, a job of a day in simulated time (tests/bench/day) must be late.
#include "core/cluster/slots/slots.hpp"
#include "tests/bench/day/simulation.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <vector>

namespace muster::core {

// Gives access to a private member.
template <auto Member>
struct Shows {
  friend Millis& next_plan_of(Slots& slots) { return slots.*Member; }
};
Millis& next_plan_of(Slots& slots);
template struct Shows<&Slots::next_plan_ms_>;

}  // namespace muster::core

namespace muster::day {
namespace {

struct Scene {
  Site site;
  std::vector<Job> jobs;
  size_t hurried = 0;  // this one of them
  Millis soon_ms = 0;  // ends so long after its arrival
  // The fault: what the scheduler is told of the jobs' users, and what is done to it.
  std::vector<uint32_t> users;
  std::function<void(core::Slots&)> after_round;
};

// A share that counts jobs instead of users: one user has 31 jobs, another has one, which gets half
// of the slots.
Scene share_counts_jobs() {
  Scene scene{{4, 8}, {}, 31, 15'000, {}, {}};
  for (uint32_t i = 0; i < 32; ++i) {
    const bool other = i == scene.hurried;
    scene.jobs.push_back({other ? 2'000 : 0,
                          other ? 2u : 1u,
                          Kind::array,
                          1,
                          std::vector<Millis>(other ? 160 : 200, 1'000),
                          {}});
    scene.users.push_back(i);
  }
  return scene;
}

// A reservation that never moves. A pod that needs a whole node waits where only one long pod runs,
// until the other node, where nobody knew how long the pods would run, turns out to be sooner.
// Another job would take what becomes free there.
Scene reservation_stays() {
  Scene scene{{2, 8}, {}, 2, 20'000, {1, 2, 3, 4}, {}};
  scene.jobs.push_back({0, 1, Kind::whole_node, 8, {120'000}, 120'000});
  scene.jobs.push_back({1'000, 2, Kind::array, 1, {}, 3'600'000});
  for (Millis i = 4; i < 12; ++i) scene.jobs.back().runs_ms.push_back(1'000 * i);
  scene.jobs.push_back({2'000, 3, Kind::whole_node, 8, {1'000}, {}});
  scene.jobs.push_back({3'000, 4, Kind::array, 1, std::vector<Millis>(100, 30'000), {}});
  scene.after_round = [](core::Slots& slots) {
    core::next_plan_of(slots) = slots.awaited() ? std::numeric_limits<Millis>::max() : 0;
  };
  return scene;
}

// When the hurried job is done, after its arrival.
Millis took_ms(const Scene& scene, bool planted) {
  std::vector<Job> told = scene.jobs;
  for (size_t i = 0; planted && i < told.size(); ++i) told[i].user = scene.users[i];
  const auto slots = muster_slots(scene.site, told, planted ? scene.after_round : nullptr);
  const Profile profile{.users = 5, .pace = 24};
  const Outcome outcome = run_day(scene.site, profile, scene.jobs, *slots);
  return outcome.fates[scene.hurried].done_ms - scene.jobs[scene.hurried].arrives_ms;
}

struct Fault {
  const char* name;
  Scene (*scene)();
};
class DayPlantTest : public testing::TestWithParam<Fault> {};

TEST_P(DayPlantTest, PlantedFaultIsNoticed) {
  const Scene scene = GetParam().scene();
  EXPECT_LE(took_ms(scene, false), scene.soon_ms) << "without the fault";
  EXPECT_GT(took_ms(scene, true), scene.soon_ms) << "went unnoticed";
  if (!HasFailure()) std::printf("proof 1 planted faults noticed\n");
}

INSTANTIATE_TEST_SUITE_P(Each, DayPlantTest,
                         testing::Values(Fault{"share_counts_jobs", share_counts_jobs},
                                         Fault{"reservation_stays", reservation_stays}),
                         [](const auto& fault) { return std::string(fault.param.name); });

}  // namespace
}  // namespace muster::day
