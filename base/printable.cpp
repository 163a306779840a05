#include "base/printable.hpp"

namespace muster {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// Length in bytes of the UTF-8 character at the front; 0 if there is no valid one.
size_t character(std::string_view text) {
  auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  if (first < 0x80) return 1;
  size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  bool surrogate = first == 0xed && byte(1) > 0x9f;
  bool beyond = first == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || beyond ? 0 : size;
}

bool is_control(std::string_view character) {
  auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;  // U+0080 to U+009F
}

void escape(std::string& out, std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (char c : bytes) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      auto byte = static_cast<unsigned char>(c);
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
}

}  // namespace

std::string utf8_prefix(std::string_view text, size_t max) {
  std::string out;
  while (!text.empty()) {
    size_t size = character(text);
    std::string_view next = size == 0 ? kReplacement : text.substr(0, size);
    if (out.size() + next.size() > max) break;
    out += next;
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

std::string on_one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    size_t size = character(text);
    std::string_view next = text.substr(0, size == 0 ? 1 : size);
    if (size == 0 || is_control(next)) {
      escape(out, next);
    } else {
      out += next;
    }
    text.remove_prefix(next.size());
  }
  return out;
}

}  // namespace muster
