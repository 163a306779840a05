// muster's own Slots as a scheduler of the day. It learns how long pods run only as they end, and
// from their time limits.
#include "core/cluster/slots/slots.hpp"
#include "tests/bench/day/simulation.hpp"

#include <map>
#include <string>
#include <utility>

namespace muster::day {

namespace {

constexpr Millis kStartMs = 1'000;  // of the clock of Slots

class Muster : public Scheduler {
 public:
  Muster(const Site& site, const std::vector<Job>& jobs,
         std::function<void(core::Slots&)> after_round)
      : jobs_(jobs),
        after_round_(std::move(after_round)),
        slots_({.placement =
                    site.spreads ? core::PlacementChoice::spread : core::PlacementChoice::pack}) {
    for (NodeId id = 1; id <= site.nodes; ++id) {
      core::NodeInfo info;
      info.id = id;
      info.name = "node-" + std::to_string(id);
      info.slots = site.slots;
      info.cpu_millis = uint64_t{1'000} * site.slots;
      info.health = core::NodeInfo::Health::ready;
      slots_.set_node(info);
      slots_.set_usable(id, true);
    }
    for (const Job& job : jobs) {
      auto object = std::make_shared<core::JobObject>();
      object->meta.ns = "default";
      object->meta.name = "job-" + std::to_string(states_.size() + 1);
      auto& annotations = object->meta.annotations;
      annotations["muster.dev/owner-uid"] = std::to_string(1'000 + job.user);
      if (job.gang()) annotations["muster.dev/gang"] = "true";
      core::Container container;
      container.resources.requests["cpu"] = std::to_string(job.slots);
      object->spec.pod.containers.push_back(container);
      if (job.limit_ms) object->spec.pod.active_deadline_s = (*job.limit_ms + 999) / 1'000;
      states_.push_back({std::move(object), 0, 0, 0});
    }
  }

  void arrived(size_t job) override {
    states_[job].open = states_[job].pending = static_cast<uint32_t>(jobs_[job].runs_ms.size());
    want(job);
  }

  void ended(const Pods& pods, Millis ran_ms, Millis now) override {
    const JobId id = pods.job + 1;
    slots_.freed(id, {{pods.node, pods.count}}, {}, {pods.count, ran_ms}, kStartMs + now);
    if ((states_[pods.job].open -= pods.count) == 0) slots_.left(id);
  }

  Decision decide(Millis now) override {
    core::Slots::Round round = slots_.place(kStartMs + now);
    if (after_round_) after_round_(slots_);
    Decision decision;
    decision.again_ms = round.again_ms;
    for (const auto& [id, node, count] : round.grants) {
      State& state = states_[id - 1];
      decision.starts.push_back({id - 1, node, count});
      state.pending -= count;
      state.received += count;
      want(id - 1);
    }
    return decision;
  }

 private:
  struct State {
    core::JobObjectPtr object;
    uint32_t pending = 0;
    uint32_t open = 0;  // pods that have not ended
    uint64_t received = 0;
  };

  void want(size_t job) {
    const State& state = states_[job];
    slots_.want(job + 1, state.pending, state.received, state.object);
  }

  const std::vector<Job>& jobs_;
  const std::function<void(core::Slots&)> after_round_;
  core::Slots slots_;
  std::vector<State> states_;
};

}  // namespace

std::unique_ptr<Scheduler> muster_slots(const Site& site, const std::vector<Job>& jobs,
                                        std::function<void(core::Slots&)> after_round) {
  return std::make_unique<Muster>(site, jobs, std::move(after_round));
}

}  // namespace muster::day
