// Printable: makes text from outside safe to store, to log and to show.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

// A prefix of at most `max` bytes, as valid UTF-8: never ends inside a character, and each invalid
// byte becomes U+FFFD.
std::string utf8_prefix(std::string_view text, size_t max);

// Escapes control characters and invalid UTF-8 as \n, \t or \xNN, and invisible characters as in
// visible(): one line that can't look like two, move a terminal's cursor or hide what it says.
std::string on_one_line(std::string_view text);

// How a character beyond U+FFFF is escaped: as two surrogates, or as \UNNNNNNNN.
enum class Escapes { json, yaml };

// Escapes what could act on a terminal, reorder text or hide in it: control characters other than
// line breaks and tabs, bidirectional controls, and other characters without a glyph, such as
// U+200B. The escapes are those of JSON strings, \r or \u009b, so a JSON text keeps its value.
// Invalid UTF-8 becomes \xNN.
std::string visible(std::string_view text, Escapes escapes = Escapes::json);
// Whether visible() would change it.
bool has_invisible(std::string_view text);

}  // namespace muster
