// Framing: requests whose end is ambiguous, and connections that end with their response.
#include "api/http/framing.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

TEST(Framing, P13RefusesAmbiguousContentLength) {
  for (const char* good : {"0", "5", "007", "999999999999999999"})
    EXPECT_FALSE(refused_framing(good, {})) << good;
  for (const char* bad : {"", "-5", "+5", " 5", "5 ", "5, 5", "0x5", "1e3", "9999999999999999999"})
    EXPECT_TRUE(refused_framing(bad, {})) << bad;
  EXPECT_FALSE(refused_framing({}, {}));
  EXPECT_FALSE(refused_framing({}, "chunked"));
  EXPECT_TRUE(refused_framing("5", "chunked"));
}

TEST(Framing, P13FindsCloseAmongConnectionOptions) {
  for (const char* yes : {"close", "Close", " keep-alive ,\tCLOSE ", "upgrade,close"})
    EXPECT_TRUE(asks_to_close(yes)) << yes;
  for (const char* no : {"", "keep-alive", "closed", "not close", ",,"})
    EXPECT_FALSE(asks_to_close(no)) << no;
}

}  // namespace
}  // namespace muster::api
