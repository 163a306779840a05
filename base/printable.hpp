// Printable: makes text from outside safe to store and to log.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

// A prefix of at most `max` bytes, as valid UTF-8: never ends inside a character, and each invalid
// byte becomes U+FFFD.
std::string utf8_prefix(std::string_view text, size_t max);

// Escapes control characters and invalid UTF-8 as \n, \t or \xNN: one line that can't look like two
// or move a terminal's cursor.
std::string on_one_line(std::string_view text);

}  // namespace muster
