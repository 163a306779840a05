#include "client/terminal/local_time.hpp"

#include "base/text/time_text.hpp"

#include <array>
#include <ctime>
#include <optional>

namespace muster::cli {

namespace {

constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";  // then [.digits]Z

// The length of the instant that `text` begins with; 0: of none.
size_t instant_length(std::string_view text) {
  const auto digit = [&text](size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  if (text.size() <= kForm.size()) return 0;
  for (size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == 'd' ? !digit(i) : text[i] != kForm[i]) return 0;
  size_t end = kForm.size();
  if (text[end] == '.')
    for (++end; end < text.size() && digit(end);) ++end;
  return end < text.size() && text[end] == 'Z' ? end + 1 : 0;
}

}  // namespace

std::string local_text(Millis at_ms) {
  const std::time_t at = at_ms / 1000;
  std::tm parts{};
  ::localtime_r(&at, &parts);
  std::array<char, 40> text;
  const size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S%z", &parts);
  std::string out(text.data(), size);
  if (out.size() > 2) out.insert(out.size() - 2, ":");  // of the zone: +0100
  return out;
}

std::string localized(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = instant_length(text);
    const auto at_ms = length == 0 ? std::nullopt : parse_time(text.substr(0, length));
    if (!at_ms) {
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    const std::time_t at = *at_ms / 1000;
    std::tm parts{};
    ::localtime_r(&at, &parts);
    std::array<char, 64> local;
    std::strftime(local.data(), local.size(), "%Y-%m-%d %H:%M:%S %Z", &parts);
    out += local.data();
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace muster::cli
