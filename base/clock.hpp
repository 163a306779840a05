// Clocks: the sources of time.
//
// core/ and actors/ take time as an argument, so a simulation can use virtual time; actors read a
// system clock only to measure. Wall-clock instants are milliseconds since 1970 (UTC) and may jump;
// boot-time instants are milliseconds since boot, include suspends, and never jump.
#pragma once

#include <compare>
#include <cstdint>
#include <ctime>
#include <functional>

namespace muster {

using Millis = int64_t;  // an instant or a duration; the variable's name says which

// How long ago something happened. Machines exchange ages, not instants, because their clocks
// differ. Never negative.
struct Age {
  Millis ms = 0;
  bool operator==(const Age&) const = default;
};
inline Age age_at(Millis now, Millis instant) {
  return {now > instant ? now - instant : 0};
}

// An instant of boot time. A separate type for code where instants of both clocks meet.
struct BootInstant {
  Millis ms = 0;
  auto operator<=>(const BootInstant&) const = default;
};
inline Age age_at(Millis now, BootInstant instant) {
  return age_at(now, instant.ms);
}

// Wall clock, milliseconds since 1970.
inline Millis wall_now() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return Millis{t.tv_sec} * 1000 + t.tv_nsec / 1'000'000;
}

// Milliseconds since boot, suspends included.
inline Millis boot_now() {
  timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return Millis{t.tv_sec} * 1000 + t.tv_nsec / 1'000'000;
}

using WallClock = std::function<Millis()>;
using ElapsedClock = std::function<Millis()>;  // boot time, or another clock that never jumps

}  // namespace muster
