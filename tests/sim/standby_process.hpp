// Process: what a simulated coordinator has in memory; standby_world.hpp says around what.
#pragma once

#include "tests/sim/standby_world.hpp"

namespace muster::sim::standby {

constexpr size_t kRing = 6;  // commits that a leader still has for a replica that joins

struct World::Session {
  LinkPtr link;
  bool following = false;   // else it waits for a checkpoint
  bool seat_asked = false;  // a seat is on its way to it
};

struct World::Process {
  explicit Process(core::standby::Follower value) : follower(std::move(value)) {}

  enum class Role { follower, taking, leader } role = Role::follower;
  core::standby::Follower follower;
  // A follower.
  LinkPtr upstream;
  int upstream_to = -1;
  bool joined = false, polling = false, seating = false;
  Millis patience = 0;  // with a leader that says nothing
  Millis heard = 0;     // from the leader, or since when it has tried to join it
  Millis beat = -1'000'000;

  // A leader.
  std::optional<Leader> leader;
  uint64_t term = 0, lease = 0, revision = 0;
  uint64_t created = 0;  // of its key; 0: it must be put again
  bool serving = false;
  bool released = false;  // it has given up the lead
  bool writing = false, renewing = false;
  int handing_to = -1;
  Millis handing_since = 0, next_beat = 0, next_renewal = 0;
  std::map<int, Session> sessions;
  // The commit of the last checkpoint that was sent to a replica: what came after it is kept until
  // the replica joins. Without that, it might find every time that it needs another one.
  std::map<int, uint64_t> kept_since;
  std::deque<std::shared_ptr<Request>> waiting;
  uint64_t committing = 0;  // 0: nothing
  std::vector<std::shared_ptr<Request>> batch;
  std::array<uint64_t, kKeys> state{}, early{};  // durable; with what is not yet durable
};

}  // namespace muster::sim::standby
