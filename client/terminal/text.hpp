// Text: small helpers for what the command line prints and sends. Pure.
#pragma once

#include "base/clock.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

// A duration as kubectl shows ages: "12s", "3m5s", "41m", "9h", "3d4h"; at most two units.
std::string short_span(Millis span_ms);

// "00:12", "1:02:03".
std::string clock_span(Millis span_ms);

// Percent-encodes what is not allowed in a path segment or a query value.
std::string url_encoded(std::string_view text);

// Quotes a word for a shell, if necessary.
std::string shell_quoted(std::string_view word);

// At most `width` bytes, ending in "..." if something was cut off.
std::string cut(std::string_view text, size_t width);

// The first line.
std::string one_line(std::string_view text);

// The last `count` lines, without line breaks; trailing line breaks are ignored.
std::vector<std::string> last_lines(std::string_view text, size_t count);

// Converts ASCII letters to upper case.
std::string upper(std::string text);

}  // namespace muster::cli
