// The registry: names and ids, jobs that are unloaded and loaded again, quarantined jobs.
#include "tests/unit/actors/actors_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class RegistryTest : public ActorsTest {
 protected:
  explicit RegistryTest(RegistryOptions options = {}) : ActorsTest(std::move(options)) {
    start_node(8);
  }
  // Runs a new job to its end.
  void finish(const std::string& name, JobId id) {
    create(name);
    run();
    for (uint32_t index = 0; index < 2; ++index) report_end(id, {index, 0}, 0);
    run();
    replies_.clear();
    orders_.seen.clear();
  }
  void send_ask(const std::string& name) {
    caf::anon_send(registry_, AskJob{"default", name, "", 0, core::PodsDeletion{},
                                     noted<Status>("ask " + name)});
  }
  void ask(const std::string& name) {
    send_ask(name);
    run();
  }
};

TEST_F(RegistryTest, SecondCreateOfSameNameIsRefused) {
  create("a");
  create("a");
  run();
  EXPECT_THAT(replies_, UnorderedElementsAre("create a: done", "create a: refused"));
  EXPECT_THAT(orders_.seen, UnorderedElementsAre("launch j1/0#0", "launch j1/1#0"));
}

TEST_F(RegistryTest, AnIdIsNeverIssuedAgain) {
  finish("a", 1);
  remove("a", "");
  run();
  create("a");
  run();
  EXPECT_THAT(replies_, ElementsAre("delete a : done", "create a: done"));
  EXPECT_THAT(orders_.seen, UnorderedElementsAre("launch j2/0#0", "launch j2/1#0"));
}

TEST_F(RegistryTest, AFinishedJobIsLoadedForRequestsAndUnloadedAgain) {
  finish("a", 1);
  EXPECT_EQ(loads_, 0u);
  send_ask("a");
  ask("a");
  EXPECT_THAT(replies_, ElementsAre("ask a: refused", "ask a: refused")) << "it has no such pod";
  EXPECT_EQ(loads_, 1u) << "both came while its actor lived";
  ask("a");
  EXPECT_EQ(loads_, 2u) << "its actor had left, as nothing was left to do";
  create("a");
  run();
  EXPECT_EQ(replies_.back(), "create a: refused") << "the name of an unloaded job is taken";
}

TEST_F(RegistryTest, AJobThatCannotBeLoadedIsQuarantined) {
  finish("a", 1);
  load_ = [](JobId) { return Error{Errc::invalid, "journal: torn", {}}; };
  ask("a");
  create("a");
  remove("a", "");
  run();
  EXPECT_THAT(replies_, ElementsAre("ask a: refused", "create a: refused", "delete a : refused"));
  EXPECT_EQ(loads_, 1u);
  load_ = nullptr;
  create("b");
  run();
  EXPECT_EQ(replies_.back(), "create b: done") << "the others are served";
}

// Otherwise the coordinator would never exit.
TEST_F(RegistryTest, AnActorThatLeavesDoesNotOutliveTheRegistry) {
  const size_t others = system_.registry().running() - 1;
  create("a");
  run();
  disk_.silent = true;
  for (uint32_t index = 0; index < 2; ++index) report_end(1, {index, 0}, 0);
  run();
  disk_.sync();     // the job is over, and its actor is told to stop;
  remove("a", "");  // the deletion arrives right after that
  run();
  ASSERT_EQ(disk_.held.size(), 1u) << "the deletion is being written";
  caf::anon_send(registry_, stop_atom_v);
  run();
  EXPECT_EQ(system_.registry().running(), others);
}

TEST_F(RegistryTest, AReportOfAJobThatIsGoneIsAcknowledged) {
  report_end(1'000, {0, 0}, 0);
  run();
  EXPECT_THAT(replies_, ElementsAre("acknowledged, to keep: 0"));
}

// A node of 8 slots; at most 10 pods of an owner wait, but 2 of each job.
class P10Waiting : public RegistryTest {
 protected:
  P10Waiting() : RegistryTest({.waiting = std::make_shared<WaitingPods>(10, 2)}) {}

  void submit(const std::string& name, uint32_t uid) {
    auto object = std::make_shared<core::JobObject>(*job(name));
    object->spec.completions = object->spec.parallelism = 30;
    object->meta.annotations["muster.dev/owner-uid"] = std::to_string(uid);
    caf::anon_send(registry_, CreateJob{std::move(object), noted<Status>("create " + name)});
    run();
  }
  size_t existing(JobId id) {
    return storage::recover_job(disk_.disk, id, load_object)->job.state().open.size();
  }
};

TEST_F(P10Waiting, JobsOfOneOwnerShareMaximumOfWaitingPods) {
  submit("a", 1001);
  EXPECT_EQ(existing(1), 18u) << "8 are on the node, 10 wait";
  submit("b", 1001);
  EXPECT_EQ(existing(2), 2u);
  submit("c", 1002);
  EXPECT_EQ(existing(3), 10u) << "another owner has a maximum of its own";
  // As pods end, all of them run in the end.
  for (uint32_t index = 0; index < 30; ++index) {
    report_end(1, {index, 0}, 0);
    run();
  }
  for (uint32_t index = 0; index < 30; ++index) {
    report_end(2, {index, 0}, 0);
    run();
  }
  EXPECT_TRUE(storage::recover_job(disk_.disk, 2, load_object)->job.finished());
}

class DamagedJobs : public RegistryTest {
 protected:
  static RegistryStart damaged() {
    RegistryStart start;
    start.damaged.push_back({.id = 1, .object = job("broken"), .why = "journal: torn"});
    start.next_job = 2;
    return start;
  }
  DamagedJobs() { restart(damaged()); }
};

TEST_F(DamagedJobs, KeepTheirNamesAndTheirEndsUnacknowledged) {
  report_end(1, {0, 0}, 0);
  ask("broken");
  create("broken");
  run();
  EXPECT_THAT(replies_, ElementsAre("acknowledged, to keep: 1", "ask broken: refused",
                                    "create broken: refused"));
  create("other");
  run();
  EXPECT_THAT(orders_.seen, UnorderedElementsAre("launch j2/0#0", "launch j2/1#0"));
}

class FewFinishedJobs : public RegistryTest {
 protected:
  FewFinishedJobs() : RegistryTest(options()) {}
  static RegistryOptions options() {
    RegistryOptions options;
    options.finished_jobs_max = 1;
    return options;
  }
};

TEST_F(FewFinishedJobs, TheOldestIsDeletedAndItsNameIsFree) {
  finish("a", 1);
  ++now_ms_;
  EXPECT_TRUE(storage::recover_job(disk_.disk, 1, load_object).ok());
  finish("b", 2);
  EXPECT_EQ(storage::recover_job(disk_.disk, 1, load_object).error().code, Errc::not_found);
  EXPECT_TRUE(storage::recover_job(disk_.disk, 2, load_object).ok());
  create("a");
  create("b");
  run();
  EXPECT_THAT(replies_, UnorderedElementsAre("create a: done", "create b: refused"));
}

}  // namespace
}  // namespace muster::actors
