// Untrusted text in log lines and stored messages.
#include "base/log.hpp"

#include "base/printable.hpp"
#include "base/seldom.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster {
namespace {

TEST(P08Log, EscapesMessageToOneLine) {
  const std::pair<std::string, std::string> rows[] = {
      {"plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80",
       "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"a\nb\tc", "a\\nb\\tc"},
      {"\x1b[2J\r\x7f", "\\x1b[2J\\x0d\\x7f"},
      {"\xc2\x9b"
       "31m",
       "\\xc2\\x9b31m"},  // CSI as a single character
      {"\x9b\xff", "\\x9b\\xff"},
      {"\xe2\x82", "\\xe2\\x82"},
      {std::string("\0", 1), "\\x00"},
  };
  for (const auto& [in, out] : rows) EXPECT_EQ(on_one_line(in), out);
  log::setup("test", "info");
  testing::internal::CaptureStderr();
  log::warn("refused: {}", "x\n2026-01-01T00:00:00.000Z info coordinator: all is well\x1b[A");
  std::string written = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 1) << written;
  EXPECT_NE(written.find("test: refused: x\\n2026"), std::string::npos) << written;
  EXPECT_NE(written.find("well\\x1b[A\n"), std::string::npos) << written;
}

TEST(P08Log, AMessageIsCutBetweenCharacters) {
  EXPECT_EQ(utf8_prefix("abc", 3), "abc");
  EXPECT_EQ(utf8_prefix("abc", 2), "ab");
  EXPECT_EQ(utf8_prefix("a\xe2\x82\xac", 3), "a");
  EXPECT_EQ(utf8_prefix("a\xe2\x82\xac", 4), "a\xe2\x82\xac");
  EXPECT_EQ(utf8_prefix("a\xff"
                        "b\xc0\x80",
                        100),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(utf8_prefix("\xed\xa0\x80", 3), "\xef\xbf\xbd");  // half of a surrogate pair
}

TEST(P08Log, RepeatedMessageIsRateLimitedAndCounted) {
  Seldom seldom;
  EXPECT_EQ(seldom.due(5), "");
  for (Millis now = 5; now < 10'005; now += 10) EXPECT_EQ(seldom.due(now), std::nullopt);
  EXPECT_EQ(seldom.due(10'005), " (and 1000 more since the last such line)");
  EXPECT_EQ(seldom.due(10'006), std::nullopt);
  EXPECT_EQ(seldom.due(90'000), " (and 1 more since the last such line)");
  EXPECT_EQ(seldom.due(100'000), "");
}

}  // namespace
}  // namespace muster
