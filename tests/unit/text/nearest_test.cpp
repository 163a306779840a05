#include "text/nearest.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Nearest, IsTheWordThatWasMeant) {
  EXPECT_EQ(nearest("node-gracee", {"data-dir", "node-grace"}), "node-grace");
  EXPECT_EQ(nearest("paralelism", {"completions", "parallelism"}), "parallelism");
  EXPECT_EQ(nearest("zzz", {"data-dir", "node-grace"}), "");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(did_you_mean("jbo", {"job", "pod"}), "");
  EXPECT_EQ(did_you_mean("jobb", {"job", "pod"}), "; did you mean job?");
}

// 10^7 x 4 steps of an edit distance would take seconds, and clients choose the word.
TEST(Nearest, ALongWordIsNotCompared) {
  EXPECT_EQ(nearest(std::string(10'000'000, 'a'), {"name", std::string(100, 'a')}), "");
}

}  // namespace
}  // namespace muster
