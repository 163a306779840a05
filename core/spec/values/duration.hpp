// Durations in Go's syntax ("100ms", "10s", "1h30m", "1.5h"), and days ("7d").
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"

#include <string>
#include <string_view>

namespace muster::core {

// In milliseconds, rounded up; never negative.
Result<Millis> parse_duration(std::string_view text);

// The shortest text that parse_duration reads back: "1h30m", "1s500ms", "0s".
std::string duration_text(Millis span_ms);

}  // namespace muster::core
