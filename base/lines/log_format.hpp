// LogFormat: how the lines of a daemon's log look: as text for people, or as JSON for programs.
//
// A line of JSON is an object with `time` (RFC 3339, UTC, milliseconds), `level`, `component` (the
// program) and `message`, each a string. Whatever bytes a message has, the line is valid JSON and
// valid UTF-8: control characters and those without a glyph are escaped, and each invalid byte
// becomes U+FFFD.
#pragma once

#include <spdlog/formatter.h>

#include <memory>
#include <string>
#include <string_view>

namespace muster::log {

enum class Format { text, json };

std::unique_ptr<spdlog::formatter> make_formatter(Format format);
// A JSON string, quotes included.
std::string json_string(std::string_view text);

}  // namespace muster::log
