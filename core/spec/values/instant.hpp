// Instants as text, as RFC 3339 writes them: "2026-12-01T18:00:00Z".
//
//   instant = YYYY-MM-DD T HH:MM:SS [.digits] (Z | +HH:MM | -HH:MM)
#pragma once

#include "base/clock.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace muster::core {

// In UTC and whole seconds.
std::string utc_text(Millis at_ms);
// Milliseconds since the epoch; what is less than a millisecond is dropped. nullopt: malformed.
std::optional<Millis> read_instant(std::string_view text);

}  // namespace muster::core
