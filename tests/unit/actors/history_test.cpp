// The history of jobs, as their actors write it: in the batches that end and remove them.
#include "storage/rows/history.hpp"

#include "storage/journal/keys.hpp"
#include "tests/unit/actors/actors_fixture.hpp"

#include <gtest/gtest.h>

namespace muster::actors {
namespace {

namespace keys = storage::keys;

class JobHistory : public ActorsTest {
 protected:
  explicit JobHistory(RegistryOptions options = {}) : ActorsTest(std::move(options)) {
    start_node(8);
  }
  bool exists(JobId id) { return disk_.disk.get(keys::owner(id))->has_value(); }
  // "Complete", "Deleted, Deleted"; "none".
  std::string entry(JobId id) {
    const auto found = storage::read_history(disk_.disk, id);
    if (!found.ok()) return "none";
    std::string text(core::name(found->state));
    if (found->removal != core::Removal::none)
      text += ", " + std::string(core::name(found->removal));
    return text;
  }
  void finish(JobId id) {
    for (uint32_t index = 0; index < 2; ++index) report_end(id, {index, 0}, 0);
    run();
  }
  // Writes what is waiting, one append at a time, and checks after each that every job has its own
  // rows or an entry that says that it is gone: a crash may come in between.
  void sync_one_by_one(JobId last) {
    while (!disk_.held.empty()) {
      const std::vector<Append> appends = std::exchange(disk_.held, {});
      for (const Append& append : appends) {
        disk_.held = {append};
        disk_.sync();
        for (JobId id = 1; id <= last; ++id)
          EXPECT_TRUE(exists(id) || entry(id).find(", ") != std::string::npos) << "j" << id;
      }
      run();
    }
  }
};

TEST_F(JobHistory, AJobHasOneWhenItEnds) {
  create("a");
  run();
  EXPECT_EQ(entry(1), "none");
  finish(1);
  EXPECT_EQ(entry(1), "Complete");
  EXPECT_TRUE(exists(1));
}

TEST_F(JobHistory, TheBatchThatRemovesAJobWritesItsEntry) {
  create("a");
  create("b");
  run();
  finish(1);
  disk_.silent = true;
  remove("a", "");
  remove("b", "");
  run();
  sync_one_by_one(2);
  finish(2);  // its pods end
  sync_one_by_one(2);
  EXPECT_EQ(entry(1), "Complete, Deleted");
  EXPECT_EQ(entry(2), "Deleted, Deleted");
  EXPECT_FALSE(exists(1) || exists(2));
}

TEST_F(JobHistory, ANameThatIsUsedAgainHasTwo) {
  create("a");
  run();
  finish(1);
  remove("a", "");
  run();
  create("a");
  run();
  finish(2);
  EXPECT_EQ(entry(1) + "; " + entry(2), "Complete, Deleted; Complete");
}

TEST_F(JobHistory, AttemptsThatEndWithTheRemovalAreKept) {
  create("a");
  run();
  remove("a", "");
  run();
  finish(1);
  EXPECT_EQ(storage::read_history(disk_.disk, 1)->attempts, 2u);
  size_t lists = 0;
  ASSERT_TRUE(disk_.disk.scan(keys::attempts_of(1), [&](auto, auto) { return ++lists > 0; }).ok());
  EXPECT_GT(lists, 0u);
}

TEST_F(JobHistory, WhatACrashLeftOfAJobGetsOneToo) {
  core::Job old(9, job("old"));
  for (const core::Record& record :
       std::vector<core::Record>{core::JobAdmitted{5, old.object_ptr()}, core::JobDeleted{6, true},
                                 core::JobForgotten{7}})
    old.apply(record);
  RegistryStart start;
  start.jobs.push_back({.job = old, .next_seq = 2, .tail_rows = 1});
  start.next_job = 10;
  restart(std::move(start));
  EXPECT_EQ(entry(9), "Deleted, Deleted");
}

class NoHistory : public JobHistory {
 protected:
  NoHistory() : JobHistory({.history = false}) {}
};

TEST_F(NoHistory, NothingIsWritten) {
  create("a");
  run();
  finish(1);
  EXPECT_EQ(entry(1), "none");
  remove("a", "");
  run();
  EXPECT_EQ(entry(1), "none");
  EXPECT_FALSE(exists(1));
}

}  // namespace
}  // namespace muster::actors
