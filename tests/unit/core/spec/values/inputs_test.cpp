#include "core/spec/values/inputs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::core {
namespace {

using testing::ElementsAre;

InputTable table(const std::string& bytes) {
  auto read = InputTable::of(bytes);
  EXPECT_TRUE(read) << bytes;
  return read ? *read : InputTable();
}

TEST(Inputs, EachLineIsInputOfOneIndex) {
  for (const char* text : {"a\nb c\n", "a\nb c"}) {
    const InputTable two = table(text);
    EXPECT_EQ(two.size(), 2u) << text;
    EXPECT_THAT(*two.row(0), ElementsAre("a"));
    EXPECT_THAT(*two.row(1), ElementsAre("b c"));
    EXPECT_FALSE(two.row(2));
  }
  EXPECT_EQ(table("").size(), 0u);
}

TEST(Inputs, EmptyLinesAreInputs) {
  const InputTable three = table("\n\nx\n");
  EXPECT_EQ(three.size(), 3u);
  EXPECT_THAT(*three.row(0), ElementsAre(""));
  EXPECT_THAT(*three.row(2), ElementsAre("x"));
}

TEST(Inputs, TabsSeparateColumns) {
  EXPECT_THAT(*table("a\t\tc\n").row(0), ElementsAre("a", "", "c"));
}

TEST(Inputs, PackedTableRoundTrips) {
  const std::vector<Input> rows = {{"a\tb", "line\nbreak"}, {"", ""}, {"x", "y"}};
  EXPECT_FALSE(text_of(rows));
  const InputTable read = table(packed(rows));
  ASSERT_EQ(read.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(*read.row(i), rows[i]) << i;
  EXPECT_EQ(table(packed({})).size(), 0u);
}

TEST(Inputs, TextTableRoundTrips) {
  const std::vector<Input> rows = {{"a", "b"}, {"", ""}, {"x", "y z"}};
  const auto text = text_of(rows);
  ASSERT_TRUE(text);
  const InputTable read = table(*text);
  ASSERT_EQ(read.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(*read.row(i), rows[i]) << i;
}

TEST(Inputs, P20RangesRoundTripAndMalformedOnesAreRejected) {
  const struct {
    std::vector<uint32_t> numbers;
    const char* ranges;
  } cases[] = {{{7}, "7"},
               {{1, 2, 3}, "1-3"},
               {{0, 4, 8, 20}, "0-8:4,20"},
               {{1, 9}, "1,9"},
               {{1, 2, 9, 10, 4294967295u}, "1-2,9-10,4294967295"}};
  for (const auto& one : cases) {
    const std::string bytes = ranges_of(one.numbers);
    EXPECT_EQ(bytes, std::string("muster inputs 1\n0 ") + one.ranges + "\n");
    const InputTable read = table(bytes);
    ASSERT_EQ(read.size(), one.numbers.size());
    for (size_t i = 0; i < read.size(); ++i)
      EXPECT_THAT(*read.row(i), ElementsAre(std::to_string(one.numbers[i])));
    EXPECT_FALSE(read.row(read.size()));
  }
  for (const char* bad : {"", "1", "3-1\n", "1-\n", "1-3:0\n", "1,1\n", "2,1\n", "1-3,3\n", "1,\n",
                          "x\n", "-1\n", "4294967296\n", "1\n\n", "0-4294967295\n"})
    EXPECT_FALSE(InputTable::of(std::string("muster inputs 1\n0 ") + bad)) << bad;
}

TEST(Inputs, DamagedTableIsRejected) {
  const std::string good = packed({{"a", "b"}, {"c", "d"}});
  EXPECT_TRUE(InputTable::of(good));
  for (const std::string& bad :
       {good.substr(0, good.size() - 1), good.substr(0, good.size() - 2),
        std::string("muster inputs 1\n"), std::string("muster inputs 1\n0\n"),
        std::string("muster inputs 1\n99999999999999999999\n"),
        std::string("muster inputs 1\nx\n")})
    EXPECT_FALSE(InputTable::of(bad)) << bad;
}

TEST(Inputs, PartsAreThoseOfParallel) {
  const struct {
    const char *value, *reference, *expected;
  } cases[] = {
      {"d/e/sun.tar.gz", "MUSTER_INPUT", "d/e/sun.tar.gz"},
      {"d/e/sun.tar.gz", "MUSTER_INPUT.", "d/e/sun.tar"},
      {"d/e/sun.tar.gz", "MUSTER_INPUT/", "sun.tar.gz"},
      {"d/e/sun.tar.gz", "MUSTER_INPUT//", "d/e"},
      {"d/e/sun.tar.gz", "MUSTER_INPUT/.", "sun.tar"},
      {"d.d/sun", "MUSTER_INPUT.", "d.d/sun"},
      {".bashrc", "MUSTER_INPUT.", ".bashrc"},
      {"sun", "MUSTER_INPUT//", "."},
      {"/sun", "MUSTER_INPUT//", "/"},
      {"sun", "MUSTER_INPUT#", "8"},
      {"sun", "MUSTER_INPUT_1/", "sun"},
  };
  for (const auto& one : cases)
    EXPECT_EQ(input_value({one.value}, 7, one.reference), one.expected)
        << one.value << " " << one.reference;
}

TEST(Inputs, ColumnsAreNumbered) {
  const Input row = {"a", "d/b.c"};
  EXPECT_EQ(input_value(row, 0, "MUSTER_INPUT"), "a\td/b.c");
  EXPECT_EQ(input_value(row, 0, "MUSTER_INPUT_2/."), "b");
  for (const char* unknown : {"MUSTER_INPUT_3", "MUSTER_INPUT_0", "MUSTER_INPUT_", "MUSTER_INPUTS",
                              "MUSTER_INPUT_2%", "MUSTER_NODE", ""})
    EXPECT_FALSE(input_value(row, 0, unknown)) << unknown;
}

}  // namespace
}  // namespace muster::core
