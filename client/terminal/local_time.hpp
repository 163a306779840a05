// Local time: instants in this machine's time zone, for people and for tables that scripts read.
#pragma once

#include "base/clock.hpp"

#include <string>
#include <string_view>

namespace muster::cli {

// "2026-12-01T18:00:00+01:00": RFC 3339, which parse_time() reads back.
std::string local_text(Millis at_ms);

// A text of the API with its instants, such as 2026-12-01T17:00:00Z, as "2026-12-01 18:00:00 CET".
std::string localized(std::string_view text);

}  // namespace muster::cli
