// Jobs that wait for others: found when they are created, and notified despite any crash.
#include "core/spec/fields/after.hpp"
#include "core/spec/fields/owner.hpp"
#include "tests/unit/actors/actors_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::actors {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class Dependents : public ActorsTest {
 protected:
  Dependents() { start_node(8); }

  void create_after(const std::string& name, const std::string& after) {
    auto object = std::make_shared<core::JobObject>(*job(name));
    object->meta.annotations.emplace(core::kAfterKey, after);
    create_object(object);
  }
  void create_object(core::JobObjectPtr object) {
    const std::string name = object->meta.name;
    caf::anon_send(
        registry_,
        CreateJob{std::move(object), Reply<Status>([this, name](Status status) {
                    replies_.push_back("create " + name + ": " + (status ? "done" : why(status)));
                  })});
    run();
  }
  static std::string why(const Status& status) {
    const Error& error = status.error();
    return error.violations.empty() ? error.message
                                    : error.violations[0].path + ": " + error.violations[0].detail;
  }
  void end(JobId job, int code = 0) {
    for (uint32_t index = 0; index < 2; ++index) report_end(job, {index, 0}, code);
    run();
  }
  RegistryStart recovered() {
    RegistryStart start;
    auto state = storage::recover(disk_.disk, load_object);
    EXPECT_TRUE(state.ok());
    start.jobs = std::move(state->jobs);
    start.next_job = state->next_job_id;
    return start;
  }
};

TEST_F(Dependents, StartWhenTheJobHasEnded) {
  create("prep");
  create_after("main", "ok:prep");
  EXPECT_THAT(replies_, ElementsAre("create prep: done", "create main: done"));
  EXPECT_THAT(orders_.seen, UnorderedElementsAre("launch j1/0#0", "launch j1/1#0"));
  orders_.seen.clear();
  end(1);
  EXPECT_THAT(orders_.seen, UnorderedElementsAre("launch j2/0#0", "launch j2/1#0"));
}

TEST_F(Dependents, StartAtOnceIfItHadEndedBefore) {
  create("prep");
  run();
  end(1);
  orders_.seen.clear();
  create_after("main", "any:prep");
  EXPECT_THAT(orders_.seen, UnorderedElementsAre("launch j2/0#0", "launch j2/1#0"));
}

TEST_F(Dependents, AreRefusedIfThereIsNoSuchJob) {
  create_after("main", "ok:prep");
  EXPECT_THAT(replies_, ElementsAre("create main: metadata.annotations[muster.dev/after]: there is "
                                    "no job `prep` in namespace `default`"));
  create("main");
  run();
  EXPECT_EQ(replies_.back(), "create main: done") << "the name is free";
}

TEST_F(Dependents, StartAfterJobWasDeletedAndItsPodsEnded) {
  create("prep");
  create_after("main", "notok:prep");
  remove("prep", "");
  run();
  orders_.seen.clear();
  for (uint32_t index = 0; index < 2; ++index) report_end(1, {index, 0}, 143);
  run();
  EXPECT_THAT(orders_.seen, UnorderedElementsAre("launch j2/0#0", "launch j2/1#0"));
}

TEST_F(Dependents, DoNotStartOnEndThatCrashLost) {
  create("prep");
  create_after("main", "ok:prep");
  disk_.silent = true;
  end(1);  // decided, but not on disk
  disk_.held.clear();
  disk_.silent = false;
  restart(recovered());
  EXPECT_THAT(orders_.seen, Not(Contains("launch j2/0#0")));
}

// A crash after the end of `prep`, whose TTL is 0, is on disk, and before `main` has recorded it.
TEST_F(Dependents, StartAfterCrashAlthoughTtlDeletedFinishedJob) {
  auto object = std::make_shared<core::JobObject>(*job("prep"));
  object->spec.ttl_s = 0;
  create_object(object);
  create_after("main", "ok:prep");
  for (uint32_t index = 0; index < 2; ++index) report_end(1, {index, 0}, 0);
  disk_.silent = true;
  run();
  while (!disk_.held.empty()) {  // until the first append of `main`
    std::vector<Append> held = std::exchange(disk_.held, {});
    for (Append& append : held) {
      if (append.records && append.records->job == 2) {
        disk_.held.clear();
        disk_.silent = false;
        RegistryStart start = recovered();
        ASSERT_EQ(start.jobs.size(), 2u) << "`prep` is still known";
        orders_.seen.clear();
        restart(std::move(start));
        auto again = recovered();
        const core::Job& main = again.jobs.back().job;
        EXPECT_EQ(main.object().json, "main");
        EXPECT_FALSE(main.held());
        EXPECT_FALSE(main.decided());
        return;
      }
      disk_.held = {append};
      disk_.sync();
    }
    run();
  }
  FAIL() << "`main` was not notified";
}

// ---- index by index (each:JOB)

TEST_F(Dependents, IndexStartsAfterTheSameIndexOfFollowedJob) {
  create("prep");
  create_after("main", "each:prep");
  orders_.seen.clear();
  report_end(1, {1, 0}, 0);
  run();
  EXPECT_THAT(orders_.seen, ElementsAre("launch j2/1#0"));
  report_end(1, {0, 0}, 0);
  run();
  EXPECT_THAT(orders_.seen, ElementsAre("launch j2/1#0", "launch j2/0#0"));
  end(2);
  remove("prep", "");
  run();
  EXPECT_EQ(replies_.back(), "delete prep : done") << "nobody waits for it";
}

TEST_F(Dependents, ManyIndexesAreToldAtOnce) {
  create("prep");
  create_after("main", "each:prep");
  disk_.silent = true;
  end(1);
  const size_t synced = disk_.synced;
  disk_.silent = false;
  disk_.sync();
  run();
  EXPECT_THAT(orders_.seen, Contains("launch j2/0#0"));
  EXPECT_THAT(orders_.seen, Contains("launch j2/1#0"));
  // The end of `prep`, what `main` has learnt of it, the grant of its slots.
  EXPECT_LE(disk_.synced - synced, 4u);
}

TEST_F(Dependents, FollowersOfJobThatHadEndedStartAtOnce) {
  create("prep");
  run();
  end(1);
  orders_.seen.clear();
  create_after("main", "each:prep");
  EXPECT_THAT(orders_.seen, UnorderedElementsAre("launch j2/0#0", "launch j2/1#0"));
}

// A crash after each append that follows from the first success in `prep`.
TEST_F(Dependents, FollowersLearnAgainAfterAnyCrash) {
  create("prep");
  create_after("main", "each:prep");
  report_end(1, {1, 0}, 0);
  disk_.silent = true;
  run();
  for (size_t crash = 0; crash < 50; ++crash) {
    const bool more = !disk_.held.empty();
    disk_.sync();
    disk_.held.clear();
    orders_.seen.clear();
    restart(recovered());
    const auto now = recovered();
    ASSERT_EQ(now.jobs.size(), 2u);
    const core::Job& prep = now.jobs.front().job;
    const core::Job& main = now.jobs.back().job;
    EXPECT_TRUE(prep.state().completed.contains(1)) << crash;
    EXPECT_FALSE(main.cleared(0)) << crash;
    EXPECT_EQ(main.pod({0, 0}), nullptr) << crash;
    if (more) continue;
    EXPECT_TRUE(main.cleared(1));
    EXPECT_NE(main.pod({1, 0}), nullptr);
    return;
  }
  FAIL() << "every start writes something";
}

// Its successes that `main` had not recorded count, too.
TEST_F(Dependents, FollowersOfDeletedJobKeepWhatHasPassed) {
  create("prep");
  create_after("main", "each:prep");
  orders_.seen.clear();
  report_end(1, {0, 0}, 0);
  remove("prep", "");
  run();
  EXPECT_THAT(orders_.seen, Contains("launch j2/0#0"));
  report_end(2, {0, 0}, 0);
  report_end(1, {1, 0}, 143);
  run();
  const auto now = recovered();
  const core::Job& main = now.jobs.back().job;
  EXPECT_TRUE(main.condition(core::ConditionType::failure_target)) << "index 1 never runs";
  EXPECT_EQ(main.pod({1, 0}), nullptr);
}

TEST_F(Dependents, FinishedFollowersAreNotLoadedAgain) {
  create("prep");
  create_after("main", "each:prep");
  remove("main", "");
  run();
  loads_ = 0;
  report_end(1, {0, 0}, 0);
  run();
  EXPECT_EQ(loads_, 0u);
}

// Also while the owner scales the followed job.
TEST_F(Dependents, MayFollowOnlyJobsThatHaveTheirIndexes) {
  create("prep");
  auto object = std::make_shared<core::JobObject>(*job("main"));
  object->meta.annotations.emplace(core::kAfterKey, "each:prep");
  object->spec.completions = 3;
  create_object(object);
  EXPECT_EQ(replies_.back(),
            "create main: metadata.annotations[muster.dev/after]: job `prep` has "
            "no index 2: its spec.completions is 2");
  auto larger = std::make_shared<core::JobObject>(*job("prep"));
  larger->spec.completions = larger->spec.parallelism = 3;
  larger->json = "larger";
  caf::anon_send(registry_, AskJob{.ns = "default",
                                   .name = "prep",
                                   .event = core::OwnerUpdate{0, job("prep"), larger},
                                   .done = noted<Status>("scale")});
  run();
  EXPECT_EQ(replies_.back(), "scale: done");
  create_object(object);
  EXPECT_EQ(replies_.back(), "create main: done");
}

// A crash left rows of a job that is gone, and nobody is told in its place.
TEST_F(Dependents, OfForgottenJobsAreNotTold) {
  core::JobState state;
  state.forgotten = true;
  state.dependencies.push_back({1, {core::Needed::any, "prep"}});
  RegistryStart start;
  start.jobs.push_back({.job = core::Job(2, job("main"), std::move(state)), .next_seq = 2});
  start.next_job = 3;
  restart(std::move(start));
  create("main");
  run();
  EXPECT_THAT(replies_, ElementsAre("create main: done"));
}

// For a user's job, another user's is the same as none.
TEST_F(Dependents, P12MayNameOnlyJobsOfTheSameUser) {
  const auto of = [](uint32_t uid, const std::string& name, const std::string& after = "",
                     bool privileged = false) {
    auto object = std::make_shared<core::JobObject>(*job(name));
    core::Violations none;
    core::keep_owner(core::Owner{.uid = uid, .gid = uid, .name = "u", .privileged = privileged},
                     object->meta.annotations, none);
    if (!after.empty()) object->meta.annotations.emplace(core::kAfterKey, after);
    return object;
  };
  create_object(of(1001, "hers"));
  create_object(of(1002, "own"));
  create_object(of(1002, "ok", "ok:own"));
  create_object(of(1002, "nosy", "any:hers"));
  create_object(of(1002, "typo", "any:nobodys"));
  create_object(of(1003, "operator", "any:hers", true));
  const auto refused = [](const std::string& name, const std::string& after) {
    return "create " + name + ": metadata.annotations[muster.dev/after]: there is no job `" +
           after + "` in namespace `default`";
  };
  EXPECT_THAT(replies_, ElementsAre("create hers: done", "create own: done", "create ok: done",
                                    refused("nosy", "hers"), refused("typo", "nobodys"),
                                    "create operator: done"));
  replies_.clear();
  // Of a job that finished before the registry started, the owner is read from disk, once.
  load_ = [&](JobId) {
    return storage::RecoveredJob{.job = core::Job(1, of(1001, "hers")), .next_seq = 2};
  };
  RegistryStart start;
  start.unloaded.push_back({.id = 1, .ns = "default", .name = "hers", .uid = "uid-hers"});
  start.next_job = 9;
  loads_ = 0;
  restart(std::move(start));
  create_object(of(1002, "again", "any:hers"));
  create_object(of(1002, "again", "any:hers"));
  EXPECT_THAT(replies_, ElementsAre(refused("again", "hers"), refused("again", "hers")));
  EXPECT_EQ(loads_, 1u);
}

}  // namespace
}  // namespace muster::actors
