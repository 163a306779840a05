// Printable: text that others wrote, made fit to be kept and to be written to a log.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

// Its beginning, at most `max` bytes, as valid UTF-8: never a part of a character, and U+FFFD for
// what is none.
std::string utf8_prefix(std::string_view text, size_t max);

// With \n, \t and \xNN for control characters and for bytes that are no UTF-8: one line that can't
// pass for two, nor move a terminal's cursor.
std::string on_one_line(std::string_view text);

}  // namespace muster
