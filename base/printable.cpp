#include "base/printable.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>

namespace muster {

namespace {

// Code points that have no glyph: controls, format characters, fillers, noncharacters.
struct Range {
  char32_t first, last;
};
constexpr Range kInvisible[] = {
    {0x00, 0x08},       {0x0b, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},
    {0x61c, 0x61c},     {0x115f, 0x1160},   {0x180e, 0x180e},   {0x200b, 0x200f},
    {0x2028, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164},   {0xfeff, 0xfeff},
    {0xffa0, 0xffa0},   {0xfff0, 0xfffb},   {0xfffe, 0xffff},   {0x13430, 0x13440},
    {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

// Of a valid character.
char32_t code_point(std::string_view character) {
  auto byte = [character](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0);
  char32_t code = byte(0) & (0x7fu >> character.size());
  for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3fu);
  return code;
}

bool is_invisible(std::string_view character) {
  const char32_t code = code_point(character);
  if (code >= 0x20 && code < 0x7f) return false;
  return std::any_of(std::begin(kInvisible), std::end(kInvisible), [code](const Range& range) {
    return range.first <= code && code <= range.last;
  });
}

// Whether there is nothing to look at more closely. Most text is like that.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte < 0x7f) || c == '\n' || c == '\t';
  });
}

void escape_code(std::string& out, char32_t code, Escapes escapes) {
  char text[24];
  const auto number = static_cast<unsigned>(code);
  if (code == '\r')
    std::snprintf(text, sizeof text, "\\r");
  else if (code <= 0xffff)
    std::snprintf(text, sizeof text, "\\u%04x", number);
  else if (escapes == Escapes::yaml)
    std::snprintf(text, sizeof text, "\\U%08x", number);
  else
    std::snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd7c0 + (number >> 10),
                  0xdc00 + (number & 0x3ff));
  out += text;
}

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
    } else if (is_invisible(next)) {
      escape_code(out, code_point(next), Escapes::json);
    } else {
      out += next;
    }
    text.remove_prefix(next.size());
  }
  return out;
}

std::string visible(std::string_view text, Escapes escapes) {
  if (is_plain(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t size = character(text);
    const std::string_view next = text.substr(0, size == 0 ? 1 : size);
    if (size == 0)
      escape(out, next);
    else if (is_invisible(next))
      escape_code(out, code_point(next), escapes);
    else
      out += next;
    text.remove_prefix(next.size());
  }
  return out;
}

bool has_invisible(std::string_view text) {
  while (!text.empty()) {
    const size_t size = character(text);
    if (size == 0 || is_invisible(text.substr(0, size))) return true;
    text.remove_prefix(size);
  }
  return false;
}

}  // namespace muster
