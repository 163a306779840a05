// MemoryJournal: forgets exactly what was not synced.
#include "storage/journal/memory_journal.hpp"

#include <gtest/gtest.h>

namespace muster::storage {
namespace {

std::string all(Journal& journal, std::string_view prefix) {
  std::string text;
  (void)journal.scan(prefix, [&text](std::string_view key, std::string_view value) {
    text += std::string(key) + "=" + std::string(value) + " ";
    return true;
  });
  return text;
}

TEST(MemoryJournal, ScansAPrefixInOrderUntilStopped) {
  MemoryJournal journal;
  EXPECT_EQ(journal.last_commit(), 0u);
  ASSERT_TRUE(journal.commit({{"b2", "y"}, {"b1", "x"}, {"a", "0"}, {"c", "z"}}).ok());
  ASSERT_TRUE(journal.commit({{"a", std::nullopt}, {"b3", "w"}}).ok());
  EXPECT_EQ(journal.last_commit(), 2u);
  EXPECT_EQ(all(journal, "b"), "b1=x b2=y b3=w ");
  EXPECT_EQ(*journal.get("a"), std::nullopt);
  int seen = 0;
  (void)journal.scan("b", [&seen](auto, auto) { return ++seen < 2; });
  EXPECT_EQ(seen, 2);
}

TEST(MemoryJournal, CrashDropsUnsyncedCommits) {
  MemoryJournal journal;
  ASSERT_TRUE(journal.commit({{"a", "1"}}).ok());
  journal.set_manual_sync(true);
  ASSERT_TRUE(journal.commit({{"a", "2"}, {"b", "1"}}).ok());
  journal.sync();
  ASSERT_TRUE(journal.commit({{"a", std::nullopt}}).ok());
  ASSERT_TRUE(journal.commit({{"c", "1"}}).ok());
  EXPECT_EQ(all(journal, ""), "b=1 c=1 ");
  EXPECT_EQ(journal.unsynced(), 2u);

  MemoryJournal lucky = journal;  // a disk that has written one commit more than was synced
  lucky.crash(1);
  EXPECT_EQ(all(lucky, ""), "b=1 ");
  EXPECT_EQ(lucky.last_commit(), 3u);

  journal.crash();
  EXPECT_EQ(all(journal, ""), "a=2 b=1 ");
  EXPECT_EQ(journal.last_commit(), 2u);
  ASSERT_TRUE(journal.commit({{"d", "1"}}).ok());
  EXPECT_EQ(journal.last_commit(), 3u);
}

TEST(MemoryJournal, AFullDiskFailsUntilTheRestart) {
  MemoryJournal journal;
  journal.fail_from(2);
  ASSERT_TRUE(journal.commit({{"a", "1"}}).ok());
  for (int i = 0; i < 2; ++i) {
    auto status = journal.commit({{"b", "1"}});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Errc::unavailable);
  }
  EXPECT_EQ(all(journal, ""), "a=1 ");
  journal.crash();
  EXPECT_EQ(all(journal, ""), "a=1 ");
  EXPECT_TRUE(journal.commit({{"b", "1"}}).ok());
}

}  // namespace
}  // namespace muster::storage
