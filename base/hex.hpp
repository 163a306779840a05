// Hexadecimal text, in lower case.
#pragma once

#include <string>
#include <string_view>

namespace muster {

inline constexpr std::string_view kHexDigits = "0123456789abcdef";

inline std::string to_hex(std::string_view bytes) {
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const char c : bytes) {
    hex += kHexDigits[static_cast<unsigned char>(c) >> 4];
    hex += kHexDigits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

// Whether `text` is `digits` hexadecimal digits.
inline bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

}  // namespace muster
