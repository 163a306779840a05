// Instants as Kubernetes writes them: RFC 3339, UTC, whole seconds ("2026-03-01T12:00:00Z").
#pragma once

#include "base/clock.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace muster {

std::string time_text(Millis instant_ms);
// Parses what time_text prints, with optional fractions and UTC offsets.
std::optional<Millis> parse_time(std::string_view text);

}  // namespace muster
