// Local time: instants in this machine's time zone, for people and for tables that scripts read.
#pragma once

#include "base/clock.hpp"

#include <string>

namespace muster::cli {

// "2026-12-01T18:00:00+01:00": RFC 3339, which parse_time() reads back.
std::string local_text(Millis at_ms);

}  // namespace muster::cli
