// Lease: whether a node is still alive.
//
// Heartbeats from its agent renew a node's lease. A late node is suspect and gets no new pods; a
// node silent for a full term is lost, and its pods are decided again. The term is counted in our
// own ticks: a coordinator that was frozen for an hour has seen one late tick, not an hour of
// silence, and a restart starts over.
//
// While no node responds, none is lost: more likely the coordinator itself is cut off.
//
// Invariant: ready -> suspect -> lost, one step at a time; a renewal returns a node to ready, but
// never from lost.
#pragma once

#include "base/clock.hpp"

#include <cstdint>

namespace muster::core {

constexpr uint32_t kTicksPerTerm = 16;  // ticks in one grace period
constexpr uint32_t kTicksSuspect = 6;   // agents send heartbeats every 2 ticks, or 5 s if shorter

// Length of a tick and interval of heartbeats, derived from the grace.
constexpr Millis tick_ms(Millis grace_ms) {
  return grace_ms / kTicksPerTerm > 0 ? grace_ms / kTicksPerTerm : 1;
}
// At least three heartbeats fit into the shortest muster.dev/fence-after, however long the grace.
constexpr Millis heartbeat_ms(Millis grace_ms) {
  const Millis every = 2 * tick_ms(grace_ms);
  return every < 5'000 ? every : 5'000;
}
// The minimum time that a lost node has been silent: the first of its ticks may have been short.
constexpr Millis silence_ms(Millis grace_ms) {
  return tick_ms(grace_ms) * (kTicksPerTerm - 1);
}
// An agent starts nothing later than this after sending the last heartbeat that was answered.
constexpr Millis start_lease_ms(Millis grace_ms) {
  return grace_ms / 2;
}

// A live agent reconnects within this time to a coordinator that has started: its longest pause
// between two attempts (agent_connection.cpp), plus some time to connect.
constexpr Millis back_within_ms(Millis grace_ms) {
  Millis pause = start_lease_ms(grace_ms) / 2;
  return (pause < 5'000 ? pause : 5'000) + 1'000;
}

class Lease {
 public:
  void renew() { silent_ = 0; }
  void tick() { ++silent_; }
  bool suspect() const { return silent_ >= kTicksSuspect; }
  bool expired() const { return silent_ >= kTicksPerTerm; }

 private:
  uint32_t silent_ = 0;  // ticks since the last heartbeat
};

}  // namespace muster::core
