#include "core/spec/values/quantity.hpp"

#include <limits>
#include <optional>

namespace muster::core {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr Wide kLargest = static_cast<Wide>(std::numeric_limits<int64_t>::max());
constexpr Wide kPrecise =
    10'000'000'000'000'000;  // digits beyond 17 are rounded up; 17 digits times 2^60 fit

// A suffix as 2^binary * 10^decimal.
struct Scale {
  int binary = 0;
  int decimal = 0;
};

std::optional<Scale> scale_of(std::string_view suffix) {
  constexpr std::string_view kBig = "KMGTPE";
  if (suffix.empty()) return Scale{};
  if (suffix == "n") return Scale{0, -9};
  if (suffix == "u") return Scale{0, -6};
  if (suffix == "m") return Scale{0, -3};
  if (suffix == "k") return Scale{0, 3};
  size_t power = kBig.find(suffix[0]);
  if (suffix.size() == 2 && suffix[1] == 'i' && power != std::string_view::npos)
    return Scale{10 * (static_cast<int>(power) + 1), 0};
  if (suffix.size() == 1 && suffix != "K" && power != std::string_view::npos)
    return Scale{0, 3 * (static_cast<int>(power) + 1)};
  if (suffix[0] != 'e' && suffix[0] != 'E') return std::nullopt;
  suffix.remove_prefix(1);
  bool negative = suffix.starts_with('-');
  if (negative || suffix.starts_with('+')) suffix.remove_prefix(1);
  if (suffix.empty() || suffix.size() > 3) return std::nullopt;
  int exponent = 0;
  for (char c : suffix) {
    if (c < '0' || c > '9') return std::nullopt;
    exponent = exponent * 10 + (c - '0');
  }
  return Scale{0, negative ? -exponent : exponent};
}

}  // namespace

Result<int64_t> parse_quantity_milli(std::string_view text) {
  Error malformed{Errc::invalid,
                  "must be a quantity: a number with an optional suffix such as m, k, M, G, Ki, "
                  "Mi, Gi (\"500m\", \"1.5\", \"2Gi\")",
                  {}};
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  Wide value = 0;
  int decimal = 3;  // thousandths
  bool point = false;
  bool inexact = false;  // a nonzero digit was dropped
  size_t digits = 0;
  size_t at = 0;
  for (; at < text.size(); ++at) {
    char c = text[at];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    ++digits;
    if (value < kPrecise) {
      value = value * 10 + static_cast<Wide>(c - '0');
      if (point) --decimal;
    } else {
      inexact = inexact || c != '0';
      if (!point) ++decimal;
    }
  }
  auto scale = scale_of(text.substr(at));
  if (digits == 0 || !scale) return malformed;
  decimal += scale->decimal;
  // Stop multiplying near the top of the range: no later division could bring such a value back
  // below 64 bits.
  constexpr Wide kCeiling = ~Wide{0} / 16;
  for (int i = 0; i < scale->binary; ++i)
    if (value <= kCeiling) value *= 2;
  for (; decimal > 0 && value != 0 && value <= kCeiling; --decimal) value *= 10;
  for (; decimal < 0 && (value != 0 || inexact); ++decimal) {
    inexact = inexact || value % 10 != 0;
    value /= 10;
    if (value == 0) break;
  }
  if (inexact) ++value;
  auto milli = static_cast<int64_t>(value > kLargest ? kLargest : value);
  return negative ? -milli : milli;
}

}  // namespace muster::core
