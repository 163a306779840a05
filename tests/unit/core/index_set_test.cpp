// IndexSet against std::set under random operations, and the text forms of job-semantics 2.3 and
// 2.4.
#include "core/index_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <set>

namespace muster::core {
namespace {

std::set<uint32_t> members(const IndexSet& set) {
  std::set<uint32_t> all;
  uint64_t before = 0;
  bool first_interval = true;
  for (auto [first, last] : set.intervals()) {
    EXPECT_LE(first, last);
    if (!first_interval) {
      EXPECT_GT(first, before + 1) << "intervals touch";
    }
    first_interval = false;
    before = last;
    for (uint64_t i = first; i <= last; ++i) all.insert(static_cast<uint32_t>(i));
  }
  return all;
}

TEST(IndexSet, BehavesLikeStdSet) {
  constexpr uint32_t kRange = 80;
  std::mt19937 random(4711);
  for (int round = 0; round < 200; ++round) {
    IndexSet set;
    std::set<uint32_t> model;
    for (int step = 0; step < 60; ++step) {
      uint32_t i = random() % kRange;
      switch (random() % 6) {
        case 0:
        case 1:
          EXPECT_EQ(set.insert(i), model.insert(i).second);
          break;
        case 2:
        case 3:
          EXPECT_EQ(set.erase(i), model.erase(i) == 1);
          break;
        case 4: {
          uint32_t last = i + random() % 9;
          set.insert_range(i, last);
          for (uint32_t k = i; k <= last; ++k) model.insert(k);
          break;
        }
        default:
          if (random() % 4 != 0) break;
          set.erase_from(i);
          model.erase(model.lower_bound(i), model.end());
      }
      ASSERT_EQ(members(set), model);
      ASSERT_EQ(set.size(), model.size());
      ASSERT_EQ(set.contains(i), model.contains(i));
      uint64_t missing = i;
      while (model.contains(static_cast<uint32_t>(missing))) ++missing;
      ASSERT_EQ(set.lowest_missing(i), missing);
      auto next = model.lower_bound(i);
      ASSERT_EQ(set.lowest(i), next == model.end() ? uint64_t{1} << 32 : *next);
    }
    EXPECT_EQ(IndexSet::parse_lenient(set.text(), 1000), set) << set.text();
    auto strict = IndexSet::parse_strict(set.text(), 1000);
    ASSERT_TRUE(strict) << set.text();
    EXPECT_EQ(*strict, set);
  }
}

TEST(IndexSet, DifferenceHasWhatIsNotInTheOther) {
  struct {
    const char *of, *less, *rest;
  } cases[] = {
      {"", "1-3", ""},
      {"1-3", "", "1-3"},
      {"1-9", "1-9", ""},
      {"1-9", "0-3,5", "4,6-9"},
      {"1,3,5-7", "2,4,6", "1,3,5,7"},
      {"2-4,8-9", "4-8", "2,3,9"},
      {"4294967290-4294967295", "4294967292", "4294967290,4294967291,4294967293-4294967295"},
  };
  for (const auto& [of, less, rest] : cases) {
    const auto set = [](const char* text) { return IndexSet::parse_lenient(text, INT64_MAX); };
    EXPECT_EQ(set(of).without(set(less)).text(), rest) << of << " without " << less;
  }
}

TEST(IndexSet, ReachesTheLastIndex) {
  IndexSet set;
  EXPECT_TRUE(set.insert(UINT32_MAX));
  set.insert_range(0, UINT32_MAX - 1);
  EXPECT_EQ(set.size(), uint64_t{1} << 32);
  EXPECT_EQ(set.intervals().size(), 1u);
  EXPECT_EQ(set.lowest_missing(), uint64_t{1} << 32);
  EXPECT_TRUE(set.erase(UINT32_MAX));
  EXPECT_EQ(set.lowest_missing(), UINT32_MAX);
}

TEST(IndexSet, InsertsAllOfAnotherSet) {
  IndexSet a = IndexSet::parse_lenient("0-3,8", 20);
  a.insert_all(IndexSet::parse_lenient("4,6-7,12", 20));
  EXPECT_EQ(a.text(), "0-4,6-8,12");
  EXPECT_EQ(a.size(), 9u);
}

TEST(IndexSet, PrintsRuns) {
  EXPECT_EQ(IndexSet().text(), "");
  EXPECT_EQ(IndexSet::parse_lenient("1,3,4,5,7", 10).text(), "1,3-5,7");
  EXPECT_EQ(IndexSet::parse_lenient("0,1", 10).text(), "0,1");
}

TEST(IndexSet, ReadsLeniently) {
  struct {
    const char* text;
    int64_t completions;
    const char* read;
  } rows[] = {
      {"", 5, ""},        {"1-3,4", 10, "1-4"},    {"1,x,3", 10, "1,3"},
      {"1-x,3", 10, "3"}, {"1,3-8,9", 5, "1,3,4"}, {"7,1", 5, ""},
      {"0-9", 0, ""},     {"3", 4, "3"},
  };
  for (auto [text, completions, read] : rows)
    EXPECT_EQ(IndexSet::parse_lenient(text, completions).text(), read) << text;
}

TEST(IndexSet, ReadsStrictly) {
  struct {
    const char* text;
    uint64_t size;
    const char* reason;
  } rows[] = {
      {"", 0, ""},
      {"1,2,3", 3, ""},
      {"1-3,4", 4, ""},
      {"007,+8", 2, ""},
      {"9", 1, ""},
      {"10", 0, "too large index: \"10\""},
      {"2-10", 0, "too large index: \"10\""},
      {" 1", 0, "cannot convert string to integer for index: \" 1\""},
      {"-1", 0, "cannot convert string to integer for index: \"\""},
      {"1,", 0, "cannot convert string to integer for index: \"\""},
      {"1,a", 0, "cannot convert string to integer for index: \"a\""},
      {"99999999999999999999", 0,
       "cannot convert string to integer for index: \"99999999999999999999\""},
      {"3,1", 0, "non-increasing order, previous: 3, current: 1"},
      {"3-3", 0, "non-increasing order, previous: 3, current: 3"},
      {"1-3,3", 0, "non-increasing order, previous: 3, current: 3"},
      {"1-2-3", 0,
       "the fragment \"1-2-3\" violates the requirement that an index interval can have at most "
       "two parts separated by '-'"},
  };
  for (auto [text, size, reason] : rows) {
    auto set = IndexSet::parse_strict(text, 10);
    EXPECT_EQ(set.ok() ? "" : set.error().message, reason) << text;
    if (set) {
      EXPECT_EQ(set->size(), size) << text;
    }
  }
}

}  // namespace
}  // namespace muster::core
