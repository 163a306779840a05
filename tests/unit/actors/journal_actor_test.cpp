// JournalActor, on virtual time: what it groups into one write, and what it acknowledges.
#include "actors/journal_actor.hpp"

#include "storage/journal/memory_journal.hpp"
#include "tests/unit/actors/virtual_time.hpp"

#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class JournalActorTest : public ::testing::Test {
 protected:
  ~JournalActorTest() override {
    if (journal_) caf::anon_send(journal_, stop_atom_v);
    run();
  }
  void run() { scheduler_.run(); }

  void start_journal(bool held = false, std::chrono::microseconds gather = {}) {
    journal_ = spawn_journal(
        system_, disk_,
        {.show = [this](const core::Committed& batch) { shown_.push_back(batch.commit); },
         .failed = [this](const std::string& why) { failed_ = why; },
         .gather = gather,
         .held = held});
  }
  void append(const std::string& key, bool may_wait = false, size_t bytes = 5) {
    Append append;
    append.may_wait = may_wait;
    append.rows = {{key, std::string(bytes, 'v')}};
    append.done = [this, key](uint64_t commit) {
      EXPECT_THAT(shown_, ::testing::Contains(commit)) << "acknowledged before it is shown";
      done_.push_back(key + " in " + std::to_string(commit));
    };
    caf::anon_send(journal_, std::move(append));
  }
  bool on_disk(const std::string& key) { return disk_.get(key)->has_value(); }

  VirtualTime config_;
  caf::actor_system system_{config_};
  caf::scheduler::test_coordinator& scheduler_ =
      dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  storage::MemoryJournal disk_;
  journal_actor journal_;
  std::vector<uint64_t> shown_;
  std::vector<std::string> done_;
  std::string failed_;
};

TEST_F(JournalActorTest, CommitsAppendsThatArrivedTogetherAtOnce) {
  start_journal();
  for (const char* key : {"a", "b", "c"}) append(key);
  run();
  EXPECT_THAT(done_, ElementsAre("a in 1", "b in 1", "c in 1"));
  append("d");
  run();
  EXPECT_THAT(done_, ElementsAre("a in 1", "b in 1", "c in 1", "d in 2"));
  EXPECT_TRUE(on_disk("a") && on_disk("d"));
}

TEST_F(JournalActorTest, UrgentAppendCommitsDeferredAppendsToo) {
  start_journal(false, std::chrono::seconds(1));
  scheduler_.advance_time(std::chrono::seconds(2));
  append("a", true);
  run();
  EXPECT_THAT(done_, ElementsAre("a in 1"));
  append("b", true);
  run();
  append("c", true);
  run();
  EXPECT_THAT(done_, ElementsAre("a in 1")) << "a commit began just now";
  append("d");
  run();
  EXPECT_THAT(done_, ElementsAre("a in 1", "b in 2", "c in 2", "d in 2"));
  append("e", true);
  run();
  scheduler_.advance_time(std::chrono::milliseconds(999));
  run();
  EXPECT_EQ(done_.size(), 4u) << "nor does an overtaken marker commit it";
  scheduler_.advance_time(std::chrono::milliseconds(1));
  run();
  EXPECT_EQ(done_.back(), "e in 3");
}

TEST_F(JournalActorTest, UrgentAppendsOvertakeLargeDeferredOnesForLimitedTime) {
  using std::chrono::milliseconds;
  constexpr size_t kLarge = 10'000;
  start_journal(false, milliseconds(1000));
  scheduler_.advance_time(milliseconds(2000));
  append("a", true, kLarge);
  run();
  append("large", true, kLarge);
  append("small", true);
  run();
  EXPECT_THAT(done_, ElementsAre("a in 1"));
  append("b");
  run();
  EXPECT_THAT(done_, ElementsAre("a in 1", "small in 2", "b in 2"));
  EXPECT_FALSE(on_disk("large"));
  for (int i = 3; i <= 9; ++i) {  // more of them, every half of the gathering time
    scheduler_.advance_time(milliseconds(500));
    append("c");
    run();
    EXPECT_EQ(done_.back(), "c in " + std::to_string(i));
    EXPECT_FALSE(on_disk("large")) << i;
  }
  scheduler_.advance_time(milliseconds(500));
  run();
  EXPECT_EQ(done_.back(), "large in 10");
  append("d", true, kLarge);
  run();
  append("e", false, kLarge);
  run();
  EXPECT_EQ(done_.back(), "e in 11");
  scheduler_.advance_time(milliseconds(999));
  run();
  EXPECT_FALSE(on_disk("d")) << "commits are still frequent";
  scheduler_.advance_time(milliseconds(1));
  run();
  EXPECT_EQ(done_.back(), "d in 12");
}

TEST_F(JournalActorTest, AHeldJournalWritesNothingUntilItBegins) {
  start_journal(true);
  append("a");
  run();
  EXPECT_THAT(done_, IsEmpty());
  EXPECT_FALSE(on_disk("a"));
  caf::anon_send(journal_, begin_atom_v);
  run();
  EXPECT_THAT(done_, ElementsAre("a in 1"));
}

TEST_F(JournalActorTest, AHeldJournalThatIsStoppedHasWrittenNothing) {
  start_journal(true);
  append("a");
  caf::anon_send(journal_, stop_atom_v);
  run();
  EXPECT_THAT(done_, IsEmpty());
  EXPECT_FALSE(on_disk("a"));
}

TEST_F(JournalActorTest, AcknowledgesNothingAfterFailedWrite) {
  start_journal();
  disk_.fail_from(1);
  append("a");
  run();
  EXPECT_NE(failed_, "");
  disk_.crash();
  append("b");
  run();
  EXPECT_THAT(done_, IsEmpty());
  EXPECT_THAT(shown_, IsEmpty());
}

}  // namespace
}  // namespace muster::actors
