#include "base/text/nearest.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Nearest, FindsWordForTypo) {
  EXPECT_EQ(nearest("node-gracee", {"data-dir", "node-grace"}), "node-grace");
  EXPECT_EQ(nearest("paralelism", {"completions", "parallelism"}), "parallelism");
  EXPECT_EQ(nearest("zzz", {"data-dir", "node-grace"}), "");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(nearest("valeu", {"name", "value"}), "value") << "letters that changed places";
  EXPECT_EQ(did_you_mean("jbo", {"job", "pod"}), "; did you mean job?");
  EXPECT_EQ(did_you_mean("obx", {"job", "pod"}), "");
}

// Clients choose the word, and comparing these two would take hours.
TEST(Nearest, WordsOfVeryDifferentLengthsAreNotCompared) {
  EXPECT_EQ(nearest(std::string(3'000'000, 'a'), {std::string(1'000'000, 'a')}), "");
}

}  // namespace
}  // namespace muster
