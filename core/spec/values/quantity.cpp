#include "core/spec/values/quantity.hpp"

#include <limits>
#include <optional>

namespace muster::core {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr Wide kLargest = static_cast<Wide>(std::numeric_limits<int64_t>::max());
constexpr Wide kPrecise =
    1'000'000'000'000'000'000;  // digits beyond 19 are rounded up; 19 digits times 2^60 fit

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

// A quantity in units of 10^-decimals, rounded away from zero.
struct Scaled {
  bool negative = false;
  Wide value = 0;  // at most `most`
  std::string_view suffix;
};

std::optional<Scaled> scaled(std::string_view text, int decimals, Wide most) {
  Scaled out{.negative = text.starts_with('-'), .suffix = {}};
  if (out.negative || text.starts_with('+')) text.remove_prefix(1);
  Wide value = 0;
  int decimal = decimals;
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
  out.suffix = text.substr(at);
  auto scale = scale_of(out.suffix);
  if (digits == 0 || !scale) return std::nullopt;
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
  out.value = value > most ? most : value;
  return out;
}

std::string digits_of(Wide value) {
  std::string text;
  for (; value != 0; value /= 10) text.insert(text.begin(), static_cast<char>('0' + value % 10));
  return text;
}

}  // namespace

std::string canonical_quantity(std::string_view text) {
  constexpr Wide kNano = 1'000'000'000;
  const auto found = scaled(text, 9, kLargest * kNano);
  if (!found) return std::string(text);
  Wide value = found->value;
  if (value == 0) return "0";
  const std::string sign = found->negative ? "-" : "";
  const std::string_view suffix = found->suffix;
  // Powers of 1024 only where they are exact, and not for small numbers.
  if (suffix.ends_with('i') && value % kNano == 0 && value >= 1024 * kNano) {
    value /= kNano;
    size_t power = 0;
    for (; value % 1024 == 0; value /= 1024) ++power;
    constexpr const char* kBinary[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    return sign + digits_of(value) + kBinary[power];
  }
  int exponent = -9;
  for (; value % 1000 == 0; value /= 1000) exponent += 3;
  const bool written_e =
      suffix.size() > 1 && (suffix[0] == 'e' || suffix[0] == 'E') && !suffix.ends_with('i');
  if (written_e)
    return sign + digits_of(value) + (exponent == 0 ? "" : "e" + std::to_string(exponent));
  constexpr const char* kDecimal[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
  return sign + digits_of(value) + kDecimal[exponent / 3 + 3];
}

Result<int64_t> parse_quantity_milli(std::string_view text) {
  const auto found = scaled(text, 3, kLargest);
  if (!found)
    return Error{Errc::invalid,
                 "must be a quantity: a number with an optional suffix such as m, k, M, G, Ki, "
                 "Mi, Gi (\"500m\", \"1.5\", \"2Gi\")",
                 {}};
  const auto milli = static_cast<int64_t>(found->value);
  return found->negative ? -milli : milli;
}

}  // namespace muster::core
