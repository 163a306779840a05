// That a state of a job can be restored after any number of later ones, and what states cost.
#include "core/job/shown/past.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace muster::core {
namespace {

TEST(IndexTrail, EveryStateCanBeRestored) {
  std::mt19937_64 random{1};
  IndexTrail trail;
  IndexSet now;
  std::vector<std::pair<IndexTrail::At, IndexSet>> taken;
  for (int round = 0; round < 500; ++round) {
    IndexSet grown;
    const bool lost = random() % 50 == 0;
    if (lost) now.erase_from(static_cast<uint32_t>(random() % 2000));
    for (size_t n = random() % 6; n > 0; --n) {
      const auto index = static_cast<uint32_t>(random() % 2000);
      if (now.insert(index)) grown.insert(index);
    }
    size_t bytes = 0;
    taken.emplace_back(trail.take(now, grown, lost, bytes), now);
  }
  for (const auto& [at, then] : taken) ASSERT_EQ(at.restore(), then);
}

// Even if the set falls into as many intervals as it can.
TEST(IndexTrail, BytesGrowWithTheChangesAndNotWithTheSet) {
  constexpr uint32_t kIndexes = 40'000;
  std::vector<uint32_t> order(kIndexes);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), std::mt19937_64{2});
  IndexTrail trail;
  IndexSet now;
  size_t bytes = 0;
  for (const uint32_t index : order) {
    now.insert(2 * index);  // none has a neighbor
    IndexSet grown;
    grown.insert(2 * index);
    trail.take(now, grown, false, bytes);
  }
  EXPECT_EQ(now.intervals().size(), kIndexes);
  EXPECT_LT(bytes, kIndexes * 8 * 5);
}

TEST(JobTrail, CancelledIndexesAreRestored) {
  auto object = std::make_shared<JobObject>();
  object->spec.completion_mode = "Indexed";
  object->spec.completions = 9;
  JobTrail trail;
  std::vector<std::pair<JobPast, IndexSet>> taken;
  for (const char* text : {"", "3", "1,3", "1,3", "3", ""}) {
    JobState state;
    state.completions = 9;
    state.cancelled_indexes = IndexSet::parse_lenient(text, 9);
    const IndexSet then = state.cancelled_indexes;
    taken.emplace_back(trail.take(Job(1, object, std::move(state), PodCounts{})), then);
  }
  for (const auto& [past, then] : taken)
    EXPECT_EQ(past.restore().state().cancelled_indexes, then) << then.text();
}

}  // namespace
}  // namespace muster::core
