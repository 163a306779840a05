// Numbers as decimal text, as in the journal's meta rows.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::storage {

// All of `text` as a decimal number; nullopt if it is anything else.
inline std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace muster::storage
