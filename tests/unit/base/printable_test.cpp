// Text from outside, safe to store, to log and to show.
#include "base/printable.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Printable, P12TerminalControlsAreEscaped) {
  EXPECT_EQ(visible("\x1b[2J\x07\x7f\r"), "\\u001b[2J\\u0007\\u007f\\r");
  EXPECT_EQ(visible("\xc2\x9b[2J"), "\\u009b[2J") << "CSI as one character";
  EXPECT_EQ(visible("a\x9b[2J"), "a\\x9b[2J") << "and as a byte that is no UTF-8";
  EXPECT_EQ(visible("line\n\tline\n"), "line\n\tline\n");
}

TEST(Printable, P12BidiAndInvisibleCharactersAreEscaped) {
  EXPECT_EQ(visible("a\u202e\u2066\u200e\u200f\u061cb"), "a\\u202e\\u2066\\u200e\\u200f\\u061cb");
  EXPECT_EQ(visible("\u00ad\u200b\u2028\u2060\ufeff\u3164"),
            "\\u00ad\\u200b\\u2028\\u2060\\ufeff\\u3164");
  EXPECT_EQ(visible("\U000e0041"), "\\udb40\\udc41");
  EXPECT_EQ(visible("\U000e0041", Escapes::yaml), "\\U000e0041");
}

TEST(Printable, P12PlainTextIsUnchanged) {
  for (const char* text : {"", "plain", "Grüße, 日本語 \U0001f600 \\u202e", "שלום"}) {
    EXPECT_EQ(visible(text), text);
    EXPECT_EQ(on_one_line(text), text);
    EXPECT_FALSE(has_invisible(text));
  }
}

TEST(Printable, P12LogLineIsEscaped) {
  EXPECT_EQ(on_one_line("a\nb\x1b\xc2\x9b"), "a\\nb\\x1b\\xc2\\x9b");
  EXPECT_EQ(on_one_line("a\u202eb"), "a\\u202eb");
}

}  // namespace
}  // namespace muster
