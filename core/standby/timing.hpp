// Timing of a cluster with several coordinators, and what is assumed about clocks: that those of
// two machines measure any interval to within one part in kDrift. Nothing rests on what they show.
#pragma once

#include "base/clock.hpp"

namespace muster::core::standby {

struct Timing {
  static constexpr Millis kDrift = 20;

  Millis lease_ms = 3'000;     // life of the leader's key in the store, from its last renewal
  Millis promise_ms = 3'000;   // how long a follower leaves the lead alone after the leader's beat
  Millis patience_ms = 2'000;  // how long an in-sync replica may keep the leader waiting
  Millis beat_ms = 500;        // between beats, and between renewals of the lease

  // How long the holder of a right that others count for `ms` may rely on it.
  static constexpr Millis relied_on(Millis ms) { return ms - ms / kDrift; }
};

}  // namespace muster::core::standby
