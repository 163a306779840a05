// ReplicatedJournal: what is not durable everywhere is not shown.
#include "storage/replica/replicated_journal.hpp"

#include "storage/journal/memory_journal.hpp"

#include <gmock/gmock.h>

#include <functional>

namespace muster::storage {
namespace {

using testing::ElementsAre;

// Acknowledges at once, and looks at the journal while a commit waits for the replicas.
class Replicas final : public Replication {
 public:
  std::function<void()> meanwhile = [] {};
  std::vector<std::string> calls;
  std::vector<Batch> batches;

  void begins(uint64_t commit, Batch batch) override {
    calls.push_back("begins " + std::to_string(commit));
    batches.push_back(std::move(batch));
  }
  void synced(uint64_t commit) override { calls.push_back("synced " + std::to_string(commit)); }
  void await(uint64_t commit) override {
    calls.push_back("await " + std::to_string(commit));
    meanwhile();
  }
};

class ReplicatedJournalTest : public testing::Test {
 protected:
  Replicas replicas_;
  ReplicatedJournal journal_{std::make_unique<MemoryJournal>(), replicas_};

  std::string value(const std::string& key) {
    auto found = journal_.get(key);
    return found.ok() && *found ? **found : "(none)";
  }
};

TEST_F(ReplicatedJournalTest, BatchIsHandedOutBeforeItIsWaitedFor) {
  ASSERT_TRUE(journal_.commit({{"a", "1"}, {"b", std::nullopt}}).ok());
  EXPECT_THAT(replicas_.calls, ElementsAre("begins 1", "synced 1", "await 1"));
  ASSERT_EQ(replicas_.batches.size(), 1u);
  ASSERT_EQ(replicas_.batches[0]->size(), 2u);
  EXPECT_EQ(replicas_.batches[0]->at(0).value, "1");
  EXPECT_EQ(replicas_.batches[0]->at(1).value, std::nullopt);
}

TEST_F(ReplicatedJournalTest, NobodySeesWhatReplicasMayLack) {
  ASSERT_TRUE(journal_.commit({{"a", "1"}}).ok());
  std::string seen, walked;
  uint64_t last = 0;
  std::unique_ptr<Rows> frozen;
  replicas_.meanwhile = [&] {
    seen = value("a");
    last = journal_.last_commit();
    frozen = journal_.frozen();
    EXPECT_TRUE(journal_
                    .scan("a",
                          [&](std::string_view, std::string_view found) {
                            walked = found;
                            return true;
                          })
                    .ok());
  };
  ASSERT_TRUE(journal_.commit({{"a", "2"}}).ok());
  EXPECT_EQ(seen, "1");
  EXPECT_EQ(walked, "1");
  EXPECT_EQ(last, 1u);
  EXPECT_EQ(value("a"), "2");
  EXPECT_EQ(journal_.last_commit(), 2u);
  const auto then = frozen->get("a");
  ASSERT_TRUE(then.ok());
  EXPECT_EQ(*then, "1");
}

}  // namespace
}  // namespace muster::storage
