// Storms: many jobs of every kind under every fault, and planted faults that the judge must notice.
//
//   MUSTER_SIM_CRASHES=N  plays histories until the coordinator has crashed N times (default 1,500)
//   MUSTER_SIM_JOBS=J     jobs in each history (default: chosen by the seed)
//   MUSTER_SIM_SHARD=I/N  plays every N-th history, from the I-th on
//   MUSTER_SEED=S         plays one history
//   MUSTER_SIM_WITHOUT=A,B  without these faults (tests/sim/storm.cpp lists them)
#include "tests/sim/storm.hpp"

#include "base/log.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::sim {
namespace {

uint64_t number(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

Storm storm_of(uint64_t seed) {
  Storm storm;
  storm.seed = seed;
  storm.jobs = static_cast<int>(number("MUSTER_SIM_JOBS", 0));
  std::istringstream without(std::getenv("MUSTER_SIM_WITHOUT") ? std::getenv("MUSTER_SIM_WITHOUT")
                                                               : "");
  for (std::string fault; std::getline(without, fault, ',');) storm.without.push_back(fault);
  return storm;
}

// The command that replays it.
std::string command_of(const Storm& storm) {
  std::string text = "./dev sim " + std::to_string(storm.seed);
  if (storm.jobs > 0) text += " --jobs " + std::to_string(storm.jobs);
  if (!storm.without.empty()) text += " --without ";
  for (size_t i = 0; i < storm.without.size(); ++i) text += (i > 0 ? "," : "") + storm.without[i];
  return text;
}

// The seed of the history being played.
volatile std::sig_atomic_t playing = 0;

// Called when a failed check of the product ends the process.
void say_what_played(int) {
  char text[80];
  const int size = std::snprintf(text, sizeof text, "replay with: ./dev sim %lld\n",
                                 static_cast<long long>(playing));
  if (size > 0 && write(STDERR_FILENO, text, static_cast<size_t>(size)) < 0) _exit(1);
}

class StormTest : public testing::Test {
 protected:
  void SetUp() override { spdlog::set_level(spdlog::level::off); }
};

void add(World::Count& to, const World::Count& count) {
  to.crashes += count.crashes;
  to.faults += count.faults;
  to.starts += count.starts;
  to.ends += count.ends;
  to.commits += count.commits;
  for (const auto& [point, times] : count.points) to.points[point] += times;
}

TEST_F(StormTest, InvariantsHoldUnderCrashesAndFaults) {
  const uint64_t one = number("MUSTER_SEED", 0), crashes = number("MUSTER_SIM_CRASHES", 1'500);
  uint64_t shard = 0, shards = 1;
  if (const char* text = std::getenv("MUSTER_SIM_SHARD"); text && *text) {
    char slash = 0;
    std::istringstream in(text);
    in >> shard >> slash >> shards;
    ASSERT_TRUE(in && slash == '/' && shards > 0 && shard < shards) << "MUSTER_SIM_SHARD: I/N";
  }
  std::signal(SIGABRT, say_what_played);
  World::Count all;
  uint64_t histories = 0, jobs = 0;
  for (uint64_t seed = one != 0 ? one : 1 + shard; all.crashes < crashes; seed += shards) {
    const Storm storm = storm_of(seed);
    playing = static_cast<std::sig_atomic_t>(seed);
    const Outcome outcome = play(storm);
    ++histories;
    jobs += outcome.jobs;
    add(all, outcome.count);
    if (!outcome.broken.empty()) {
      const Storm less = one != 0 ? storm : shrink(storm);
      for (const std::string& rule : play(less).broken) ADD_FAILURE() << rule;
      ADD_FAILURE() << "replay with: " << command_of(less);
      break;
    }
    if (one != 0) break;
  }
  for (const auto& [point, times] : all.points)
    std::printf("%10llu  %s\n", static_cast<unsigned long long>(times), point.c_str());
  std::printf(
      "%llu histories, %llu jobs, %llu crashes of the coordinator at %zu points, %llu other "
      "faults, "
      "%llu commits, %llu processes started, %llu ends\n",
      static_cast<unsigned long long>(histories), static_cast<unsigned long long>(jobs),
      static_cast<unsigned long long>(all.crashes), all.points.size(),
      static_cast<unsigned long long>(all.faults), static_cast<unsigned long long>(all.commits),
      static_cast<unsigned long long>(all.starts), static_cast<unsigned long long>(all.ends));
  if (HasFailure()) return;
  std::printf(
      "proof %llu crashes of the coordinator simulated\nproof %llu other faults simulated\n"
      "proof %llu simulated ends checked\n",
      static_cast<unsigned long long>(all.crashes), static_cast<unsigned long long>(all.faults),
      static_cast<unsigned long long>(all.ends));
}

class PlantTest : public StormTest, public testing::WithParamInterface<int> {};

// Whether a history breaks a rule or stops the product. Plays it in its own process, because a
// failed check of the product ends the process.
bool is_noticed(const Storm& storm) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const Outcome outcome = play(storm);
    if (outcome.broken.empty()) _exit(0);
    std::printf("noticed in history %llu: %s\n", static_cast<unsigned long long>(storm.seed),
                outcome.broken.front().substr(0, 160).c_str());
    std::fflush(nullptr);
    _exit(1);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    std::printf("noticed in history %llu: by a check of the product\n",
                static_cast<unsigned long long>(storm.seed));
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

// Each planted fault is noticed.
TEST_P(PlantTest, PlantedFaultIsNoticed) {
  const auto plant = static_cast<Plant>(GetParam());
  const uint64_t seeds_max = plant >= kFirstOfSite ? 1'000 : 240;  // few are of a site
  for (uint64_t seed = 1; seed <= seeds_max; ++seed) {
    if (plant >= kFirstOfSite && !is_site(seed)) continue;
    Storm storm;
    storm.seed = seed;
    storm.plant = plant;
    if (!is_noticed(storm)) continue;
    std::printf("proof 1 planted faults noticed\n");
    return;
  }
  FAIL() << kPlantNames[GetParam()] << " went unnoticed in " << seeds_max << " histories";
}

INSTANTIATE_TEST_SUITE_P(Each, PlantTest, testing::Range(1, static_cast<int>(Plant::count)),
                         [](const auto& plant) { return std::string(kPlantNames[plant.param]); });

}  // namespace
}  // namespace muster::sim
