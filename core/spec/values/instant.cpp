#include "core/spec/values/instant.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace muster::core {
namespace {

// Whether the text has digits where `form` has 0, and the same characters elsewhere.
bool has_form(std::string_view text, std::string_view form) {
  if (text.size() != form.size()) return false;
  for (size_t i = 0; i < text.size(); ++i)
    if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i]) return false;
  return true;
}

int number(std::string_view digits) {
  int value = 0;
  for (const char c : digits) value = 10 * value + (c - '0');
  return value;
}

// Of ".25"; moves `text` behind it. nullopt: a point without digits.
std::optional<Millis> take_fraction(std::string_view& text) {
  if (!text.starts_with('.')) return 0;
  text.remove_prefix(1);
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0) return std::nullopt;
  std::string padded(text.substr(0, std::min<size_t>(digits, 3)));
  padded.resize(3, '0');
  text.remove_prefix(digits);
  return number(padded);
}

// How far a zone is ahead of UTC.
std::optional<Millis> read_zone(std::string_view zone) {
  if (zone == "Z" || zone == "z") return 0;
  if (!has_form(zone, "+00:00") && !has_form(zone, "-00:00")) return std::nullopt;
  const int hours = number(zone.substr(1, 2)), minutes = number(zone.substr(4, 2));
  if (hours > 23 || minutes > 59) return std::nullopt;
  return (zone.front() == '-' ? -1 : 1) * (hours * 60 + minutes) * Millis{60'000};
}

}  // namespace

std::string utc_text(Millis at_ms) {
  const std::chrono::sys_seconds at{std::chrono::seconds(at_ms / 1000)};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  return text;
}

std::optional<Millis> read_instant(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (!has_form(text.substr(0, kForm.size()), kForm)) return std::nullopt;
  std::string_view rest = text.substr(kForm.size());
  const auto fraction = take_fraction(rest);
  const auto zone = read_zone(rest);
  if (!fraction || !zone) return std::nullopt;
  const std::chrono::year_month_day date{
      std::chrono::year(number(text.substr(0, 4))),
      std::chrono::month(static_cast<unsigned>(number(text.substr(5, 2)))),
      std::chrono::day(static_cast<unsigned>(number(text.substr(8, 2))))};
  const int hour = number(text.substr(11, 2)), minute = number(text.substr(14, 2)),
            second = number(text.substr(17, 2));
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + hour) * 60 + minute) * 60'000 + second * 1000 + *fraction - *zone;
}

}  // namespace muster::core
