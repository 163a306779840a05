// The codes by which the web page logs in.
#include "api/access/logins.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

constexpr Millis kLoginNow = 1'000'000;

Logins::Login of(uint32_t uid) {
  return {uid, "u" + std::to_string(uid), kLoginNow + Logins::kLifeMs, kLoginNow + 3'600'000};
}

TEST(LoginTest, ACodeWorksOnce) {
  Logins logins;
  EXPECT_TRUE(logins.add("a", of(1), kLoginNow));
  EXPECT_TRUE(logins.add("b", of(2), kLoginNow));
  EXPECT_FALSE(logins.take("c", kLoginNow));
  const auto login = logins.take("b", kLoginNow);
  ASSERT_TRUE(login);
  EXPECT_EQ(login->uid, 2u);
  EXPECT_EQ(login->name, "u2");
  EXPECT_FALSE(logins.take("b", kLoginNow));
  EXPECT_TRUE(logins.take("a", kLoginNow));
}

TEST(LoginTest, ACodeExpires) {
  Logins logins;
  EXPECT_TRUE(logins.add("a", of(1), kLoginNow));
  EXPECT_TRUE(logins.add("b", of(1), kLoginNow));
  EXPECT_TRUE(logins.take("a", kLoginNow + Logins::kLifeMs - 1));
  EXPECT_FALSE(logins.take("b", kLoginNow + Logins::kLifeMs));
}

TEST(LoginTest, AUserHasTenUnusedCodesAtMost) {
  Logins logins;
  for (size_t i = 0; i < Logins::kMaxOfOne; ++i)
    EXPECT_TRUE(logins.add("a" + std::to_string(i), of(1), kLoginNow));
  EXPECT_FALSE(logins.add("more", of(1), kLoginNow));
  EXPECT_TRUE(logins.add("other", of(2), kLoginNow));
  EXPECT_TRUE(logins.take("a0", kLoginNow));
  EXPECT_TRUE(logins.add("more", of(1), kLoginNow));
  auto late = of(1);
  late.expires_ms += Logins::kLifeMs;
  EXPECT_TRUE(logins.add("late", late, kLoginNow + Logins::kLifeMs)) << "expired ones do not count";
}

}  // namespace
}  // namespace muster::api
