// UsedNonces: what was used stays used as long as it is valid.
#include "trust/store/used_nonces.hpp"

#include <gtest/gtest.h>

namespace muster::coordinator {
namespace {

using Use = UsedNonces::Use;

TEST(UsedNonces, AcceptEachNonceOncePerUser) {
  UsedNonces used;
  EXPECT_EQ(used.use(1000, "a", 60'000, 0), Use::first);
  EXPECT_EQ(used.use(1000, "a", 60'000, 60'000), Use::again);
  EXPECT_EQ(used.use(1001, "a", 60'000, 0), Use::first) << "of another user";
  EXPECT_EQ(used.use(1000, "b", 60'000, 0), Use::first);
}

TEST(UsedNonces, ForgetExpiredNonces) {
  UsedNonces used;
  used.use(1000, "a", 1'000, 0);
  used.use(1000, "b", 2'000, 0);
  used.use(1001, "c", 3'000, 0);
  used.use(1002, "d", 9'000, 2'500);
  EXPECT_EQ(used.size(), 2u);
  EXPECT_EQ(used.use(1001, "c", 3'000, 2'500), Use::again);
  EXPECT_EQ(used.use(1000, "b", 9'000, 2'500), Use::first);
}

TEST(UsedNonces, LimitNoncesPerUser) {
  UsedNonces used;
  for (size_t i = 0; i < UsedNonces::kMaxOfOne; ++i)
    ASSERT_EQ(used.use(1000, std::to_string(i), 60'000, 0), Use::first);
  EXPECT_EQ(used.use(1000, "more", 60'000, 0), Use::too_many);
  EXPECT_EQ(used.use(1000, "7", 60'000, 0), Use::again) << "nothing is forgotten for it";
  EXPECT_EQ(used.use(1001, "more", 60'000, 0), Use::first);
}

TEST(UsedNonces, RefuseNewNoncesRatherThanForgetValidOnes) {
  UsedNonces used;
  for (size_t i = 0; i < UsedNonces::kMax; ++i)
    ASSERT_EQ(used.use(static_cast<uid_t>(i / 500), std::to_string(i), 60'000, 0), Use::first);
  EXPECT_EQ(used.use(9'999, "more", 60'000, 0), Use::too_many);
  EXPECT_EQ(used.use(0, "0", 60'000, 0), Use::again);
  EXPECT_EQ(used.use(9'999, "more", 120'000, 61'000), Use::first);
}

}  // namespace
}  // namespace muster::coordinator
