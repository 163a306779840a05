// Schedule: when a CronJob starts jobs: the five fields of a crontab ("30 6 * * 1-5"), a
// descriptor ("@daily"), or an interval ("@every 90m").
//
// The grammar and the messages of its errors are those of Kubernetes (robfig/cron v3,
// ParseStandard): each field is a list of *, N, N-M, */STEP, N-M/STEP or N/STEP; months and days
// of the week also have names; Sunday is 0 only. If both day fields are restricted, either may
// match.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace muster::core {

// A time zone: seconds east of UTC at an instant, given in seconds since 1970.
using Zone = std::function<int64_t(int64_t unix_s)>;

class Schedule {
 public:
  static Result<Schedule> parse(const std::string& text);

  // The first start after an instant. Starts are the minutes whose local time matches: an hour that
  // a change of the clocks skips has none, one that it repeats has them twice. Nothing: there is
  // none within five years (February 30).
  std::optional<Millis> next(Millis after_ms, const Zone& zone) const;
  // The last start after `after_ms` and not after `now_ms`, if there is one.
  std::optional<Millis> last(Millis after_ms, Millis now_ms, const Zone& zone) const;

 private:
  // Bit N: the field contains N. `any`: it contains *, with no step.
  struct Field {
    uint64_t bits = 0;
    bool any = false;
    bool has(unsigned n) const { return (bits >> n & 1) != 0; }
  };
  // The range of a field, and the names of its numbers from `low` on.
  struct Range {
    unsigned low, high;
    std::string_view names;  // three letters each
  };

  Status read_fields(const std::string& text);
  static Result<Field> read_field(const std::string& text, const Range& range);
  static Result<Field> read_part(const std::string& text, const Range& range);
  bool has_day(unsigned day, unsigned weekday) const;

  Field minute_, hour_, day_, month_, weekday_;
  int64_t every_s_ = 0;  // not 0: an interval, and the fields are unused
};

}  // namespace muster::core
