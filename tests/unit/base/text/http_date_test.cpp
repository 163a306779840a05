#include "base/text/http_date.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(HttpDate, IsReadBack) {
  EXPECT_EQ(http_date(784'111'777'000), "Sun, 06 Nov 1994 08:49:37 GMT");  // RFC 9110
  EXPECT_EQ(http_date(784'111'777'999), "Sun, 06 Nov 1994 08:49:37 GMT");
  for (const Millis at : {Millis{0}, Millis{951'782'400'000}, Millis{1'798'761'599'000}})
    EXPECT_EQ(parse_http_date(http_date(at)), at);
}

TEST(HttpDate, NothingElseIsRead) {
  for (const char* text : {"", "now", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
                           "Mon, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET",
                           "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT"})
    EXPECT_EQ(parse_http_date(text), std::nullopt) << text;
}

}  // namespace
}  // namespace muster
