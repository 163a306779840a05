// The registry: who has a name, who is told of an end, what is due, and which finished jobs go.
#include "core/registry/registry.hpp"

#include "core/spec/fields/after.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/rules/defaults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace muster::core::registry {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr JobOver kComplete{false, {}, true};
constexpr JobOver kFailed{false, {}, false};
constexpr JobOver kGone{true, {}, {}};

struct Text {
  std::string operator()(const TellEnd& e) const {
    return "tell j" + std::to_string(e.dependent) + ": j" + std::to_string(e.of) + " " +
           std::string(name(e.how)) +
           (e.progress ? ", has passed " + e.progress->passed.text() : "");
  }
  std::string operator()(const TellProgress& e) const {
    return "tell j" + std::to_string(e.dependent) + ": j" + std::to_string(e.of) + " has passed " +
           e.progress->passed.text();
  }
  std::string operator()(const TellDependents& e) const {
    return "tell j" + std::to_string(e.job) + ": " +
           (e.dependents.following ? "followed"
            : e.dependents.any     ? "awaited"
                                   : "not awaited");
  }
  std::string operator()(const StopActor& e) const { return "stop j" + std::to_string(e.job); }
  std::string operator()(const DeleteFinished& e) const {
    return "delete j" + std::to_string(e.job);
  }
};
std::vector<std::string> text(const Effects& effects) {
  std::vector<std::string> lines;
  for (const Effect& effect : effects) lines.push_back(std::visit(Text{}, effect));
  return lines;
}

std::string text(const Admission& admission) {
  if (const auto* holder = std::get_if<AskHolder>(&admission))
    return "ask j" + std::to_string(holder->job);
  if (const auto* unread = std::get_if<ReadJob>(&admission))
    return "read j" + std::to_string(unread->job);
  if (const auto* error = std::get_if<Error>(&admission))
    return error->code == Errc::exists ? "exists" : error->violations.at(0).detail;
  std::string line = "j" + std::to_string(std::get<Admitted>(admission).id);
  for (const std::string& effect : text(std::get<Admitted>(admission).effects))
    line += ", " + effect;
  return line;
}

struct Wanted {
  std::string name;
  std::string after{};
  std::optional<uint32_t> user{};  // absent: a job of a coordinator that serves one user
  bool privileged = false;
  std::optional<int32_t> indexes{};  // completions of an Indexed job; absent: NonIndexed
  std::string only{};                // muster.dev/indexes
};
JobObjectPtr object(const Wanted& wanted) {
  auto object = std::make_shared<JobObject>();
  object->meta.ns = "default";
  object->meta.name = wanted.name;
  object->meta.uid = "uid-" + wanted.name;
  Violations none;
  if (wanted.user)
    keep_owner(Owner{.uid = *wanted.user, .name = "u", .privileged = wanted.privileged},
               object->meta.annotations, none);
  if (!wanted.after.empty()) object->meta.annotations.emplace(kAfterKey, wanted.after);
  if (!wanted.only.empty()) object->meta.annotations.emplace(kIndexesKey, wanted.only);
  if (wanted.indexes) {
    object->spec.completion_mode = "Indexed";
    object->spec.completions = wanted.indexes;
  }
  apply_defaults(object->meta, object->spec);
  return object;
}
// A job as it is recovered.
Job job(JobId id, const std::string& name, JobState state = {}) {
  return {id, object({name}), std::move(state)};
}
JobState finished(ConditionType type, Millis at_ms) {
  JobState state;
  state.conditions.push_back({.type = type, .at_ms = at_ms});
  state.last_record_ms = at_ms;
  return state;
}
JobState waits_for(JobId id, Needed needed = Needed::any) {
  JobState state;
  state.dependencies.push_back({id, {needed, "prep"}});
  return state;
}
ProgressPtr passed(uint32_t first, uint32_t last) {
  Progress progress;
  progress.passed.insert_range(first, last);
  return std::make_shared<const Progress>(std::move(progress));
}

class RegistryTest : public ::testing::Test {
 protected:
  std::string admit(const Wanted& wanted, bool holder_asked = false) {
    return text(registry_.admit(object(wanted), holder_asked, now_));
  }
  // A job that has an actor.
  void run(const Wanted& wanted) {
    const JobId id = registry_.next_id();
    admit(wanted);
    registry_.set_running(id);
  }
  std::vector<std::string> over(JobId id, const JobOver& how) {
    return text(registry_.over(id, how, nullptr, now_));
  }
  void unload(JobId id, const JobOver& how) {
    over(id, how);
    registry_.actor_left(id);
  }
  Place place(JobId id) { return registry_.job(id)->place; }
  std::string find(const std::string& name, const std::string& uid = "") {
    const Result<JobId> found = registry_.find("default", name, uid);
    if (found) return "j" + std::to_string(*found);
    return found.error().code == Errc::conflict ? "conflict" : "not found";
  }

  Now now_{.wall_ms = 1'000'000, .elapsed_ms = 500};
  Registry registry_{1, 2};
};

// ---- names and ids

TEST_F(RegistryTest, NameHasOneJobAndIdIsIssuedOnce) {
  EXPECT_EQ(admit({"a"}), "j1");
  EXPECT_EQ(admit({"a"}), "exists");
  EXPECT_EQ(admit({"b"}), "j2") << "a refused request takes no id";
  EXPECT_EQ(find("a"), "j1");
  EXPECT_EQ(find("a", "uid-a"), "j1");
  EXPECT_EQ(find("a", "uid-b"), "conflict");
  EXPECT_EQ(find("c"), "not found");
  registry_.set_running(1);
  over(1, kGone);
  EXPECT_EQ(find("a"), "not found");
  EXPECT_EQ(admit({"a"}), "j3");
}

// Only a job with an actor can be about to release its name.
TEST_F(RegistryTest, HolderOfNameIsAskedWhileItHasAnActor) {
  admit({"a"});
  EXPECT_EQ(admit({"a"}), "exists") << "being created";
  registry_.set_running(1);
  EXPECT_EQ(admit({"a"}), "ask j1");
  EXPECT_EQ(admit({"a"}, true), "exists");
  over(1, kComplete);
  EXPECT_EQ(place(1), Place::leaving);
  EXPECT_EQ(admit({"a"}), "ask j1");
  registry_.actor_left(1);
  EXPECT_EQ(place(1), Place::unloaded);
  EXPECT_EQ(admit({"a"}), "exists");
  registry_.quarantine(1, "torn");
  EXPECT_EQ(admit({"a"}), "exists");
}

TEST_F(RegistryTest, NameIsFreeOnceItsJobIsHidden) {
  run({"a"});
  registry_.free_name(1);
  EXPECT_EQ(admit({"a"}), "j2");
  registry_.free_name(1);
  over(1, kGone);
  EXPECT_EQ(find("a"), "j2") << "the earlier job's end leaves the name alone";
}

TEST_F(RegistryTest, AdoptedJobsHaveTheirNamesUnlessHidden) {
  JobState hidden;
  hidden.background_deleted = true;
  registry_.adopt({.id = 7, .ns = "default", .name = "a", .uid = "uid-a"}, now_);
  registry_.adopt(job(5, "a", hidden), now_);
  registry_.adopt(job(6, "b", hidden), now_);
  registry_.adopt_damaged(8, object({"d"}), "torn");
  registry_.adopt_damaged(9, nullptr, "torn");
  EXPECT_EQ(find("a"), "j7");
  EXPECT_EQ(find("b"), "not found");
  EXPECT_EQ(find("d"), "j8");
  EXPECT_EQ(registry_.job(8)->damage, "job default/d is damaged: torn");
  EXPECT_EQ(registry_.job(9), nullptr);
}

// ---- where a job is

TEST(AdoptedJobs, HaveActorsUntilTheyAreOver) {
  const JobState done = finished(ConditionType::complete, 10);
  const auto with = [](JobState state, auto change) {
    change(state);
    return state;
  };
  const auto opened = [](JobState& state) { state.open[{0, 0}]; };
  const auto deleted = [](JobState& state) { state.deleted_at = 11; };
  const auto orphaned = [](JobState& state) {
    state.deleted_at = 11;
    state.orphaned = true;
  };
  struct {
    const char* what;
    JobState state;
    Place place;
  } cases[] = {
      {"it has not finished", {}, Place::running},
      {"it has finished", done, Place::unloaded},
      {"a pod is open", with(done, opened), Place::running},
      {"its deletion waits", with(done, deleted), Place::running},
      {"its pods were orphaned", with({}, orphaned), Place::unloaded},
      {"orphaned pods run", with(with({}, orphaned), opened), Place::running},
  };
  for (const auto& one : cases) {
    Registry registry(9, 9);
    registry.adopt(job(1, "a", one.state), {});
    EXPECT_EQ(registry.job(1)->place, one.place) << one.what;
  }
}

TEST_F(RegistryTest, LeavingActorMayStillReport) {
  run({"a"});
  EXPECT_THAT(over(1, kComplete), ElementsAre("stop j1"));
  EXPECT_THAT(over(1, kComplete), IsEmpty()) << "it was told";
  EXPECT_THAT(over(1, kGone), IsEmpty());
  EXPECT_EQ(registry_.job(1), nullptr);
  registry_.actor_left(1);
  EXPECT_THAT(over(1, kGone), IsEmpty());
}

TEST_F(RegistryTest, PodsOfOtherThanRunningOrUnrecoveredJobsAreStrangers) {
  registry_.adopt_damaged(9, nullptr, "torn");
  run({"runs"});
  run({"left"});
  unload(2, kComplete);
  run({"lost"});
  unload(3, kComplete);
  registry_.quarantine(3, "torn");
  const std::set<PodKey> pods{{0, 1}};
  EXPECT_THAT(registry_.strangers({{1, pods}, {2, pods}, {3, pods}, {9, pods}, {10, pods}}),
              ElementsAre(PodId{2, 0, 1}, PodId{3, 0, 1}, PodId{10, 0, 1}));
  PodsReported part;
  part.ends.emplace_back().pod = {4, 0};
  EXPECT_THAT(registry_.ends_to_keep({{1, part}, {3, part}, {9, part}, {10, part}}),
              ElementsAre(PodId{9, 4, 0}));
}

// ---- jobs that wait for others

TEST_F(RegistryTest, DependentsAreToldOfAnEnd) {
  struct {
    const char* how;
    JobOver over;
  } cases[] = {{"succeeded", kComplete}, {"failed", kFailed}, {"deleted", kGone}};
  for (const auto& [how, how_over] : cases) {
    Registry registry(1, 9);
    registry.admit(object({"prep"}), false, now_);
    registry.set_running(1);
    EXPECT_EQ(text(registry.admit(object({"main", "any:prep"}), false, now_)),
              "j2, tell j1: awaited");
    EXPECT_TRUE(registry.dependents_of(1).any);
    EXPECT_THAT(text(registry.over(1, how_over, nullptr, now_)),
                ElementsAre(std::string("tell j2: j1 ") + how, "stop j1"));
  }
}

TEST_F(RegistryTest, EndIsToldUntilEveryDependentKnows) {
  run({"prep"});
  run({"x", "any:prep"});
  run({"y", "any:prep"});
  EXPECT_THAT(text(registry_.dependent_knows(9, 1)), IsEmpty());
  over(1, kComplete);
  EXPECT_THAT(over(1, kGone), ElementsAre("tell j2: j1 succeeded", "tell j3: j1 succeeded"))
      << "it is gone, but how it ended is known";
  EXPECT_THAT(text(registry_.settle()), ElementsAre("tell j2: j1 deleted", "tell j3: j1 deleted"));
  registry_.dependent_knows(2, 1);
  EXPECT_THAT(text(registry_.settle()), ElementsAre("tell j3: j1 deleted"));
  EXPECT_THAT(over(3, kGone), ElementsAre("stop j3")) << "it waits no longer";
  EXPECT_FALSE(registry_.dependents_of(1).any);
}

TEST_F(RegistryTest, JobIsToldWhenItsLastDependentKnows) {
  run({"prep"});
  run({"x", "any:prep"});
  run({"y", "any:prep"});
  EXPECT_THAT(text(registry_.dependent_knows(2, 1)), IsEmpty());
  EXPECT_THAT(over(3, kGone), ElementsAre("stop j3", "tell j1: not awaited"));
  EXPECT_THAT(text(registry_.dependent_knows(2, 1)), IsEmpty());
}

TEST_F(RegistryTest, NewDependentOfEndedJobIsToldAtOnce) {
  run({"prep"});
  unload(1, kFailed);
  EXPECT_EQ(admit({"main", "notok:prep"}), "j2, tell j2: j1 failed");
  EXPECT_EQ(admit({"other", "ok:nobody"}), "there is no job `nobody` in namespace `default`");
  EXPECT_EQ(find("other"), "not found") << "the name of a refused job is free";
}

TEST_F(RegistryTest, DependentsOfEndedJobsAreToldAtStart) {
  registry_.adopt(job(1, "runs"), now_);
  registry_.adopt({.id = 2, .ns = "default", .name = "done", .complete = true}, now_);
  registry_.adopt_damaged(3, nullptr, "torn");
  for (JobId of : {1, 2, 3, 4})
    registry_.adopt(job(10 + of, "w" + std::to_string(of), waits_for(of)), now_);
  EXPECT_TRUE(registry_.dependents_of(1).any);
  EXPECT_THAT(text(registry_.settle()),
              ElementsAre("tell j12: j2 succeeded", "tell j14: j4 deleted"))
      << "nobody knows about j3, whose rows can't be read";
}

// For a user's job, another user's is the same as none.
TEST_F(RegistryTest, P12UsersJobMayNameOnlyJobsOfSameUser) {
  const std::string none = "there is no job `hers` in namespace `default`";
  registry_.adopt({.id = 9, .ns = "default", .name = "hers", .complete = true}, now_);
  EXPECT_EQ(admit({"nosy", "any:hers", 1002}), "read j9");
  const JobObjectPtr hers = object({"hers", "", 1001});
  registry_.set_read(9, hers.get());
  EXPECT_EQ(admit({"nosy", "any:hers", 1002}), none);
  EXPECT_EQ(admit({"own", "any:hers", 1001}), "j1, tell j1: j9 succeeded");
  EXPECT_EQ(admit({"operator", "any:hers", 1003, true}),
            "j2, tell j1: j9 succeeded, tell j2: j9 succeeded");
  registry_.set_read(9, nullptr);  // its rows could not be read
  EXPECT_EQ(admit({"nosy", "any:hers", 1001}), none);
}

// ---- jobs that follow others index by index

TEST_F(RegistryTest, FollowersAreToldOfProgressAndEnd) {
  run({.name = "prep", .indexes = 3});
  EXPECT_EQ(admit({.name = "b", .after = "each:prep", .indexes = 3}), "j2, tell j1: followed");
  run({.name = "c", .after = "any:prep"});
  EXPECT_THAT(text(registry_.advanced(1, passed(0, 1))), ElementsAre("tell j2: j1 has passed 0,1"));
  EXPECT_THAT(text(registry_.advanced(2, passed(0, 1))), IsEmpty()) << "nobody follows it";
  EXPECT_THAT(over(1, kFailed), ElementsAre("tell j3: j1 failed", "stop j1"))
      << "it did not know that it is followed";
  EXPECT_THAT(text(registry_.over(1, kFailed, passed(0, 1), now_)),
              ElementsAre("tell j2: j1 failed, has passed 0,1", "tell j3: j1 failed"));
  EXPECT_THAT(text(registry_.over(1, kGone, passed(0, 1), now_)),
              ElementsAre("tell j2: j1 failed, has passed 0,1", "tell j3: j1 failed"));
  EXPECT_THAT(text(registry_.settle()), ElementsAre("tell j2: j1 deleted", "tell j3: j1 deleted"));
}

TEST_F(RegistryTest, FinishedFollowerIsToldNothing) {
  run({.name = "prep", .indexes = 3});
  run({.name = "b", .after = "each:prep", .indexes = 3});
  EXPECT_TRUE(registry_.dependents_of(1).following);
  EXPECT_THAT(over(2, kFailed), ElementsAre("stop j2", "tell j1: not awaited"));
  EXPECT_THAT(text(registry_.advanced(1, passed(0, 1))), IsEmpty()) << "else it would be loaded";
  EXPECT_THAT(over(2, kFailed), IsEmpty());
}

TEST_F(RegistryTest, FollowedJobIsAskedForItsProgressAfterItsEnd) {
  run({.name = "prep", .indexes = 3});
  unload(1, kComplete);
  EXPECT_EQ(admit({.name = "b", .after = "each:prep", .indexes = 3}), "j2, tell j1: followed");
  Registry after_restart(9, 9);
  after_restart.adopt({.id = 1, .ns = "default", .name = "prep", .complete = true}, now_);
  after_restart.adopt(job(2, "b", waits_for(1, Needed::each)), now_);
  after_restart.adopt(job(3, "gone", waits_for(7, Needed::each)), now_);
  EXPECT_THAT(text(after_restart.settle()),
              ElementsAre("tell j1: followed", "tell j3: j7 deleted"));
}

TEST_F(RegistryTest, JobMayFollowOnlyOneThatHasItsIndexes) {
  const auto follow = [this](const std::string& of, int32_t indexes, const std::string& only = "") {
    return admit({.name = "b", .after = "each:" + of, .indexes = indexes, .only = only});
  };
  run({.name = "queue"});
  run({.name = "three", .indexes = 3});
  const std::string beyond = "job `three` has no index 4: its spec.completions is 3";
  EXPECT_EQ(follow("nobody", 1), "there is no job `nobody` in namespace `default`");
  EXPECT_EQ(follow("queue", 1), "job `queue` has no indexes: its completion mode is NonIndexed");
  EXPECT_EQ(follow("three", 5), beyond);
  EXPECT_EQ(follow("three", 9, "0,4"), beyond);
  registry_.set_completions(2, 5);
  EXPECT_EQ(follow("three", 5), "j3, tell j2: followed");
  // Of a job that finished before the registry started, the shape is read from disk.
  registry_.adopt({.id = 9, .ns = "default", .name = "done", .complete = true}, now_);
  EXPECT_EQ(admit({.name = "c", .after = "each:done", .indexes = 2}), "read j9");
  const JobObjectPtr done = object({.name = "done", .indexes = 1});
  registry_.set_read(9, done.get());
  EXPECT_EQ(admit({.name = "c", .after = "each:done", .indexes = 2}),
            "job `done` has no index 1: its spec.completions is 1");
}

// ---- finished jobs

TEST_F(RegistryTest, ExcessFinishedJobsAreDeletedOldestFirst) {
  registry_.adopt(job(11, "a", finished(ConditionType::complete, 30)), now_);
  registry_.adopt({.id = 12, .ns = "default", .name = "b", .finished_ms = 10}, now_);
  registry_.adopt({.id = 13, .ns = "default", .name = "c", .finished_ms = 20}, now_);
  registry_.adopt(job(14, "d"), now_);
  EXPECT_THAT(text(registry_.settle()), ElementsAre("delete j12"));
  EXPECT_THAT(text(registry_.settle()), IsEmpty()) << "it is being deleted";
  EXPECT_THAT(over(14, kFailed), ElementsAre("stop j14", "delete j13"));
  EXPECT_THAT(over(14, kFailed), IsEmpty()) << "it counts once";
  over(11, kGone);
  run({"e"});
  EXPECT_THAT(over(1, kFailed), ElementsAre("stop j1")) << "a job that is gone does not count";
}

TEST_F(RegistryTest, UnloadedJobIsDueInItsOwnTime) {
  // Its last record is 2000 ms ahead of the wall clock.
  registry_.adopt(
      {.id = 1, .ns = "default", .name = "a", .finished_ms = 1'002'000, .wake_ms = 1'002'300},
      now_);
  registry_.adopt({.id = 2, .ns = "default", .name = "b", .wake_ms = 5}, now_);
  registry_.adopt({.id = 3, .ns = "default", .name = "c", .wake_ms = 1'000'400}, now_);
  EXPECT_EQ(registry_.next_due(), 500);
  EXPECT_THAT(registry_.take_due(500), ElementsAre(2)) << "its time has passed";
  EXPECT_EQ(registry_.next_due(), 800);
  registry_.set_running(1);  // a request came first
  EXPECT_THAT(registry_.take_due(899), IsEmpty());
  EXPECT_THAT(registry_.take_due(900), ElementsAre(3));
  EXPECT_EQ(registry_.next_due(), std::nullopt);
  over(1, {false, 1'003'000, true});
  EXPECT_EQ(registry_.next_due(), 1500);
  over(1, kGone);
  EXPECT_EQ(registry_.next_due(), std::nullopt);
}

}  // namespace
}  // namespace muster::core::registry
