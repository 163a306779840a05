// Simulations: random jobs under random faults. A failure prints its seed; `./dev sim SEED` replays
// it.
#include "api/kube/objects/manifest.hpp"
#include "tests/sim/world.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace muster::sim {
namespace {

core::JobObjectPtr job_object(const std::string& name, int completions, int parallelism,
                              int per_index, int limit) {
  auto object = std::make_shared<core::JobObject>();
  std::string spec =
      "\"completionMode\":\"Indexed\",\"completions\":" + std::to_string(completions) +
      ",\"parallelism\":" + std::to_string(parallelism) +
      ",\"backoffLimit\":" + std::to_string(limit);
  if (per_index >= 0) spec += ",\"backoffLimitPerIndex\":" + std::to_string(per_index);
  std::string json = "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"" +
                     name +
                     "\",\"namespace\":\"default\",\"uid\":\"00000000-0000-4000-8000-"
                     "000000000001\",\"generation\":1," +
                     "\"creationTimestamp\":\"2023-11-14T22:13:20Z\"},\"spec\":{" + spec +
                     ",\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{"
                     "\"name\":\"main\",\"command\":[\"true\"]}]}}}}";
  return api::load_job(json);
}

// One history: every guarantee must hold, whatever crashes.
void play(uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto below = [&random](uint64_t n) { return random() % n; };
  Plan plan;
  plan.seed = seed;
  plan.agents = 1 + static_cast<uint32_t>(below(3));
  plan.slots = 1 + static_cast<uint32_t>(below(4));
  plan.crashes = static_cast<int>(below(5));
  plan.mid_commit = static_cast<int>(below(3));
  plan.agent_restarts = static_cast<int>(below(4));
  plan.breaks = static_cast<int>(below(6));
  plan.silences = plan.agents > 1 ? static_cast<int>(below(2)) : 0;
  plan.index_deaths = static_cast<int>(below(3));
  plan.clock_jump_ms = below(4) == 0 ? static_cast<Millis>(below(7'200'000)) - 3'600'000 : 0;
  World world(plan);
  int completions = 1 + static_cast<int>(below(40)), parallelism = 1 + static_cast<int>(below(12));
  int per_index = below(2) == 0 ? static_cast<int>(below(3)) : -1;
  uint64_t salt = random();
  // Without a limit per index, attempts succeed eventually, so that the job can complete.
  world.exit_code = [salt, per_index](PodId pod) {
    uint64_t h = (pod.index * 1'000'003u + pod.attempt) * 0x9e3779b97f4a7c15u ^ salt;
    h ^= h >> 29;
    return h % 4 == 0 && (per_index >= 0 || pod.attempt < 2) ? 1 + static_cast<int>(h % 5) : 0;
  };
  world.submit(job_object("one", completions, parallelism, per_index, 1'000'000));
  auto done = [&world] {
    const core::Job* job = world.shown("one");
    return job && job->finished();
  };
  // The limit is virtual time: a clock jump of up to an hour must not delay the job.
  ASSERT_TRUE(world.run(done, 1'200'000)) << "the job did not finish: " << world.picture("one");
  for (const std::string& rule : world.broken) ADD_FAILURE() << rule;
  const core::Job& job = *world.shown("one");
  // Every pod was judged exactly once. A pod that its node returns may have been judged before,
  // when the node was declared lost.
  const uint64_t counted = job.succeeded() + job.state().failed;
  EXPECT_LE(counted, job.state().pods_created);
  if (plan.silences == 0)
    EXPECT_EQ(job.state().pods_created, counted + world.returned.size());
  else
    EXPECT_LE(job.state().pods_created, counted + world.returned.size());
  EXPECT_EQ(job.succeeded() + job.state().failed_indexes.size(),
            static_cast<uint64_t>(completions));
  // Every success shown was witnessed. Unless a node was declared lost, every witnessed success is
  // shown.
  for (auto [first, last] : job.state().completed.intervals())
    for (uint32_t i = first; i <= last; ++i) {
      bool witnessed = false;
      for (PodId pod : world.ended_ok) witnessed |= pod.index == i;
      EXPECT_TRUE(witnessed) << "index " << i << " is shown as succeeded, but never succeeded";
    }
  if (plan.silences == 0) {
    EXPECT_EQ(job.state().failed, world.ended_bad.size());
    EXPECT_EQ(job.succeeded(), world.ended_ok.size());
  }
}

// The object with its spec patched and a new version in an annotation.
core::JobObjectPtr changed(const core::JobObject& from, const nlohmann::json& spec, int version) {
  nlohmann::json json = nlohmann::json::parse(from.json);
  json["spec"].merge_patch(spec);
  json["metadata"]["annotations"]["version"] = std::to_string(version);
  json["metadata"]["generation"] = json["metadata"]["generation"].get<int>() + 1;
  return api::load_job(json.dump());
}

int version_of(const core::Job& job) {
  const auto& annotations = job.object().meta.annotations;
  auto it = annotations.find("version");
  return it == annotations.end() ? 0 : std::stoi(it->second);
}

// The owner suspends, resumes, scales, deletes and evicts amid crashes. Acknowledged changes
// survive, the job finishes and still answers after it is unloaded, and its name is free once it is
// gone.
void play_owner(uint64_t seed) {
  SCOPED_TRACE("owner, seed " + std::to_string(seed));
  std::mt19937_64 random(seed * 7919);
  auto below = [&random](uint64_t n) { return random() % n; };
  Plan plan;
  plan.seed = seed;
  plan.agents = 1 + static_cast<uint32_t>(below(3));
  plan.slots = 1 + static_cast<uint32_t>(below(4));
  plan.crashes = static_cast<int>(below(5));
  plan.mid_commit = static_cast<int>(below(3));
  plan.agent_restarts = static_cast<int>(below(3));
  plan.breaks = static_cast<int>(below(5));
  plan.silences = plan.agents > 1 ? static_cast<int>(below(2)) : 0;
  plan.index_deaths = static_cast<int>(below(3));
  plan.owner_acts = 12;
  World world(plan);
  world.may_scale = true;
  uint64_t salt = random();
  world.exit_code = [salt](PodId pod) {
    return ((pod.index * 31u + pod.attempt) ^ salt) % 5 == 0 && pod.attempt < 2 ? 1 : 0;
  };
  int versions = 0, answered = 0;  // the newest version acknowledged to the owner
  auto update = [&](const nlohmann::json& spec) {
    const core::Job* job = world.shown("one");
    if (!job) return;
    int version = ++versions;
    auto object = changed(job->object(), spec, version);
    world.ask("one", core::OwnerUpdate{0, job->object_ptr(), object},
              [&answered, version](Status s) {
                if (s.ok()) answered = std::max(answered, version);
              });
  };
  auto check_versions = [&] {
    const core::Job* job = world.shown("one");
    EXPECT_TRUE(!job || version_of(*job) >= answered)
        << "the owner was told of a change that is gone";
  };
  world.owner = [&] {
    check_versions();
    const core::Job* job = world.shown("one");
    if (!job) return;
    const int n = static_cast<int>(1 + below(12));
    switch (below(6)) {
      case 0:
        return update({{"suspend", true}});
      case 1:
        return update({{"suspend", false}});
      case 2:
        return update({{"completions", n}, {"parallelism", n}});
      case 3:
        return update({{"parallelism", n}});
      default: {
        std::vector<PodKey> keys;
        job->each_pod([&keys](const core::Pod& pod) { keys.push_back(pod.key); });
        if (keys.empty()) return;
        auto why =
            below(2) == 0 ? core::PodsDeletion::Why::owner : core::PodsDeletion::Why::eviction;
        return world.ask("one",
                         core::PodsDeletion{0, {keys[below(keys.size())]}, why, std::nullopt});
      }
    }
  };
  core::JobObjectPtr first = job_object("one", 8, 8, -1, 1'000'000);
  first = changed(*first, {{"podReplacementPolicy", "Failed"}}, 0);
  world.submit(first);
  Millis look = 0;
  auto done = [&] {
    const core::Job* job = world.shown("one");
    if (!job) return false;
    // Once the faults are over, the owner lets the job run.
    if (++look % 500 == 0 && (job->spec().suspend.value_or(false) || !job->spec().parallelism))
      update({{"suspend", false}});
    return job->finished();
  };
  ASSERT_TRUE(world.run(done, 3'600'000)) << "the job did not finish: " << world.picture("one");
  check_versions();
  // A finished job still accepts changes, and is deleted when its TTL is over.
  auto changes = [&](const nlohmann::json& spec) {
    int wanted = versions + 1;
    return [&, spec, wanted, n = 0]() mutable {
      if (n++ % 300 == 0 && world.shown("one")) update(spec);
      return !world.shown("one") || version_of(*world.shown("one")) >= wanted;
    };
  };
  ASSERT_TRUE(world.run(changes({{"backoffLimit", 7}}), 600'000)) << world.picture("one");
  if (below(2) == 0) {
    ASSERT_TRUE(world.run(changes({{"ttlSecondsAfterFinished", 3}}), 600'000));
    ASSERT_TRUE(world.run([&] { return !world.shown("one"); }, 600'000)) << "its ttl is over";
  } else {
    int n = 0;
    auto gone = [&] {
      if (n++ % 300 == 0 && world.shown("one")) world.remove("one", below(2) == 0, false);
      return !world.shown("one");
    };
    ASSERT_TRUE(world.run(gone, 600'000)) << world.picture("one");
  }
  // The name is free again.
  world.submit(job_object("one", 2, 2, -1, 1'000'000));
  auto again = [&] { return world.shown("one") && world.shown("one")->finished(); };
  ASSERT_TRUE(world.run(again, 600'000)) << world.picture("one");
  for (const std::string& rule : world.broken) ADD_FAILURE() << rule;
}

// Jobs that fail by their deadline or backoff limit amid crashes. World checks that no success
// counts as killed.
void play_deadline(uint64_t seed) {
  SCOPED_TRACE("deadline, seed " + std::to_string(seed));
  std::mt19937_64 random(seed * 104'729);
  auto below = [&random](uint64_t n) { return random() % n; };
  Plan plan;
  plan.seed = seed;
  plan.agents = 1 + static_cast<uint32_t>(below(3));
  plan.slots = 2 + static_cast<uint32_t>(below(3));
  plan.crashes = static_cast<int>(below(4));
  plan.mid_commit = static_cast<int>(below(2));
  plan.agent_restarts = static_cast<int>(below(3));
  plan.breaks = static_cast<int>(below(6));
  plan.silences = plan.agents > 1 ? static_cast<int>(below(2)) : 0;
  World world(plan);
  uint64_t salt = random();
  world.exit_code = [salt](PodId pod) { return ((pod.index * 31u) ^ salt) % 3 == 0 ? 1 : 0; };
  core::JobObjectPtr object = job_object("one", 60, 8, -1, 3 + static_cast<int>(below(40)));
  nlohmann::json spec = {{"activeDeadlineSeconds", 1 + below(3)}};
  world.submit(changed(*object, spec, 0));
  auto done = [&world] {
    const core::Job* job = world.shown("one");
    return job && job->finished();
  };
  ASSERT_TRUE(world.run(done, 1'200'000)) << "the job did not finish: " << world.picture("one");
  for (const std::string& rule : world.broken) ADD_FAILURE() << rule;
}

// A gang that restarts as one, or an MPI job whose launcher aborts when it loses a worker. One of
// all the ends that a failure causes is charged, and no member starts while a member of the
// previous run is alive.
void play_gang(uint64_t seed) {
  SCOPED_TRACE("gang, seed " + std::to_string(seed));
  std::mt19937_64 random(seed * 15'485'863);
  auto below = [&random](uint64_t n) { return random() % n; };
  const bool leads = below(3) != 0, whole = !leads || below(2) == 0;
  const int members = 2 + static_cast<int>(below(5));
  const int per_index = below(2) == 0 ? static_cast<int>(below(4)) : -1;
  Plan plan;
  plan.seed = seed;
  plan.agents = 2 + static_cast<uint32_t>(below(2));
  plan.slots = static_cast<uint32_t>(members);
  plan.crashes = static_cast<int>(below(5));
  plan.mid_commit = static_cast<int>(below(3));
  plan.agent_restarts = static_cast<int>(below(3));
  plan.breaks = static_cast<int>(below(5));
  plan.silences = static_cast<int>(below(2));
  plan.index_deaths = static_cast<int>(below(3));
  plan.launcher = leads;
  World world(plan);
  const uint64_t salt = random();
  auto fails = [salt](PodId pod) {
    uint64_t h = (pod.index * 1'000'003u + pod.attempt) * 0x9e3779b97f4a7c15u ^ salt;
    h ^= h >> 29;
    return h % 4 == 0 && pod.attempt < 3;
  };
  world.exit_code = [fails](PodId pod) { return fails(pod) ? 1 + static_cast<int>(pod.index) : 0; };
  // Workers wait until they are told to end, unless they fail.
  constexpr Millis kForever = 100'000'000;
  world.run_ms = [fails, leads, salt](PodId pod) -> Millis {
    if (leads && pod.index != 0 && !fails(pod)) return kForever;
    return 1 + static_cast<Millis>((pod.index * 31 + pod.attempt * 17 + salt) % 400);
  };
  core::JobObjectPtr object = job_object("one", members, members, per_index, 1'000'000);
  nlohmann::json json = nlohmann::json::parse(object->json);
  auto& annotations = json["metadata"]["annotations"];
  annotations["muster.dev/gang"] = "true";
  if (leads) annotations["muster.dev/mpi"] = "auto";
  if (whole) annotations["muster.dev/restart"] = "gang";
  if (leads) json["spec"]["successPolicy"] = {{"rules", {{{"succeededIndexes", "0"}}}}};
  world.submit(api::load_job(json.dump()));
  auto done = [&world] {
    const core::Job* job = world.shown("one");
    return job && job->finished();
  };
  ASSERT_TRUE(world.run(done, 1'200'000)) << "the job did not finish: " << world.picture("one");
  for (const std::string& rule : world.broken) ADD_FAILURE() << rule;
  const core::Job& job = *world.shown("one");
  const bool failed = job.condition(core::ConditionType::failed) != nullptr;
  if (!leads) return;
  // The last run ends with the leader's success, perhaps along with a failure, or with the failure
  // that ends the job.
  if (whole) {
    const uint64_t runs = job.state().pods_created / static_cast<uint64_t>(members);
    EXPECT_LE(job.state().failed, runs);
    EXPECT_GE(job.state().failed + world.returned.size(), runs - (failed ? 0 : 1));
  }
  EXPECT_TRUE(failed || job.state().completed.contains(0));
}

TEST(Simulation, P15NoSuccessIsCountedAsAKill) {
  if (const char* seed = std::getenv("MUSTER_SEED"); seed && *seed)
    return play_deadline(std::strtoull(seed, nullptr, 10));
  const char* most = std::getenv("MUSTER_SIM_RUNS");
  uint64_t runs = most ? std::strtoull(most, nullptr, 10) : 100;
  for (uint64_t seed = 1; seed <= runs && !HasFailure(); ++seed) play_deadline(seed);
}

TEST(Simulation, GangFailureIsCountedOnce) {
  if (const char* seed = std::getenv("MUSTER_SEED"); seed && *seed)
    return play_gang(std::strtoull(seed, nullptr, 10));
  const char* most = std::getenv("MUSTER_SIM_RUNS");
  uint64_t runs = most ? std::strtoull(most, nullptr, 10) : 150;
  for (uint64_t seed = 1; seed <= runs && !HasFailure(); ++seed) play_gang(seed);
}

TEST(Simulation, SuspendScaleAndDeleteAtAnyTimeKeepInvariants) {
  if (const char* seed = std::getenv("MUSTER_SEED"); seed && *seed)
    return play_owner(std::strtoull(seed, nullptr, 10));
  const char* most = std::getenv("MUSTER_SIM_RUNS");
  uint64_t runs = most ? std::strtoull(most, nullptr, 10) : 150;
  for (uint64_t seed = 1; seed <= runs && !HasFailure(); ++seed) play_owner(seed);
}

TEST(Simulation, NothingIsLostAndNothingCountedTwice) {
  if (const char* seed = std::getenv("MUSTER_SEED"); seed && *seed)
    return play(std::strtoull(seed, nullptr, 10));
  const char* most = std::getenv("MUSTER_SIM_RUNS");
  uint64_t runs = most ? std::strtoull(most, nullptr, 10) : 150;
  for (uint64_t seed = 1; seed <= runs && !HasFailure(); ++seed) play(seed);
}

}  // namespace
}  // namespace muster::sim
