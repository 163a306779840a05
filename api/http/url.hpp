// Url: a request's path and query, decoded.
#pragma once

#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

struct Url {
  std::vector<std::string> path;             // decoded parts; empty ones are left out
  std::map<std::string, std::string> query;  // of a repeated name the last value

  // Nothing: a broken percent escape.
  static std::optional<Url> parse(std::string_view text);
  std::string get(const std::string& name) const;
  bool flag(const std::string& name) const;  // true, 1 and so on, as Go reads it
};

// A whole number and nothing else; nothing: it is none, or too large.
template <class Int>
std::optional<Int> whole_number(std::string_view text) {
  Int n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return n;
}

}  // namespace muster::api
