// Url: a request's path and query, decoded.
#pragma once

#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::api {

struct Url {
  std::vector<std::string> path;             // decoded; empty parts are left out
  std::map<std::string, std::string> query;  // decoded; the last value of a repeated name wins
  std::vector<std::pair<std::string, std::string>> pairs;  // likewise, all in order

  // Nothing if a percent escape is broken.
  static std::optional<Url> parse(std::string_view text);
  std::string get(const std::string& name) const;
  std::vector<std::string> all(const std::string& name) const;
  bool flag(const std::string& name) const;  // true for what Go's ParseBool accepts
};

// Parses the whole text as an integer. Nothing if it is not one or is out of range.
template <class Int>
std::optional<Int> whole_number(std::string_view text) {
  Int n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return n;
}

// Whether this is a subresource of namespaces rather than a resource in one: what follows
// /api/v1/namespaces/NAME/.
inline bool is_namespace_part(std::string_view name) {
  return name == "status" || name == "finalize";
}

}  // namespace muster::api
