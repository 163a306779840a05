#include "core/spec/values/quantity.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace muster::core {
namespace {

TEST(Quantity, ParsesToThousandths) {
  struct {
    const char* text;
    std::optional<int64_t> milli;
  } rows[] = {
      {"0", 0},
      {"1", 1000},
      {"500m", 500},
      {"1.5", 1500},
      {".5", 500},
      {"5.", 5000},
      {"+2", 2000},
      {"-1", -1000},
      {"1k", 1'000'000},
      {"2Ki", 2'048'000},
      {"1.5Gi", 1'610'612'736'000},
      {"1e3", 1'000'000},
      {"1E3", 1'000'000},
      {"1e-3", 1},
      {"12E", INT64_MAX},
      {"1E", INT64_MAX},
      {"1.00000000000000000000Ei", INT64_MAX},
      {"9999999999999999999999999", INT64_MAX},
      {"1e99", INT64_MAX},
      {"0e99", 0},
      {"1n", 1},  // rounded up
      {"1u", 1},
      {"1.0000000000000000000000001m", 2},
      {"1e-99", 1},
      {"1.0005", 1001},
      {"", {}},
      {".", {}},
      {"m", {}},
      {"1K", {}},
      {"1ki", {}},
      {"1 Gi", {}},
      {"1.2.3", {}},
      {"two", {}},
      {"1e", {}},
      {"1Gib", {}},
      {"--1", {}},
  };
  for (auto [text, milli] : rows) {
    auto parsed = parse_quantity_milli(text);
    EXPECT_EQ(parsed.ok() ? std::optional(*parsed) : std::nullopt, milli) << text;
  }
}

}  // namespace
}  // namespace muster::core
