#include "base/text/time_text.hpp"

#include <chrono>
#include <cstdio>

namespace muster {
namespace {

// Removes `digits` decimal digits from the front of the text; -1 if they are missing.
int take_number(std::string_view& text, size_t digits) {
  if (text.size() < digits) return -1;
  int value = 0;
  for (char c : text.substr(0, digits)) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string time_text(Millis instant_ms) {
  using namespace std::chrono;
  auto instant = floor<seconds>(sys_time<milliseconds>(milliseconds(instant_ms)));
  auto day = floor<days>(instant);
  year_month_day date(day);
  hh_mm_ss time(instant - day);
  char text[48];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  return text;
}

std::optional<Millis> parse_time(std::string_view text) {
  using namespace std::chrono;
  int y = take_number(text, 4);
  if (!take(text, "-")) return std::nullopt;
  int m = take_number(text, 2);
  if (!take(text, "-")) return std::nullopt;
  int d = take_number(text, 2);
  if (!take(text, "Tt ")) return std::nullopt;
  int hour = take_number(text, 2);
  if (!take(text, ":")) return std::nullopt;
  int minute = take_number(text, 2);
  if (!take(text, ":")) return std::nullopt;
  int second = take_number(text, 2);
  if (y < 0 || m < 0 || d < 0 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
      second > 60)
    return std::nullopt;
  year_month_day date{year(y), month(static_cast<unsigned>(m)), day(static_cast<unsigned>(d))};
  if (!date.ok()) return std::nullopt;
  Millis millis = 0;
  if (take(text, ".")) {
    Millis unit_ms = 100;
    size_t digits = 0;
    for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; ++digits) {
      millis += unit_ms * take_number(text, 1);
      unit_ms /= 10;
    }
    if (digits == 0) return std::nullopt;
  }
  Millis offset_ms = 0;
  if (!take(text, "Zz")) {
    Millis sign = text.starts_with('-') ? -1 : 1;
    if (!take(text, "+-")) return std::nullopt;
    int offset_hours = take_number(text, 2);
    if (!take(text, ":")) return std::nullopt;
    int offset_minutes = take_number(text, 2);
    if (offset_hours < 0 || offset_minutes < 0) return std::nullopt;
    offset_ms = sign * (offset_hours * 60 + offset_minutes) * Millis{60'000};
  }
  if (!text.empty()) return std::nullopt;
  auto instant = sys_time<milliseconds>(sys_days(date)) + hours(hour) + minutes(minute) +
                 seconds(second) + milliseconds(millis - offset_ms);
  return instant.time_since_epoch().count();
}

}  // namespace muster
