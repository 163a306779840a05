// LogLines: lines of several outputs in one order, with their times.
#include "api/routes/pods/log_lines.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

constexpr Millis kWrittenAt = 1'700'000'000'000;  // 2023-11-14T22:13:20Z

TEST(LogLines, TimesHaveNanoseconds) {
  EXPECT_EQ(log_time_text(kWrittenAt), "2023-11-14T22:13:20.000000000Z");
  EXPECT_EQ(log_time_text(kWrittenAt + 7), "2023-11-14T22:13:20.007000000Z");
}

TEST(LogLines, ASingleOutputPassesAsItIs) {
  LogLines lines(1, false);
  EXPECT_TRUE(lines.wants(0));
  lines.add(0, 0, "one\ntw", {}, 0);
  EXPECT_FALSE(lines.wants(0));
  EXPECT_EQ(lines.take(), "one\ntw");
  EXPECT_TRUE(lines.wants(0));
  lines.add(0, 6, "o", {}, 0);
  lines.pause(0);
  EXPECT_EQ(lines.take(), "o");
  EXPECT_TRUE(lines.paused());
}

TEST(LogLines, EachLineHasTheTimeOfTheMarkBeyondItsEnd) {
  LogLines lines(1, true);
  lines.add(0, 10, "a\nb\nc\nd\n", {{12, kWrittenAt}, {13, kWrittenAt + 1}, {18, kWrittenAt + 2}},
            kWrittenAt + 9);
  lines.end(0);
  EXPECT_EQ(lines.take(),
            "2023-11-14T22:13:20.000000000Z a\n"
            "2023-11-14T22:13:20.002000000Z b\n"
            "2023-11-14T22:13:20.002000000Z c\n"
            "2023-11-14T22:13:20.002000000Z d\n")
      << "the second mark was made within \"b\"";
}

TEST(LogLines, WithoutMarksLinesHaveTheOtherTime) {
  LogLines lines(1, true);
  lines.add(0, 0, "a\n", {}, kWrittenAt);
  lines.end(0);
  EXPECT_EQ(lines.take(), "2023-11-14T22:13:20.000000000Z a\n");
}

TEST(LogLines, ALineThatIsNotCompleteIsKeptBack) {
  LogLines lines(1, true);
  lines.add(0, 0, "on", {{2, kWrittenAt}}, 0);
  lines.pause(0);
  EXPECT_EQ(lines.take(), "");
  EXPECT_TRUE(lines.wants(0));
  lines.add(0, 2, "e\ntwo", {{7, kWrittenAt + 5}}, 0);
  EXPECT_EQ(lines.take(), "2023-11-14T22:13:20.005000000Z one\n");
  EXPECT_TRUE(lines.wants(0));
  lines.end(0);
  EXPECT_EQ(lines.take(), "2023-11-14T22:13:20.005000000Z two") << "nothing follows";
}

TEST(LogLines, ALongLineComesInPiecesWithOneTime) {
  LogLines lines(1, true);
  const std::string piece(LogLines::kPiece, 'x');
  lines.add(0, 0, piece + "y", {{static_cast<int64_t>(piece.size()) + 1, kWrittenAt}}, 0);
  EXPECT_FALSE(lines.wants(0));
  EXPECT_EQ(lines.take(), "2023-11-14T22:13:20.000000000Z " + piece);
  lines.add(0, static_cast<int64_t>(piece.size()) + 1, "z\n", {}, kWrittenAt);
  lines.end(0);
  EXPECT_EQ(lines.take(), "yz\n");
}

TEST(LogLines, OutputsAreMergedByTime) {
  LogLines lines(2, false);
  lines.add(0, 0, "a\nd\n", {{2, kWrittenAt}, {4, kWrittenAt + 3}}, 0);
  EXPECT_EQ(lines.take(), "") << "the second may have an earlier line";
  EXPECT_TRUE(lines.wants(1));
  lines.add(1, 0, "b\nc\n", {{2, kWrittenAt}, {4, kWrittenAt + 2}}, 0);
  EXPECT_EQ(lines.take(), "a\nb\nc\n")
      << "of the same time, the first output's; then the second may go on";
  lines.end(1);
  EXPECT_EQ(lines.take(), "d\n");
  lines.end(0);
  EXPECT_TRUE(lines.paused());
}

TEST(LogLines, AnOutputThatIsPausedHoldsUpNobody) {
  LogLines lines(2, false);
  lines.add(0, 0, "a\n", {{2, kWrittenAt}}, 0);
  lines.pause(1);
  EXPECT_EQ(lines.take(), "a\n");
  lines.pause(0);
  EXPECT_TRUE(lines.paused());
  EXPECT_TRUE(lines.wants(0) && lines.wants(1));
}

}  // namespace
}  // namespace muster::api
