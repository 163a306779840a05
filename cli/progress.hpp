// Progress: how far a job is, for a person who watches.
//
// On a terminal one line that is written over; elsewhere plain lines when something changed, the
// rarer the longer it takes. The texts are pure functions of what was seen.
#pragma once

#include "base/clock.hpp"
#include "cli/json.hpp"

#include <cstdint>
#include <deque>
#include <string>

namespace muster::cli {

// What a Job object says about how far it is.
struct Standing {
  int64_t completions = -1;  // -1: as many as it takes (NonIndexed without completions)
  int64_t succeeded = 0;     // pods; of an Indexed job: indexes
  int64_t failed = 0;        // pods
  int64_t running = 0;       // started and not over
  int64_t active = 0;        // running ones and those that wait for a slot
  int64_t terminating = 0;
  int64_t failed_index_count = 0;
  std::string failed_indexes;
  bool operator==(const Standing&) const = default;

  int64_t settled() const { return succeeded + failed_index_count; }
};

Standing standing_of(const Json& job);

// Settled indexes a second over the last half minute.
class Rate {
 public:
  void add(Millis now, int64_t settled);
  double per_second() const;

 private:
  std::deque<std::pair<Millis, int64_t>> seen_;
};

// "12/20  running 4  failed 3 (index 7)  2.1/s  eta 00:04  00:07"; `bar` columns of a bar before
// it, 0 for none.
std::string progress_text(const Standing& standing, double per_second, Millis elapsed_ms,
                          size_t bar);

class Progress {
 public:
  explicit Progress(Millis now);
  ~Progress() { clear(); }
  void show(const Standing& standing, Millis now);
  // Takes the updating line away, so that something else can be printed.
  void clear();

 private:
  const Millis begin_;
  const bool terminal_;
  Rate rate_;
  Standing shown_;
  Millis shown_at_ = 0;  // 0: not yet
  bool dirty_ = false;   // there is an updating line
};

}  // namespace muster::cli
