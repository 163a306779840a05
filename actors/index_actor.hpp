// IndexActor: ends the pods of one index, repeating each kill until the pod's end is durable. It
// exists while its index has such a pod; launches need no supervision (ADR 22).
//
// Holds nothing durable: which pods to end, and when, follows from its job's state
// (Job::kills), so when it dies, its JobActor spawns another and repeats the orders.
#pragma once

#include "actors/interfaces.hpp"

#include <caf/actor_config.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>

namespace muster::actors {

class IndexActor : public index_actor::base {
 public:
  IndexActor(caf::actor_config& config, JobId job, WallClock clock);
  behavior_type make_behavior() override;

 private:
  struct Killing {
    NodeId node;
    Millis deadline_ms;
    Durable durable;
  };
  void end(const FollowKill& order);
  void ask_again(uint64_t round);
  void close(PodKey pod);

  JobId job_;
  WallClock clock_;
  std::map<PodKey, Killing> killing_;
  uint64_t round_ = 0;  // of the timer that repeats kills; wake-ups of older rounds are stale
};

}  // namespace muster::actors
