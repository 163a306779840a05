#include "actors/index_actor.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace muster::actors {

namespace {
constexpr std::chrono::seconds kAskAgain{10};
}

IndexActor::IndexActor(caf::actor_config& config, JobId job, WallClock clock)
    : index_actor::base(config), job_(job), clock_(std::move(clock)) {}

IndexActor::behavior_type IndexActor::make_behavior() {
  return {[this](const FollowKill& order) { end(order); },
          [this](const FollowEnd& end) { close(end.pod); },
          [this](const wake_atom&, uint64_t round) { ask_again(round); }};
}

void IndexActor::end(const FollowKill& order) {
  killing_.insert_or_assign(order.pod, Killing{order.node, order.deadline_ms, order.durable});
  order.durable.link().kill(order.node, {job_, order.pod.index, order.pod.attempt},
                            std::max<Millis>(0, order.deadline_ms - clock_()));
  delayed_send(this, kAskAgain, wake_atom_v, ++round_);
}

void IndexActor::ask_again(uint64_t round) {
  if (round != round_ || killing_.empty()) return;
  for (const auto& [pod, k] : killing_)
    k.durable.link().kill(k.node, {job_, pod.index, pod.attempt},
                          std::max<Millis>(0, k.deadline_ms - clock_()));
  delayed_send(this, kAskAgain, wake_atom_v, round_);
}

void IndexActor::close(PodKey pod) {
  killing_.erase(pod);
  if (killing_.empty()) quit();
}

}  // namespace muster::actors
