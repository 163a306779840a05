// PodRun: the containers of one pod that has a slot: which run, which wait, and what comes next.
//
// Init containers run one after another, each until it exits with 0. Then all others run together,
// and the pod ends when they have ended. A sidecar is an init container that only has to start: it
// is restarted whenever it exits, and ended once all others are over, the last one first. With
// restartPolicy OnFailure, a failed container is restarted in place: at once the first time, then
// after a delay that doubles each time and is reset after kHealthyMs of running. With Never, a
// failed init container ends the pod.
//
// A plan may have hooks. The prolog is the first process; if it fails, no container starts, and the
// pod could not be started here. Once all containers are over, the epilog runs if anything of the
// pod has, the prolog included; from then on, the pod's end is settled.
//
// Invariants: a container has at most one process; its newest end is kept until the pod's end is
// acknowledged. The spool keeps everything that led to the current state, so that a restarted agent
// can rebuild it.
//
// Pure. A pod of one process, the usual case, is one container without a plan.
#pragma once

#include "core/node/values.hpp"

#include <optional>
#include <utility>

namespace muster::core::node {

class PodRun {
 public:
  static constexpr Millis kDelayMaxMs = 300'000;
  static constexpr Millis kHealthyMs = 600'000;

  explicit PodRun(PodPlanPtr plan) : plan_(std::move(plan)) {}

  // What a report says about the pod while it runs.
  struct Shown {
    std::optional<int> pid{};
    int32_t restarts = 0;
    Readiness readiness = Readiness::ready;
    std::vector<ContainerNowOf<BootInstant>> containers{};  // PodStarted::containers
    std::string cpus{};                                     // PodStarted::cpus
    // Whether a report of this would say nothing new. That a container is about to be restarted at
    // once is not worth one.
    bool adds_nothing_to(const Shown& said) const;
    bool operator==(const Shown&) const = default;
  };

  // Decides what to start next, now or later. False: the pod is over. With `stopping`, nothing
  // starts, and the pod is over once no process is left.
  bool advance(bool stopping);
  // The sidecar that has to end now, if any: all others are over.
  std::optional<Step> to_end() const;
  // Orders the start of every container that is due; from here on they count as starting.
  void take_due(PodId pod, Millis now, std::vector<StartOrder>& orders);
  // When the next waiting container is due; nullopt: none waits.
  std::optional<Millis> next_due() const;

  // False: the process is not its container's newest. Adds entries that are no longer needed to
  // `forget`.
  bool started(const ProcessStart& start, std::vector<uint64_t>& forget);
  // The executor has the order for the process and will start it. False: as above.
  bool ordered(Step step);
  bool ended(const ProcessEnd& end, std::optional<EndCause> stop, std::vector<uint64_t>& forget);
  // Takes over what an earlier agent stored.
  void take_origin(const Origin& origin, uint16_t container);
  // The container was not started: it is due again at `due_at` or, with `stopping`, dropped. An
  // epilog is never dropped.
  void unstart(uint16_t container, bool stopping, Millis due_at = 0);
  // No container starts any more.
  void wind_down() { winding_down_ = true; }
  void reset() {
    containers_.clear();
    hooks_.clear();
    runs_.clear();
    winding_down_ = false;
  }

  std::vector<Step> living() const;                                    // being started, or running
  std::vector<int> pids() const;                                       // of running processes
  void living(PodId pod, std::vector<ProcessStart>& processes) const;  // adds running ones
  bool runs(uint16_t container) const;  // it is known to have a process
  bool starting(Step step) const;       // ordered, not confirmed
  bool ran() const;        // any container's process was ever started, or failed to start
  bool in_epilog() const;  // all containers are over, and the epilog is due, running or over
  // The running hook, and when it must have ended.
  std::optional<std::pair<Step, Millis>> hook_limit() const;
  bool planned() const { return plan_ != nullptr; }
  bool sidecar(size_t container) const;
  const PodPlan* plan() const { return plan_.get(); }
  std::optional<Millis> started_at() const { return started_at_; }
  Shown shown() const;
  PodEnded result(PodId pod, std::optional<EndCause> stop, Millis now) const;
  std::vector<uint64_t> entries() const;

 private:
  enum class State : uint8_t {
    unborn,    // not yet due to run
    waiting,   // until due_at
    starting,  // ordered
    running,
    ended,
  };
  struct Container {
    State state = State::unborn;
    bool has_end = false;
    bool lost = false;
    uint16_t instance = 0;  // of its newest process, or of the one waiting to start
    uint16_t level = 0;
    std::optional<int> pid{};  // of the newest process that was started
    CpuList cpus{};            // of that process
    int32_t restarts = 0;
    Millis started_at = 0, due_at = 0;
    ContainerEndOf<BootInstant> end;  // valid if has_end: the end of end_instance
    uint16_t end_instance = 0;
    std::optional<uint64_t> entry{};  // of that end in the spool
    std::string message;
    Usage used;      // by its processes that have ended
    Usage end_used;  // by that of `end`

    bool succeeded() const { return state == State::ended && has_end && end.exit_code == 0; }
    bool failed() const { return has_end && end.exit_code != 0 && state != State::running; }
    bool lives() const { return state == State::starting || state == State::running; }
  };

  size_t inits() const { return plan_ ? plan_->init_containers : 0; }
  size_t count() const { return plan_ ? inits() + plan_->containers : 1; }
  void make();
  Container& hook(uint16_t container);
  const Container* prolog() const { return hooks_.empty() ? nullptr : hooks_.data(); }
  bool prolog_failed() const { return prolog() != nullptr && prolog()->failed(); }
  bool waits_for_prolog(bool stopping);
  bool containers_go_on(bool stopping);
  bool epilog_goes_on();
  bool hook_ended(const ProcessEnd& end, std::vector<uint64_t>& forget);
  std::optional<Millis> limit_of(uint16_t hook) const;
  bool progress();
  bool started_once(size_t container) const;
  ContainerNowOf<BootInstant> now_of(const Container& container) const;
  Container* newest(Step step);
  bool restart(Container& container, bool always = false);
  const Container* decisive(bool stopped) const;
  void remember_run(size_t container);

  PodPlanPtr plan_;
  std::vector<Container> containers_;        // empty: nothing has begun
  std::vector<Container> hooks_;             // prolog and epilog; empty: neither has begun
  std::vector<RunEndOf<BootInstant>> runs_;  // PodEnded::runs, since this agent started
  bool winding_down_ = false;                // only sidecars are left
  std::optional<Millis> started_at_;
};

}  // namespace muster::core::node
