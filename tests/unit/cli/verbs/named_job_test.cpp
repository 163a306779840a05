// Named jobs: the number that a name gets, found with few questions.
#include "cli/verbs/run/named_job.hpp"

#include <gtest/gtest.h>

#include <set>

namespace muster::cli {
namespace {

TEST(NamedJob, NumberIsAppendedWithinTheLimit) {
  EXPECT_EQ(numbered_name("sweep", 2), "sweep-2");
  EXPECT_EQ(numbered_name(std::string(61, 'x'), 10), std::string(49, 'x') + "-10");
  EXPECT_EQ(numbered_name(std::string(48, 'x') + "-yz", 10), std::string(48, 'x') + "-10");
}

TEST(NamedJob, FirstFreeNumberIsFoundWithFewQuestions) {
  for (const uint32_t last : {1u, 2u, 3u, 4u, 7u, 8u, 1000u, 4096u, 100'000u}) {
    int asked = 0;
    const auto free = free_number([&](uint32_t number) -> Result<bool> {
      ++asked;
      return number <= last;
    });
    ASSERT_TRUE(free);
    EXPECT_EQ(*free, last + 1);
    EXPECT_LE(asked, 40) << last;
  }
  EXPECT_FALSE(free_number([](uint32_t) -> Result<bool> { return invalid("no"); }));
}

}  // namespace
}  // namespace muster::cli
