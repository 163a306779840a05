// EpochLine: whether a journal's history contains what an agent has seen.
#include "core/cluster/nodes/epoch_line.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

using Standing = EpochLine::Standing;

const EpochLine kLine({{3, 33, 100}, {4, 44, 120}, {6, 66, 150}});
constexpr uint64_t kLast = 170;

TEST(P11EpochLine, ClassifiesHistoryKnownToAgent) {
  struct Row {
    const char* what;
    KnownHistory known;
    Standing standing;
  };
  const Row rows[] = {
      {"it served nobody", {0, 0, 0}, Standing::ours},
      {"no epoch, and too much all the same", {0, 0, 171}, Standing::older},
      {"the present start", {6, 66, 170}, Standing::ours},
      {"more of the present start than there is", {6, 66, 171}, Standing::older},
      {"the present epoch of a copy", {6, 67, 150}, Standing::diverged},
      {"an earlier start, to its last commit", {4, 44, 149}, Standing::ours},
      {"an earlier start, which went on elsewhere", {4, 44, 150}, Standing::older},
      {"an earlier start of a copy", {4, 45, 130}, Standing::diverged},
      {"an earlier start, told by an agent that keeps no nonce", {4, 0, 130}, Standing::ours},
      {"an epoch that was passed over", {5, 55, 149}, Standing::diverged},
      {"a later start", {7, 77, 10}, Standing::older},
      {"from before the line", {2, 22, 99}, Standing::ours},
      {"from before the line, and too much", {2, 22, 100}, Standing::older},
  };
  for (const Row& row : rows) EXPECT_EQ(kLine.judge(row.known, kLast), row.standing) << row.what;
}

// Regression: each refused start of an older copy raised its numbers until it was accepted.
TEST(P11EpochLine, AnOlderCopyStaysOlderHoweverOftenItIsStarted) {
  EpochLine copy({{1, 11, 1}});
  const KnownHistory known{2, 22, 40};  // from a later start of the original
  uint64_t last = 30;
  EXPECT_EQ(copy.judge(known, last), Standing::older);
  for (uint64_t start = 2; start < 100; ++start) {
    copy.add({start, 1000 + start, last + 1});
    last += 10;
    EXPECT_EQ(copy.judge(known, last), Standing::diverged) << "start " << start;
  }
}

TEST(P11EpochLine, CopyTakenWithinEpochIsOlderThanItsEnd) {
  const KnownHistory known{1, 11, 50};
  EpochLine copy({{1, 11, 1}});
  EXPECT_EQ(copy.judge(known, 49), Standing::older);
  EXPECT_EQ(copy.judge(known, 50), Standing::ours);
  copy.add({2, 22, 50});
  EXPECT_EQ(copy.judge(known, 1'000), Standing::older);
}

TEST(P11EpochLine, RestoreAcceptsHistoryKnownBefore) {
  EpochLine line({{3, 33, 100}, {4, 44, 120}});
  line.add({1'000, 99, 5'000, true});
  line.add({1'001, 98, 5'001});
  for (const KnownHistory& known : {KnownHistory{4, 44, 120}, KnownHistory{4, 44, 900},
                                    KnownHistory{4, 45, 900}, KnownHistory{20, 7, 900}})
    EXPECT_EQ(line.judge(known, 5'010), Standing::restored) << known.epoch;
  EXPECT_EQ(line.judge({1'000, 99, 5'000}, 5'010), Standing::ours);
  EXPECT_EQ(line.judge({1'001, 98, 5'010}, 5'010), Standing::ours);
  EXPECT_EQ(line.judge({1'001, 97, 5'010}, 5'010), Standing::diverged) << "another restore of it";
  EXPECT_EQ(line.judge({0, 0, 0}, 5'010), Standing::ours);
}

TEST(P11EpochLine, ReadsEntriesOfEarlierVersion) {
  const EpochLine line({{9, 90, 0}, {10, 100, 70}});
  EXPECT_EQ(line.judge({7, 1, 69}, 80), Standing::ours);
  EXPECT_EQ(line.judge({9, 90, 69}, 80), Standing::ours);
  EXPECT_EQ(line.judge({9, 91, 69}, 80), Standing::diverged);
  EXPECT_EQ(line.judge({9, 90, 70}, 80), Standing::older);
  EXPECT_EQ(line.broken(), "");
}

TEST(P11EpochLine, KeepsTheNewestEntries) {
  EpochLine line;
  for (uint64_t epoch = 1; epoch <= EpochLine::kMax; ++epoch)
    EXPECT_TRUE(line.add({epoch, epoch, epoch}).empty());
  EXPECT_EQ(line.add({EpochLine::kMax + 1, 1, EpochLine::kMax + 1}),
            (std::vector<EpochEntry>{{1, 1, 1}}));
  EXPECT_EQ(line.entries().size(), EpochLine::kMax);
  EXPECT_EQ(line.broken(), "");
  EXPECT_NE(EpochLine({{2, 1, 5}, {3, 1, 5}}).broken(), "");
}

}  // namespace
}  // namespace muster::core
