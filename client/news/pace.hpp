// Pace: how fast jobs run and how long they will still take, from a recent window.
//
// Once the window spans a few running times, the time left follows from the indexes settled in it.
// Before that, and where pods run longer than the window, it follows from how long pods ran, how
// long the current ones have been running, and how many run at once. It is unknown until enough
// pods have ended.
//
// Pods are counted, not identified: the first to start is assumed to be the first to end, which
// does not change the mean running time. All functions are pure; time is an argument.
#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <deque>
#include <optional>

namespace muster::cli {

class Pace {
 public:
  struct Look {
    Millis at = 0;
    int64_t settled = 0;  // indexes
    int64_t ended = 0;    // pods, in all
    int64_t running = 0;  // pods, now
  };

  void add(const Look& now);
  // Settled indexes per second over the last half minute; 0: unknown.
  double per_second() const;
  // Time until `remaining` more indexes are settled; absent: not known yet.
  std::optional<Millis> left(int64_t remaining) const;

 private:
  struct Started {
    std::optional<Millis> at;  // unset: before the first look
    int64_t count = 0;
  };
  struct Ended {
    Millis at = 0;
    int64_t count = 0;
    double ran_ms = 0;   // all of them together
    Millis longest = 0;  // the longest of them
  };

  void start(int64_t count, std::optional<Millis> at);
  void end(int64_t count, Millis at);
  void forget(int64_t count);  // pods that are gone without counting as ended
  int64_t slots() const;       // most pods that ran at once recently
  int64_t known_ends() const;
  double mean_ran_ms() const;  // known_ends() > 0
  Millis longest_ran() const;
  double pods_per_index() const;

  std::deque<Look> looks_;       // of the window
  std::deque<Started> running_;  // the oldest first
  std::deque<Ended> ended_;      // only those whose start was seen
};

}  // namespace muster::cli
