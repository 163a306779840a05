// Pace: how fast jobs go, and how long they will still take, from a recent window of what ran.
//
// Once the window holds a few running times, what it settled says it all. Before, and where pods
// run for longer than the window, the time left follows from how long pods ran, how long the
// running ones have been, and how many run at once. Nothing is said before enough has ended.
//
// Pods are counted, not told apart: the first to start is taken for the first to end, which leaves
// the mean running time as it is. All functions are pure; time is an argument.
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
  // Until `remaining` further indexes are settled; nothing if that is not known yet.
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
  void forget(int64_t count);  // pods that are gone and do not count as ended
  int64_t slots() const;       // most pods that ran at once, of late
  int64_t known_ends() const;
  double mean_ran_ms() const;  // known_ends() > 0
  Millis longest_ran() const;
  double pods_per_index() const;

  std::deque<Look> looks_;       // of the window
  std::deque<Started> running_;  // the oldest first
  std::deque<Ended> ended_;      // whose start was seen
};

}  // namespace muster::cli
