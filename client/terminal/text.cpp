#include "client/terminal/text.hpp"

#include "base/printable.hpp"
#include "base/process/shell_words.hpp"
#include "client/terminal/json.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace muster::cli {
namespace {

constexpr Millis kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute, kDay = 24 * kHour;

std::string two_units(Millis span, Millis big, const char* big_name, Millis small,
                      const char* small_name) {
  const Millis rest = span % big / small;
  std::string text = std::to_string(span / big) + big_name;
  if (rest != 0) text += std::to_string(rest) + small_name;
  return text;
}

}  // namespace

std::string short_span(Millis span_ms) {
  span_ms = std::max<Millis>(span_ms, 0);
  if (span_ms < 2 * kMinute) return std::to_string(span_ms / kSecond) + "s";
  if (span_ms < 10 * kMinute) return two_units(span_ms, kMinute, "m", kSecond, "s");
  if (span_ms < 3 * kHour) return std::to_string(span_ms / kMinute) + "m";
  if (span_ms < 8 * kHour) return two_units(span_ms, kHour, "h", kMinute, "m");
  if (span_ms < 2 * kDay) return std::to_string(span_ms / kHour) + "h";
  if (span_ms < 8 * kDay) return two_units(span_ms, kDay, "d", kHour, "h");
  return std::to_string(span_ms / kDay) + "d";
}

std::string precise_span(double seconds) {
  if (seconds >= 100) return short_span(static_cast<Millis>(std::llround(seconds * 1000)));
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.3fs", seconds);
  return text.data();
}

std::string clock_span(Millis span_ms) {
  const Millis s = std::max<Millis>(span_ms, 0) / kSecond;
  char text[48];
  if (s >= 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", static_cast<long long>(s / 3600),
                  static_cast<long long>(s / 60 % 60), static_cast<long long>(s % 60));
  } else {
    std::snprintf(text, sizeof text, "%02lld:%02lld", static_cast<long long>(s / 60),
                  static_cast<long long>(s % 60));
  }
  return text;
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::string url_encoded(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const unsigned char c : text) {
    if (std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '~') {
      out += static_cast<char>(c);
    } else {
      out += {'%', kHex[c >> 4], kHex[c & 15]};
    }
  }
  return out;
}

std::string command_text(const Json& container) {
  std::string command;
  for (const char* part : {"command", "args"})
    for (const Json& word : at(container, {part}))
      command += (command.empty() ? "" : " ") +
                 typed_word(word.is_string() ? word.get<std::string>() : "");
  return command;
}

std::string cut(std::string_view text, size_t width) {
  if (text.size() <= width) return std::string(text);
  if (width <= 3) return std::string(text.substr(0, width));
  return utf8_prefix(text, width - 3) + "...";
}

std::string one_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

std::vector<std::string> last_lines(std::string_view text, size_t count) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::vector<std::string> lines;
  while (!text.empty() && lines.size() < count) {
    const size_t at = text.rfind('\n');
    lines.emplace_back(at == std::string_view::npos ? text : text.substr(at + 1));
    text = at == std::string_view::npos ? std::string_view() : text.substr(0, at);
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace muster::cli
