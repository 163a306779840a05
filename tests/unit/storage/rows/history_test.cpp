// The history of jobs: rows, which of them are outdated, and what a start adds.
#include "storage/rows/history.hpp"

#include "storage/journal/keys.hpp"
#include "storage/journal/memory_journal.hpp"
#include "storage/recovery.hpp"
#include "storage/rows/rows.hpp"
#include "tests/unit/storage/now.hpp"

#include <gtest/gtest.h>

namespace muster::storage {
namespace {

core::HistoryEntry full() {
  core::HistoryEntry entry{.id = 5, .ns = "lab", .name = "sweep", .uid = "u-1"};
  entry.owner = 1001;
  entry.group = 100;
  entry.user = "alice";
  entry.queue = "short";
  entry.command = "sh -c true";
  entry.state = core::PastState::cancelled;
  entry.reason = "Cancelled";
  entry.message = "Cancelled by alice";
  entry.removal = core::Removal::expired;
  entry.created_ms = kNow;
  entry.started = kNow + 10;
  entry.waited_ms = 9;
  entry.ended = kNow + 20;
  entry.removed = kNow + 30;
  entry.indexed = true;
  entry.tasks = "1-1000";
  entry.indexes = 1000;
  entry.succeeded = 900;
  entry.failed_indexes = 60;
  entry.cancelled_indexes = 40;
  entry.attempts = 1100;
  entry.failed_attempts = 160;
  entry.used = {123'456'789, 987'654, uint64_t{3} << 30};
  entry.ran_ms = 200'000;
  entry.requested.cpu_millis = 1500;
  entry.requested.memory_bytes = int64_t{1} << 30;
  entry.requested.named["nvidia.com/gpu"] = 2;
  return entry;
}

core::HistoryEntry ended(JobId id, Millis at_ms) {
  core::HistoryEntry entry{.id = id};
  entry.created_ms = at_ms - 1;
  entry.ended = at_ms;
  return entry;
}

struct HistoryTest : testing::Test {
  void write(const core::HistoryEntry& entry) {
    ASSERT_TRUE(journal.commit({history_row(entry)}).ok());
  }
  std::string ids_of(const std::vector<Row>& rows) {
    std::string text;
    for (const Row& row : rows) {
      EXPECT_FALSE(row.value);
      text += std::to_string(keys::parse_job(keys::kHistory, row.key).value_or(0)) + " ";
    }
    return text;
  }
  std::string seen(JobId after, size_t most = 100) {
    std::string text;
    EXPECT_TRUE(scan_history(journal, after, [&](const core::HistoryEntry& entry) {
                  text += std::to_string(entry.id) + " ";
                  return --most > 0;
                }).ok());
    return text;
  }
  MemoryJournal journal;
};

TEST_F(HistoryTest, RoundTrip) {
  for (const core::HistoryEntry& entry : {full(), core::HistoryEntry{.id = 6}}) {
    write(entry);
    auto back = read_history(journal, entry.id);
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, entry);
  }
  EXPECT_EQ(read_history(journal, 7).error().code, Errc::not_found);
  EXPECT_LT(history_row(full()).value->size(), 300u) << "a million of them should take little room";
}

TEST_F(HistoryTest, ScansById) {
  for (const JobId id : {3, 300, 70'000}) write(ended(id, kNow));
  EXPECT_EQ(seen(0), "3 300 70000 ");
  EXPECT_EQ(seen(3), "300 70000 ");
  EXPECT_EQ(seen(0, 1), "3 ");
  ASSERT_TRUE(journal.commit({{keys::history(300), "junk"}}).ok());
  EXPECT_EQ(seen(0), "3 70000 ") << "a damaged entry hides no other";
}

TEST_F(HistoryTest, OldAndSurplusEntriesAreDeleted) {
  for (const JobId id : {1, 2, 3, 4}) write(ended(id, kNow + static_cast<Millis>(id)));
  EXPECT_EQ(ids_of(outdated_history(journal, kNow, 4, 100)), "");
  EXPECT_EQ(ids_of(outdated_history(journal, kNow + 3, 4, 100)), "1 2 ") << "ended before";
  EXPECT_EQ(ids_of(outdated_history(journal, kNow, 1, 100)), "1 2 3 ") << "one is kept";
  EXPECT_EQ(ids_of(outdated_history(journal, kNow, 1, 2)), "1 2 ") << "two at a time";
  EXPECT_EQ(ids_of(outdated_history(journal, kNow, 0, 100)), "1 2 3 4 ") << "no history";
  ASSERT_TRUE(journal.commit({{keys::owner(2), "{}"}}).ok());
  EXPECT_EQ(ids_of(outdated_history(journal, kNow, 1, 100)), "1 3 ") << "job 2 still exists";
}

TEST_F(HistoryTest, LongJobsAreNotOldBeforeTheyEnd) {
  core::HistoryEntry old = ended(1, kNow + 100);
  old.created_ms = kNow - 1000;
  write(old);
  EXPECT_EQ(ids_of(outdated_history(journal, kNow, 9, 100)), "");
}

// A start adds the entries of ended jobs that the start before it did not keep.
TEST_F(HistoryTest, StartAddsWhatIsMissing) {
  auto object = std::make_shared<core::JobObject>();
  object->json = "{}";
  object->meta.name = "old";
  auto load = [object](std::string_view) { return object; };
  ASSERT_TRUE(journal.commit(job_rows(1, 1, {core::JobAdmitted{kNow, object}})).ok());
  ASSERT_TRUE(journal.commit(job_rows(2, 1, {core::JobAdmitted{kNow, object}})).ok());
  write(ended(2, kNow));
  auto start = [&](bool keeps, uint64_t last) {
    const auto rows = begin_history(journal, keeps, last, last + 1, {1, 2}, load);
    EXPECT_TRUE(journal.commit(rows).ok());
    return rows.size();
  };
  EXPECT_EQ(start(true, 3), 2u) << "the mark, and the entry of job 1";
  EXPECT_EQ(read_history(journal, 1)->name, "old");
  EXPECT_EQ(read_history(journal, 2)->name, "") << "that of job 2 was there";
  EXPECT_EQ(start(true, 4), 1u) << "nothing is missing";
  ASSERT_TRUE(journal.commit({{keys::history(1), std::nullopt}}).ok());
  EXPECT_EQ(start(true, 6), 2u) << "start 6 was another version's: it did not leave its mark";
  EXPECT_EQ(start(false, 7), 1u);
  EXPECT_FALSE(*journal.get(keys::kHistoryOf)) << "history is off";
}

}  // namespace
}  // namespace muster::storage
