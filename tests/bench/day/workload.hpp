// Workload: what the users of a site submit in a day, made from a seed.
//
// A few users ask for most of the work. Jobs come in sessions of similar jobs of one user, more of
// them by day than by night. Every pod requests CPUs, so that a pod of a whole node keeps the
// others off it. The same profile and site give the same jobs.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace muster::day {

struct Site {
  NodeId nodes = 64;
  uint32_t slots = 32;   // of each node
  bool spreads = false;  // muster places as with --placement spread
  uint64_t all() const { return uint64_t{nodes} * slots; }
};

// `array`: many short pods. `single`: one pod of one slot. `whole_node`: pods of all slots of a
// node. Gangs consist of these.
enum class Kind { array, single, whole_node, small_gang, large_gang };
constexpr Kind kKinds[] = {Kind::array, Kind::single, Kind::whole_node, Kind::small_gang,
                           Kind::large_gang};

struct Job {
  Millis arrives_ms = 0;
  uint32_t user = 0;
  Kind kind = Kind::single;
  uint32_t slots = 1;              // of each pod
  std::vector<Millis> runs_ms;     // of each pod
  std::optional<Millis> limit_ms;  // each pod's time limit
  bool gang() const { return kind == Kind::small_gang || kind == Kind::large_gang; }
  double work() const;  // slots × ms
};

struct Profile {
  uint64_t seed = 1;
  uint32_t users = 200;
  double load = 1;             // work that arrives in a day, as a part of what the site could do
  double pace = 1;             // how many times shorter everything is: 24 makes it a day of an hour
  Millis tick_ms = 1'000;      // all times are multiples of it
  uint32_t largest_gang = 16;  // nodes; a gang of more than a quarter of that is a large one
  Millis span_ms() const { return static_cast<Millis>(24 * 3'600'000 / pace); }
};

// In the order of arrival.
std::vector<Job> workload(const Site& site, const Profile& profile);

}  // namespace muster::day
