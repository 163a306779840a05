// A cluster with standbys: nothing acknowledged is lost, nothing shown is taken back, and planted
// faults of the protocol are noticed.
//
//   MUSTER_SIM_CRASHES=N  plays histories until replicas have crashed N times (default 5,000)
//   MUSTER_SEED=S         plays one history, and tells it
//   MUSTER_SIM_PLANT=P    with this planted fault (tests/sim/standby_plants.hpp)
#include "tests/sim/standby_world.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <unistd.h>

namespace muster::sim::standby {
namespace {

uint64_t number(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// The seed of the history being played.
volatile std::sig_atomic_t playing = 0;

// Called when a failed check of the product ends the process.
void say_what_played(int) {
  char text[80];
  const int size = std::snprintf(text, sizeof text, "replay with: ./dev sim --standbys %lld\n",
                                 static_cast<long long>(playing));
  if (size > 0 && write(STDERR_FILENO, text, static_cast<size_t>(size)) < 0) _exit(1);
}

TEST(StandbyStorm, NothingAcknowledgedIsLost) {
  const uint64_t one = number("MUSTER_SEED", 0);
  const uint64_t crashes = number("MUSTER_SIM_CRASHES", 5'000);
  World::Count all;
  uint64_t histories = 0;
  std::signal(SIGABRT, say_what_played);
  for (uint64_t seed = one != 0 ? one : 1; all.crashes < crashes; ++seed) {
    playing = static_cast<std::sig_atomic_t>(seed);
    Plan plan = plan_of(seed);
    plan.verbose = one != 0;
    if (const char* name = std::getenv("MUSTER_SIM_PLANT"))
      plan.plant = static_cast<Plant>(
          std::find(std::begin(kPlantNames), std::end(kPlantNames), std::string(name)) -
          std::begin(kPlantNames));
    World world(plan);
    world.run();
    ++histories;
    const World::Count count = world.count();
    all.crashes += count.crashes;
    all.faults += count.faults;
    all.acknowledged += count.acknowledged;
    all.read += count.read;
    all.leads += count.leads;
    all.added += count.added;
    all.copies += count.copies;
    all.checkpoints += count.checkpoints;
    all.events += count.events;
    for (const std::string& rule : world.broken()) ADD_FAILURE() << rule;
    if (!world.broken().empty()) {
      ADD_FAILURE() << "replay with: ./dev sim --standbys " << seed;
      break;
    }
    if (one != 0) break;
  }
  const auto n = [](uint64_t count) { return static_cast<unsigned long long>(count); };
  std::printf(
      "%llu histories, %llu crashes of replicas, %llu faults planned, %llu writes acknowledged, "
      "%llu reads answered, %llu leads, %llu times a replica was added, %llu starts on older "
      "copies, %llu checkpoints, %llu events\n",
      n(histories), n(all.crashes), n(all.faults), n(all.acknowledged), n(all.read), n(all.leads),
      n(all.added), n(all.copies), n(all.checkpoints), n(all.events));
  if (!HasFailure())
    std::printf(
        "proof %llu crashes of replicas simulated\nproof %llu answers of a cluster with "
        "standbys checked\n",
        n(all.crashes), n(all.acknowledged + all.read));
}

class StandbyPlant : public testing::TestWithParam<int> {};

TEST_P(StandbyPlant, PlantedFaultIsNoticed) {
  const auto plant = static_cast<Plant>(GetParam());
  const uint64_t seeds_max = plant == Plant::promised_while_taking ? 40'000 : 10'000;
  for (uint64_t seed = 1; seed <= seeds_max; ++seed) {
    if (plant >= kFirstOfEdge && !is_of_edge(seed)) continue;
    Plan plan = plan_of(seed);
    plan.plant = plant;
    // What shows these faults is rare unless two parties are far from each other.
    if (plant == Plant::old_term_applied) {
      plan.replicas = 3;
      plan.far_ms = 450;
      plan.far = {1, 2};
    }
    if (plant == Plant::promised_while_taking) {
      plan.replicas = 2;
      plan.far_ms = 60 + static_cast<Millis>(seed * 7 % 200);
      plan.far = {1, 3};
      plan.isolations = 4'000;
      plan.sleeps = 1;
      plan.sleeps_ms = 800;
    }
    World world(plan);
    world.run();
    if (world.broken().empty()) continue;
    std::printf("noticed in history %llu: %s\nproof 1 planted faults noticed\n",
                static_cast<unsigned long long>(seed), world.broken().front().c_str());
    return;
  }
  FAIL() << kPlantNames[GetParam()] << " went unnoticed in " << seeds_max << " histories";
}

INSTANTIATE_TEST_SUITE_P(Each, StandbyPlant, testing::Range(1, static_cast<int>(Plant::count)),
                         [](const auto& plant) { return std::string(kPlantNames[plant.param]); });

}  // namespace
}  // namespace muster::sim::standby
