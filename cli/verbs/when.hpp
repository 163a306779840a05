// Instants as people type them: "2026-12-01T18:00" and "18:00" in this machine's time zone, RFC
// 3339 with a zone, or from now: "+4h", "4h".
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"

#include <string>

namespace muster::cli {

// A time of day is the next one after `now_ms`.
Result<Millis> parse_when(const std::string& text, Millis now_ms);

// An instant in the past, as --since and --until take it: as above, but a time of day is the last
// one before `now_ms`, and "7d" and "-7d" are seven days ago. Also "today" and "yesterday", a day
// ("2026-12-01"), and a month ("2026-12"), which are the beginnings of these.
Result<Millis> parse_past(const std::string& text, Millis now_ms);

// Likewise, and as sbatch takes --begin: "now+1hour", "midnight", "noon", "teatime", "today",
// "tomorrow", "2027-01-31", "1/31/27", "0131"; a bare day begins at midnight.
Result<Millis> parse_begin(const std::string& text, Millis now_ms);

// "2026-12-01 18:00:00 CET", in this machine's time zone.
std::string when_text(Millis at_ms);

}  // namespace muster::cli
