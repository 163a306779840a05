// Log lines as JSON, whatever bytes a message has.
#include "base/lines/log_format.hpp"

#include "base/log.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace muster::log {
namespace {

std::string json_line(const std::string& message, int ms = 0) {
  spdlog::details::log_msg record("agent", spdlog::level::warn, message);
  record.time = spdlog::log_clock::time_point(std::chrono::milliseconds(ms));
  spdlog::memory_buf_t out;
  make_formatter(Format::json)->format(record, out);
  return {out.data(), out.size()};
}

TEST(P08LogFormat, JsonStringsAreValidWhateverTheBytes) {
  const std::pair<std::string, std::string> rows[] = {
      {"", R"("")"},
      {"plain \xc3\xa4 \xf0\x9f\x98\x80", "\"plain \xc3\xa4 \xf0\x9f\x98\x80\""},
      {R"(say "hi" \n)", R"("say \"hi\" \\n")"},
      {"a\nb\tc\r", R"("a\nb\tc\r")"},
      {std::string("\0\x1b[2J\x7f", 6), R"("\u0000\u001b[2J\u007f")"},
      {"\xc2\x9b"
       "31m",
       R"("\u009b31m")"},
      {"\xe2\x80\xae\xf3\xa0\x80\x81", R"("\u202e\udb40\udc01")"},  // reordering; a tag
      {"\x9b\xff", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
      {"\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                  // cut
      {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},  // half of a surrogate pair
  };
  for (const auto& [in, out] : rows) EXPECT_EQ(json_string(in), out);
}

TEST(P08LogFormat, ALineIsOneObject) {
  EXPECT_EQ(json_line("x\n{\"level\":\"error\"}", 1'234),
            "{\"time\":\"1970-01-01T00:00:01.234Z\",\"level\":\"warning\",\"component\":\"agent\","
            "\"message\":\"x\\n{\\\"level\\\":\\\"error\\\"}\"}\n");
  EXPECT_TRUE(json_line("", -1).starts_with("{\"time\":\"1969-12-31T23:59:59.999Z\","));
}

// In a child, since the format is that of the process.
TEST(P08LogFormat, AnErrorThatEndsTheProcessIsAnObjectToo) {
  const auto said = [](Format format) {
    EXPECT_EXIT(
        {
          setup_queued("agent", "off", format);
          info("not shown");
          say_error("muster: agent: no\n  too\n");
          std::exit(7);
        },
        testing::ExitedWithCode(7),
        format == Format::json ? "^\\{\"time\":\"[^\"]*Z\",\"level\":\"error\",\"component\":"
                                 "\"agent\",\"message\":\"agent: no\\\\n  too\"\\}\n$"
                               : "^muster: agent: no\n  too\n$");
  };
  said(Format::json);
  said(Format::text);
}

}  // namespace
}  // namespace muster::log
