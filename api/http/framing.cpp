#include "api/http/framing.hpp"

#include <algorithm>

namespace muster::api {
namespace {

constexpr size_t kDigitsMax = 18;  // more would not fit into an int64_t

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return (x | 0x20) == (y | 0x20); });
}

}  // namespace

std::optional<std::string> refused_framing(std::optional<std::string_view> length,
                                           std::optional<std::string_view> encoding) {
  if (length && encoding)
    return "a request has either Content-Length or Transfer-Encoding, not both";
  if (!length) return std::nullopt;
  const bool digits =
      std::all_of(length->begin(), length->end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || length->empty() || length->size() > kDigitsMax)
    return "Content-Length must be a number of bytes, in decimal digits only";
  return std::nullopt;
}

bool asks_to_close(std::string_view connection) {
  while (!connection.empty()) {
    std::string_view option = connection.substr(0, connection.find(','));
    connection.remove_prefix(std::min(connection.size(), option.size() + 1));
    const size_t begin = std::min(option.find_first_not_of(" \t"), option.size());
    option = option.substr(begin, option.find_last_not_of(" \t") + 1 - begin);
    if (same_word(option, "close")) return true;
  }
  return false;
}

}  // namespace muster::api
