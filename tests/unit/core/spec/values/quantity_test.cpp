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

TEST(Quantity, PrintsAsKubernetesDoes) {
  struct {
    const char *text, *printed;
  } rows[] = {
      {"0", "0"},
      {"0Ki", "0"},
      {"-0.0", "0"},
      {"1", "1"},
      {"0.5", "500m"},
      {".5", "500m"},
      {"500m", "500m"},
      {"1000m", "1"},
      {"1500m", "1500m"},
      {"1.5", "1500m"},
      {"1000", "1k"},
      {"1100", "1100"},
      {"1000k", "1M"},
      {"1024Mi", "1Gi"},
      {"1Gi", "1Gi"},
      {"1.5Gi", "1536Mi"},
      {"1536Mi", "1536Mi"},
      {"512Ki", "512Ki"},
      {"1023Ki", "1023Ki"},
      {"0.5Ki", "512"},
      {"1Ki", "1Ki"},
      {"1024", "1024"},
      {"0.1Ki", "102400m"},
      {"1.0001Ki", "1024102400u"},
      {"1e3", "1e3"},
      {"1E3", "1e3"},
      {"1000e0", "1e3"},
      {"12e6", "12e6"},
      {"1e1", "10"},
      {"100e-3", "100e-3"},
      {"1E", "1E"},
      {"1000P", "1E"},
      {"+2", "2"},
      {"-2048Ki", "-2Mi"},
      {"-0.5", "-500m"},
      {"1n", "1n"},
      {"0.1n", "1n"},
      {"5u", "5u"},
      {"0.0000001", "100n"},
      {"99E", "9223372036854775807"},
      {"two", "two"},
      {"", ""},
      {"1K", "1K"},
  };
  for (const auto& [text, printed] : rows) {
    EXPECT_EQ(canonical_quantity(text), printed) << text;
    EXPECT_EQ(canonical_quantity(printed), printed) << text;
  }
}

}  // namespace
}  // namespace muster::core
