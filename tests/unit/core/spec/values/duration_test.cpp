#include "core/spec/values/duration.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace muster::core {
namespace {

TEST(Duration, ParsesGoDurations) {
  struct {
    const char* text;
    std::optional<Millis> span_ms;
  } rows[] = {
      {"0", 0},
      {"0s", 0},
      {"100ms", 100},
      {"10s", 10'000},
      {"1h30m", 5'400'000},
      {"1.5h", 5'400'000},
      {"+2s", 2000},
      {"1us", 1},
      {"1500us", 2},
      {"7d", 604'800'000},
      {".5s", 500},
      {"1m2s3ms", 62'003},
      {"", {}},
      {"10", {}},
      {"s", {}},
      {"-1s", {}},
      {"1 s", {}},
      {"ten", {}},
      {"1x", {}},
      {".s", {}},
      {"99999999999h", {}},
      {"99999999999999999999s", {}},
      {"200000d", {}},
  };
  for (auto [text, span_ms] : rows) {
    auto parsed = parse_duration(text);
    EXPECT_EQ(parsed.ok() ? std::optional(*parsed) : std::nullopt, span_ms) << text;
  }
}

TEST(Duration, NumberWithoutUnitIsToldApart) {
  EXPECT_EQ(parse_duration("0.2").error().message,
            "must have a unit: 0.2s are seconds, 0.2m minutes, 0.2h hours");
  for (const char* other : {"", "ten", ".", "1x"})
    EXPECT_EQ(parse_duration(other).error().message,
              "must be a duration such as \"100ms\", \"10s\" or \"1h30m\"");
}

TEST(Duration, RoundTrips) {
  for (Millis span_ms :
       {Millis{0}, Millis{1}, Millis{1500}, Millis{60'000}, Millis{5'400'000}, Millis{90'061'001}})
    EXPECT_EQ(*parse_duration(duration_text(span_ms)), span_ms) << duration_text(span_ms);
  EXPECT_EQ(duration_text(5'400'000), "1h30m");
}

}  // namespace
}  // namespace muster::core
