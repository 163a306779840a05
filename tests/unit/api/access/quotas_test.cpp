#include "api/access/quotas.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

Caller caller(uint32_t uid, Role role = Role::user) {
  Caller c;
  c.role = role;
  c.who.uid = uid;
  return c;
}

TEST(Quotas, RequestAllowanceRefillsOverTime) {
  Quotas quotas({.requests_max = 10});
  auto taken = [&](Millis now) {
    int count = 0;
    while (quotas.take_request(caller(1), now)) ++count;
    return count;
  };
  EXPECT_EQ(taken(1'000), 20);  // a burst of two seconds' worth
  EXPECT_EQ(taken(1'000), 0);
  EXPECT_EQ(taken(1'500), 5);
  EXPECT_EQ(taken(1'400), 0);  // a clock that goes back adds nothing
  EXPECT_EQ(taken(600'000), 20);
  EXPECT_TRUE(quotas.take_request(caller(2), 600'000)) << "each user has an allowance";
  EXPECT_TRUE(quotas.take_request(caller(1, Role::operators), 600'000));
  EXPECT_TRUE(quotas.take_request(caller(1, Role::admin), 600'000));
}

TEST(Quotas, JobsBeingCreatedCountAgainstQuota) {
  Quotas quotas({.jobs_max = 3});
  EXPECT_TRUE(quotas.take_job(caller(1), 1));
  EXPECT_TRUE(quotas.take_job(caller(1), 1));
  EXPECT_FALSE(quotas.take_job(caller(1), 1));
  EXPECT_TRUE(quotas.take_job(caller(2), 1));
  EXPECT_TRUE(quotas.take_job(caller(1, Role::operators), 100));
  quotas.arrived(caller(1));
  EXPECT_FALSE(quotas.take_job(caller(1), 2));
  EXPECT_TRUE(quotas.take_job(caller(1), 1)) << "it was not created after all";
  quotas.arrived(caller(9));
}

TEST(Quotas, UnsetLimitsRefuseNothing) {
  Quotas quotas({});
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_TRUE(quotas.take_request(caller(1), 0));
    EXPECT_TRUE(quotas.take_job(caller(1), 1'000'000));
  }
}

}  // namespace
}  // namespace muster::api
