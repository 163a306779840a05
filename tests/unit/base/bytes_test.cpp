#include "base/bytes.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

// The vectors that its authors publish.
TEST(Fnv, KnownHashes) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8);
}

TEST(Fnv, PartsAreAsTheWhole) {
  EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar"));
}

TEST(Fnv, BytesBeyondAsciiAreUnsigned) {
  EXPECT_EQ(fnv1a("\xff"), (kFnvBasis ^ 0xff) * 0x100000001b3);
}

}  // namespace
}  // namespace muster
