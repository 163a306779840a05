// Text: small helpers for what the command line prints and sends. Pure.
#pragma once

#include "base/clock.hpp"
#include "base/text/json.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

// A duration as kubectl shows ages: "12s", "3m5s", "41m", "9h", "3d4h"; at most two units.
std::string short_span(Millis span_ms);

// With milliseconds below 100 s: "1.204s"; longer ones as short_span. `seconds`: 0 and more.
std::string precise_span(double seconds);

// "00:12", "1:02:03".
std::string clock_span(Millis span_ms);

// A whole number of 0 and more, of digits only; nullopt: it isn't one, or is too large.
std::optional<int64_t> whole_number(std::string_view text);

// Percent-encodes what is not allowed in a path segment or a query value.
std::string url_encoded(std::string_view text);

// A container's command as words for a shell: "sh -c 'echo $HOME'", where the manifest has $$ for a
// dollar sign.
std::string command_text(const Json& container);

// At most `width` bytes, ending in "..." if something was cut off.
std::string cut(std::string_view text, size_t width);

// The first line.
std::string one_line(std::string_view text);

// The last `count` lines, without line breaks; trailing line breaks are ignored.
std::vector<std::string> last_lines(std::string_view text, size_t count);

// Converts ASCII letters to upper case.
std::string upper(std::string text);

}  // namespace muster::cli
