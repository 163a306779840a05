#include "base/text/http_date.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace muster {
namespace {

// Not strftime(), whose names depend on the locale.
constexpr std::array kWeekdays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

}  // namespace

std::string http_date(Millis instant_ms) {
  const time_t seconds = static_cast<time_t>(instant_ms / 1000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                kWeekdays.at(static_cast<size_t>(parts.tm_wday)), parts.tm_mday,
                kMonths.at(static_cast<size_t>(parts.tm_mon)), parts.tm_year + 1900, parts.tm_hour,
                parts.tm_min, parts.tm_sec);
  return text.data();
}

std::optional<Millis> parse_http_date(const std::string& text) {
  std::array<char, 4> month{};
  tm parts{};
  if (std::sscanf(text.c_str(), "%*3[A-Za-z], %2d %3s %4d %2d:%2d:%2d", &parts.tm_mday,
                  month.data(), &parts.tm_year, &parts.tm_hour, &parts.tm_min, &parts.tm_sec) != 6)
    return std::nullopt;
  while (parts.tm_mon < 12 &&
         std::strcmp(kMonths.at(static_cast<size_t>(parts.tm_mon)), month.data()) != 0)
    ++parts.tm_mon;
  if (parts.tm_mon == 12) return std::nullopt;
  parts.tm_year -= 1900;
  const Millis instant = Millis{timegm(&parts)} * 1000;
  if (http_date(instant) != text) return std::nullopt;
  return instant;
}

}  // namespace muster
