// HistorySeal: only the holder of the key can make one, and each is for one history of one cluster.
#include "trust/store/history_seal.hpp"

#include <gtest/gtest.h>

namespace muster::coordinator {
namespace {

TEST(HistorySeal, IsForOneHistoryOfOneClusterUnderOneKey) {
  const std::string key(64, 'a');
  const HistorySeal seals(key, "c1");
  const core::KnownHistory history{3, 11, 40};
  const std::string seal = seals.of(history);
  EXPECT_EQ(seal.size(), 64u);
  EXPECT_TRUE(seals.is_of(history, seal));
  EXPECT_TRUE(HistorySeal(key, "c1").is_of(history, seal)) << "a copy of the data-dir";
  for (const core::KnownHistory& other :
       {core::KnownHistory{4, 11, 40}, {3, 12, 40}, {3, 11, 41}, {3, 1'140, 0}, {31, 1, 40}})
    EXPECT_FALSE(seals.is_of(other, seal)) << other.epoch << " " << other.nonce;
  EXPECT_FALSE(HistorySeal(key, "c2").is_of(history, seal));
  EXPECT_FALSE(HistorySeal(std::string(64, 'b'), "c1").is_of(history, seal));
  EXPECT_FALSE(seals.is_of(history, ""));
  EXPECT_FALSE(seals.is_of(history, seal.substr(0, 63)));
}

TEST(HistorySeal, WithoutAKeyNothingIsSealed) {
  const HistorySeal none("", "c1");
  EXPECT_EQ(none.of({3, 11, 40}), "");
  EXPECT_FALSE(none.is_of({3, 11, 40}, ""));
}

}  // namespace
}  // namespace muster::coordinator
