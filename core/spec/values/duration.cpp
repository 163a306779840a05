#include "core/spec/values/duration.hpp"

#include <cstdint>
#include <limits>

namespace muster::core {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;

struct Unit {
  std::string_view name;
  int64_t nanos;
};
// Longer names before their prefixes.
constexpr Unit kUnits[] = {
    {"ns", 1},
    {"us", 1000},
    {"\u00b5s", 1000},
    {"\u03bcs", 1000},
    {"ms", kNanosPerMilli},
    {"s", 1000 * kNanosPerMilli},
    {"m", 60'000 * kNanosPerMilli},
    {"h", 3'600'000 * kNanosPerMilli},
    {"d", 86'400'000 * kNanosPerMilli},
};

const Unit* unit_at(std::string_view text) {
  for (const Unit& unit : kUnits)
    if (text.starts_with(unit.name)) return &unit;
  return nullptr;
}

// "90", "0.2": a number, but of what?
bool is_number(std::string_view text) {
  return text.size() < 20 && text.find_first_of("0123456789") != std::string_view::npos &&
         text.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::string needs_unit(std::string_view number) {
  const std::string text(number);
  return "must have a unit: " + text + "s are seconds, " + text + "m minutes, " + text + "h hours";
}

}  // namespace

Result<Millis> parse_duration(std::string_view text) {
  Error malformed{Errc::invalid, "must be a duration such as \"100ms\", \"10s\" or \"1h30m\"", {}};
  if (is_number(text)) malformed.message = needs_unit(text);
  Error too_long{Errc::invalid, "must be less than 292 years", {}};
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return Millis{0};
  if (text.starts_with('-')) return Error{Errc::invalid, "must not be negative", {}};
  if (text.empty()) return malformed;
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  int64_t nanos = 0;
  while (!text.empty()) {
    int64_t whole = 0;
    int64_t fraction = 0;
    int64_t divisor = 1;
    bool point = false;
    bool digits = false;
    for (; !text.empty(); text.remove_prefix(1)) {
      char c = text.front();
      if (c == '.' && !point) {
        point = true;
      } else if (c >= '0' && c <= '9') {
        digits = true;
        if (!point) {
          if (whole > kLargest / 10 - 1) return too_long;
          whole = whole * 10 + (c - '0');
        } else if (divisor < 10'000) {  // so that the fraction times a day's nanoseconds fits
          fraction = fraction * 10 + (c - '0');
          divisor *= 10;
        }
      } else {
        break;
      }
    }
    const Unit* unit = unit_at(text);
    if (!digits || unit == nullptr) return malformed;
    text.remove_prefix(unit->name.size());
    if (whole > kLargest / unit->nanos) return too_long;
    int64_t part = whole * unit->nanos;
    int64_t rest = fraction * unit->nanos / divisor;
    if (part > kLargest - rest || nanos > kLargest - rest - part) return too_long;
    nanos += part + rest;
  }
  return nanos / kNanosPerMilli + (nanos % kNanosPerMilli != 0);
}

std::string duration_text(Millis span_ms) {
  if (span_ms == 0) return "0s";
  std::string out;
  auto take = [&out, &span_ms](Millis unit_ms, const char* name) {
    if (span_ms >= unit_ms) out += std::to_string(span_ms / unit_ms) + name;
    span_ms %= unit_ms;
  };
  take(3'600'000, "h");
  take(60'000, "m");
  take(1000, "s");
  take(1, "ms");
  return out;
}

}  // namespace muster::core
