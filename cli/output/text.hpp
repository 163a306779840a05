// Text: how people read and write things on a command line. Pure.
#pragma once

#include "base/clock.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

// The known word that is nearest to a mistyped one; empty when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// "; did you mean WORD?" or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

// A span as kubectl shows ages: "12s", "3m5s", "41m", "9h", "3d4h", never more than two units.
std::string short_span(Millis span_ms);

// "00:12", "1:02:03".
std::string clock_span(Millis span_ms);

// Percent-encodes what may not stand in a path segment or a query value.
std::string url_encoded(std::string_view text);

// As a shell reads it back: quoted only when needed.
std::string shell_quoted(std::string_view word);

// At most `width` characters, the last ones "..." when something was left out.
std::string cut(std::string_view text, size_t width);

// The first line: what is said without its details.
std::string one_line(std::string_view text);

// The last `count` lines, without the final line break.
std::vector<std::string> last_lines(std::string_view text, size_t count);

// In capitals, as ASCII has them.
std::string upper(std::string text);

}  // namespace muster::cli
