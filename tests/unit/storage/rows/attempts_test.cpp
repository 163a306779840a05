// The history of attempts: pages in order, and what is removed.
#include "storage/rows/attempts.hpp"

#include "storage/codec/codec.hpp"
#include "storage/journal/keys.hpp"
#include "storage/journal/memory_journal.hpp"
#include "tests/unit/storage/now.hpp"

#include <gtest/gtest.h>

namespace muster::storage {
namespace {

core::Pod closed(uint32_t index, uint32_t attempt, int32_t code) {
  core::Pod pod;
  pod.key = {index, attempt};
  pod.created_ms = kNow;
  pod.node = 3;
  pod.bound_ms = kNow + 1;
  pod.started_at = kNow + 2;
  pod.ended = true;
  pod.end = {.exit_code = code, .ended_at = kNow + 5};
  pod.counted = code == 0 ? core::Counted::succeeded : core::Counted::failed;
  return pod;
}

struct AttemptsTest : testing::Test {
  void SetUp() override {
    for (JobId job : {1, 2}) ASSERT_TRUE(journal.commit({{keys::owner(job), "{}"}}).ok());
    add(1, 3, {closed(0, 0, 0), closed(1, 0, 1), closed(2, 0, 0)});
    add(1, 9, {closed(1, 1, 7)}, kNow + 50);
    add(2, 2, {closed(0, 0, 0)});
  }
  void add(JobId job, uint64_t sequence, std::vector<core::Pod> pods, Millis at_ms = kNow) {
    ASSERT_TRUE(journal.commit({attempts_row(job, sequence, at_ms, std::move(pods))}).ok());
  }
  std::string page(
      JobId job, AttemptCursor& from, size_t limit,
      std::function<bool(const core::Pod&)> wanted = [](const auto&) { return true; }) {
    auto page = read_attempts(journal, job, from, limit, wanted);
    if (!page.ok()) return page.error().message;
    std::string text;
    for (const core::Pod& pod : page->attempts) text += to_string(pod.key) + " ";
    more = page->next.has_value();
    if (more) from = *page->next;
    return text;
  }
  MemoryJournal journal;
  bool more = false;
};

TEST_F(AttemptsTest, RoundTrip) {
  auto page = read_attempts(journal, 1, {}, 10, [](const auto&) { return true; });
  ASSERT_TRUE(page.ok());
  ASSERT_EQ(page->attempts.size(), 4u);
  EXPECT_EQ(page->attempts[1], closed(1, 0, 1));
  EXPECT_EQ(page->attempts[3], closed(1, 1, 7));
  EXPECT_EQ(page->closed_ms, (std::vector<Millis>{kNow, kNow, kNow, kNow + 50}));
  EXPECT_FALSE(page->next);
}

TEST_F(AttemptsTest, EndOfPageIsWhereLaterAttemptsAppear) {
  AttemptCursor from;
  auto read = [&] {
    auto page = read_attempts(journal, 1, from, 10, [](const auto&) { return true; });
    EXPECT_TRUE(page.ok());
    from = page->end;
    return page->attempts.size();
  };
  EXPECT_EQ(read(), 4u);
  EXPECT_EQ(read(), 0u);
  add(1, 12, {closed(2, 1, 0)});
  EXPECT_EQ(read(), 1u);
  EXPECT_EQ(read(), 0u);
}

TEST_F(AttemptsTest, PagesGoOnWhereTheLastEnded) {
  AttemptCursor from;
  EXPECT_EQ(page(1, from, 2), "0#0 1#0 ");
  ASSERT_TRUE(more);
  EXPECT_EQ(page(1, from, 2), "2#0 1#1 ");
  EXPECT_FALSE(more);
  from = {};
  auto failed = [](const core::Pod& pod) { return !pod.end.succeeded(); };
  EXPECT_EQ(page(1, from, 1, failed), "1#0 ");
  ASSERT_TRUE(more);
  EXPECT_EQ(page(1, from, 1, failed), "1#1 ");
  from = {};
  EXPECT_EQ(page(7, from, 2), "");
}

TEST_F(AttemptsTest, UnreadableAttemptsAreReported) {
  ASSERT_TRUE(journal.commit({{keys::attempts(1, 4), "junk"}}).ok());
  AttemptCursor from;
  EXPECT_EQ(page(1, from, 10).substr(0, 28), "journal: attempts of job j1:");
}

TEST_F(AttemptsTest, OldExcessAndOrphanedAttemptsAreDeleted) {
  auto keys_of = [](const std::vector<Row>& rows) {
    std::string text;
    for (const Row& row : rows) {
      EXPECT_FALSE(row.value);
      auto at = keys::parse_records(row.key, keys::kAttempts);
      text += std::to_string(at->job) + "/" + std::to_string(at->sequence) + " ";
    }
    return text;
  };
  EXPECT_EQ(keys_of(outdated_attempts(journal, kNow, 5, 100)), "");
  add(2, 5, {closed(1, 0, 0)}, kNow - 10);
  EXPECT_EQ(keys_of(outdated_attempts(journal, kNow, 100, 100)), "2/5 ") << "too old";
  add(2, 6, {closed(2, 0, 0)}, kNow + 10);
  EXPECT_EQ(keys_of(outdated_attempts(journal, kNow - 20, 5, 100)), "2/5 1/3 ")
      << "seven, and five are kept: the oldest lists go";
  EXPECT_EQ(keys_of(outdated_attempts(journal, kNow - 20, 5, 1)), "2/5 ") << "one at a time";
  ASSERT_TRUE(journal.commit({{keys::owner(1), std::nullopt}, {keys::history(1), "…"}}).ok());
  EXPECT_EQ(keys_of(outdated_attempts(journal, kNow - 20, 100, 100)), "")
      << "their job is gone, and the history has it";
  ASSERT_TRUE(journal.commit({{keys::history(1), std::nullopt}}).ok());
  EXPECT_EQ(keys_of(outdated_attempts(journal, kNow - 20, 100, 100)), "1/3 1/9 ")
      << "nothing is left of their job";
}

}  // namespace
}  // namespace muster::storage
