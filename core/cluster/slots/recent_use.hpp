// Recent use: how much of the cluster each user has had lately.
//
// A user's use is the average of what the user's pods held, as a part of the whole cluster
// (fair_share.hpp), with weights that halve every half-life. Who has had more than others gets less
// while they wait; nobody gets nothing. Use is durable (UsesNoted), since it outlives many starts
// of a coordinator.
//
// Invariant: a use is from 0 to 1.
#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <map>

namespace muster::core {

using UserId = uint32_t;  // uid

// Uses as they were at an instant of the wall clock.
struct NotedUses {
  Millis at_ms = 0;
  std::map<UserId, double> uses;
  bool operator==(const NotedUses&) const = default;
};

class RecentUse {
 public:
  static constexpr Millis kHalfLifeMs = Millis{7} * 24 * 3600 * 1000;
  // Uses below this are forgotten.
  static constexpr double kForgotten = 1e-9;

  // `half_life_ms` 0: remembers nothing.
  explicit RecentUse(Millis half_life_ms = kHalfLifeMs) : half_life_ms_(half_life_ms) {}

  // What users have held for `span_ms`: parts of the cluster.
  void pass(const std::map<UserId, double>& held, Millis span_ms);
  // At startup: as it was noted, `span_ms` ago.
  void restore(UserId user, double use, Millis span_ms);

  double of(UserId user) const;
  const std::map<UserId, double>& all() const { return uses_; }
  // The weight that is left of a user's own one, who shares with `users` others or alone (1): all
  // of it without any use, a half at a use of exactly a fair share, which the own one multiplies.
  double weight(UserId user, size_t users, double own = 1) const;

 private:
  double kept(Millis span_ms) const;

  Millis half_life_ms_;
  std::map<UserId, double> uses_;
};

}  // namespace muster::core
