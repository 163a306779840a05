#include "cli/verbs/when.hpp"

#include "base/text/time_text.hpp"
#include "core/spec/values/duration.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

namespace muster::cli {
namespace {

// What a form says nothing of: midnight, the first of the month.
const std::tm kFirstDay = [] {
  std::tm day{};
  day.tm_mday = 1;
  return day;
}();

// Reads all of `text` as a local time of this form; what it does not say is as in `from`.
std::optional<Millis> local(const std::string& text, const char* form, std::tm from) {
  from.tm_sec = 0;
  const char* const end = ::strptime(text.c_str(), form, &from);
  if (end == nullptr || *end != '\0') return std::nullopt;
  from.tm_isdst = -1;
  const std::time_t at = std::mktime(&from);
  return at == -1 ? std::nullopt : std::optional(Millis{at} * 1000);
}

// What is wrong with the day at the beginning of `text`, which mktime() would take for one of the
// next month. Absent: nothing, or it is no date.
std::optional<std::string> no_such_day(const std::string& text) {
  using namespace std::chrono;
  std::tm parts{};
  if (::strptime(text.c_str(), "%Y-%m-%d", &parts) == nullptr) return std::nullopt;
  const year_month month = year(parts.tm_year + 1900) / (parts.tm_mon + 1);
  const year_month_day_last last = month / std::chrono::last;
  if ((month / day(static_cast<unsigned>(parts.tm_mday))).ok()) return std::nullopt;
  char name[32];
  std::strftime(name, sizeof name, "%B %Y", &parts);
  return "there is no such day: " + std::string(name) + " has " +
         std::to_string(static_cast<unsigned>(last.day())) + " days";
}

std::tm local_parts(Millis at_ms) {
  const std::time_t at = at_ms / 1000;
  std::tm parts{};
  ::localtime_r(&at, &parts);
  return parts;
}

std::optional<Millis> local_instant(const std::string& text) {
  for (const char* form :
       {"%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"})
    if (const auto at = local(text, form, kFirstDay)) return *at;
  return std::nullopt;
}

// The beginning of the day of `parts`, `later` days on.
Millis day_begin(std::tm parts, int later) {
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  parts.tm_mday += later;  // mktime() carries over
  parts.tm_isdst = -1;
  return Millis{std::mktime(&parts)} * 1000;
}

// "now+1hour", "now+30" (seconds), "now+2days".
std::optional<Millis> from_now(std::string_view text, Millis now_ms) {
  if (text == "now") return now_ms;
  if (!text.starts_with("now+")) return std::nullopt;
  text.remove_prefix(4);
  int64_t number = 0;
  constexpr int64_t kNumberMax = 10'000'000;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number > kNumberMax) return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit.size() > 1 && unit.ends_with('s') && unit != "s") unit.remove_suffix(1);
  constexpr std::pair<std::string_view, Millis> kUnits[] = {
      {"", 1'000},         {"second", 1'000},   {"minute", 60'000},
      {"hour", 3'600'000}, {"day", 86'400'000}, {"week", 7 * 86'400'000}};
  for (const auto& [name, span_ms] : kUnits)
    if (unit == name) return now_ms + number * span_ms;
  return std::nullopt;
}

// "noon", the next one; "tomorrow", which begins at midnight.
std::optional<Millis> named_time(const std::string& text, Millis now_ms, std::tm today) {
  today.tm_sec = today.tm_min = 0;
  constexpr std::pair<std::string_view, int> kHours[] = {
      {"midnight", 0}, {"noon", 12}, {"fika", 15}, {"teatime", 16}};
  const auto at_hour = [&today](int hour, int days) {
    std::tm parts = today;
    parts.tm_hour = hour;
    parts.tm_mday += days;  // mktime() carries over
    parts.tm_isdst = -1;
    return Millis{std::mktime(&parts)} * 1000;
  };
  if (text == "today") return at_hour(0, 0);
  if (text == "tomorrow") return at_hour(0, 1);
  for (const auto& [name, hour] : kHours)
    if (text == name) return at_hour(hour, 0) > now_ms ? at_hour(hour, 0) : at_hour(hour, 1);
  return std::nullopt;
}

}  // namespace

Result<Millis> parse_begin(const std::string& text, Millis now_ms) {
  const std::tm today = local_parts(now_ms);
  if (auto wrong = no_such_day(text)) return invalid("`" + text + "`: " + *wrong);
  if (const auto at = from_now(text, now_ms)) return *at;
  if (const auto at = named_time(text, now_ms, today)) return *at;
  for (const char* form : {"%Y-%m-%d", "%m/%d/%y", "%m%d%y"})
    if (const auto at = local(text, form, kFirstDay)) return *at;
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  for (const char* form : {"%m/%d", "%m%d"}) {
    if (digits && text.size() != 4) break;
    std::tm day = today;
    day.tm_hour = day.tm_min = 0;
    auto at = local(text, form, day);
    if (!at) continue;
    // Without a year, it is the next such day, today included.
    std::tm midnight = today;
    midnight.tm_hour = midnight.tm_min = midnight.tm_sec = 0;
    midnight.tm_isdst = -1;
    if (*at >= Millis{std::mktime(&midnight)} * 1000) return *at;
    ++day.tm_year;
    return *local(text, form, day);
  }
  if (const auto at = parse_when(text, now_ms)) return *at;
  return invalid("`" + text +
                 "`: must be a time such as 22:00, 2027-01-31T08:00, now+1hour, tomorrow or +4h");
}

Result<Millis> parse_when(const std::string& text, Millis now_ms) {
  if (auto wrong = no_such_day(text)) return invalid("`" + text + "`: " + *wrong);
  std::tm today = local_parts(now_ms);
  today.tm_min = 0;
  if (const auto at = local_instant(text)) return *at;
  for (const char* form : {"%H:%M", "%H:%M:%S", "%I %p", "%I:%M %p", "%I:%M:%S %p"}) {
    auto at = local(text, form, today);
    if (!at) continue;
    if (*at > now_ms) return *at;
    ++today.tm_mday;  // mktime() carries over
    return *local(text, form, today);
  }
  if (const auto at = parse_time(text)) return *at;
  if (const auto span = core::parse_duration(text); span && !text.empty()) return now_ms + *span;
  return invalid("`" + text +
                 "`: must be an instant such as 2026-12-01T18:00 or 18:00, or a time from now such "
                 "as +4h");
}

Result<Millis> parse_past(const std::string& text, Millis now_ms) {
  if (auto wrong = no_such_day(text)) return invalid("`" + text + "`: " + *wrong);
  std::tm today = local_parts(now_ms);
  if (text == "today") return day_begin(today, 0);
  if (text == "yesterday") return day_begin(today, -1);
  if (const auto at = local_instant(text)) return *at;
  for (const char* form : {"%Y-%m-%d", "%Y-%m"})
    if (const auto at = local(text, form, kFirstDay)) return *at;
  for (const char* form : {"%H:%M", "%H:%M:%S"}) {
    auto at = local(text, form, today);
    if (!at) continue;
    if (*at <= now_ms) return *at;
    --today.tm_mday;
    return *local(text, form, today);
  }
  if (const auto at = parse_time(text)) return *at;
  const std::string span_text = text.starts_with('-') ? text.substr(1) : text;
  if (const auto span = core::parse_duration(span_text); span && !span_text.empty())
    return now_ms - *span;
  return invalid("`" + text +
                 "`: must be an instant such as 2026-12-01, 2026-12-01T18:00, 18:00 or yesterday, "
                 "or a time ago such as 7d");
}

std::string when_text(Millis at_ms) {
  const std::tm parts = local_parts(at_ms);
  char text[48];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %Z", &parts);
  return text;
}

}  // namespace muster::cli
