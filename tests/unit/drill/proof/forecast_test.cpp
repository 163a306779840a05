// The forecast of a canary, computed by core/, against the canary's own rules.
#include "drill/proof/forecast.hpp"

#include <gtest/gtest.h>

namespace muster::cli::drill {
namespace {

Canary canary_of(uint64_t seed) {
  Canary canary;
  canary.indexes = 50;
  canary.seed = seed;
  return canary;
}

TEST(Forecast, PredictsCountsOfCanary) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Canary canary = canary_of(seed);
    const Forecast expected = forecast(canary);
    uint64_t failed_pods = 0;
    for (uint32_t i = 0; i < canary.indexes; ++i) {
      const uint32_t failing = failing_attempts(canary, i);
      EXPECT_EQ(expected.failed.contains(i), failing > kCanaryRetries);
      EXPECT_EQ(expected.succeeded.contains(i), failing <= kCanaryRetries);
      failed_pods += failing;
    }
    EXPECT_EQ(expected.failed_pods, failed_pods);
    EXPECT_EQ(expected.condition, "Failed") << "an index always fails";
    EXPECT_EQ(expected.attempts.size(), expected_ends(canary));
  }
}

TEST(Forecast, PredictsBackoffDelays) {
  const Canary canary = canary_of(4);
  const Forecast expected = forecast(canary);
  const auto always = static_cast<uint32_t>(canary.seed % canary.indexes);
  EXPECT_EQ(expected.attempts.at({always, 0}).delay_ms, 0);
  EXPECT_EQ(expected.attempts.at({always, 1}).delay_ms, kCanaryBackoffBase);
  EXPECT_EQ(expected.attempts.at({always, 2}).delay_ms, 2 * kCanaryBackoffBase);
}

TEST(Forecast, DisruptionsAddUncountedAttempts) {
  const Canary canary = canary_of(4);
  const Forecast calm = forecast(canary);
  uint32_t plain = 0;
  while (failing_attempts(canary, plain) != 0) ++plain;
  const Forecast disturbed = forecast(canary, {{{plain, 0}, Disturbance::disrupted}});
  EXPECT_EQ(disturbed.succeeded, calm.succeeded);
  EXPECT_EQ(disturbed.failed_pods, calm.failed_pods);
  EXPECT_EQ(disturbed.attempts.size(), calm.attempts.size() + 1);
  EXPECT_EQ(disturbed.attempts.at({plain, 0}).counted, "ignored");
  EXPECT_EQ(disturbed.attempts.at({plain, 1}).counted, "succeeded");
  const Forecast returned = forecast(canary, {{{plain, 0}, Disturbance::returned}});
  EXPECT_FALSE(returned.attempts.contains({plain, 0}));
  EXPECT_EQ(returned.attempts.at({plain, 1}).counted, "succeeded");
}

}  // namespace
}  // namespace muster::cli::drill
