#include "core/node/pod_run.hpp"

#include "base/exec_exit.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace muster::core::node {

namespace {

constexpr int kExitKilled = 137;  // 128 + SIGKILL: reported when the exit code is unknown

}  // namespace

std::string hook_failure(const ProcessEnd& end, std::optional<Millis> limit_ms) {
  if (end.exit_code == 0 && !end.lost) return "";
  if (end.lost) return "its keeper was lost";
  const bool late = end.start && limit_ms && end.ended_at - end.start->at >= *limit_ms;
  if (late)
    return "it took longer than " + std::to_string(*limit_ms / 1000) + " s" +
           (end.error.empty() ? "" : ": " + end.error);
  if (!end.error.empty()) return end.error;
  return end.signal != 0 ? "it was ended by signal " + std::to_string(end.signal)
                         : "it exited with " + std::to_string(end.exit_code);
}

void PodRun::make() {
  if (containers_.empty()) containers_.resize(count());
}

PodRun::Container& PodRun::hook(uint16_t container) {
  if (hooks_.empty()) hooks_.resize(2);
  return hooks_[container - kProlog];
}

std::optional<Millis> PodRun::limit_of(uint16_t hook) const {
  if (!plan_) return std::nullopt;
  return hook == kProlog ? plan_->prolog_ms : plan_->epilog_ms;
}

// Schedules the prolog, if it is due. True: no container may start yet.
bool PodRun::waits_for_prolog(bool stopping) {
  const bool wanted = !stopping && plan_ && plan_->prolog_ms &&
                      std::all_of(containers_.begin(), containers_.end(), [](const Container& c) {
                        return c.state == State::unborn && !c.has_end;
                      });
  if (hooks_.empty() && !wanted) return false;
  Container& prolog = hook(kProlog);
  if (prolog.state == State::unborn && wanted) prolog.state = State::waiting;
  if (prolog.state == State::waiting && stopping) prolog.state = State::unborn;
  return prolog.state == State::waiting || prolog.lives();
}

// Schedules the epilog, if it is due. False: the pod is over.
bool PodRun::epilog_goes_on() {
  if (!in_epilog()) {
    const bool any = ran() || (prolog() != nullptr && (prolog()->pid || prolog()->has_end));
    if (!plan_ || !plan_->epilog_ms || !any) return false;
    hook(kEpilog).state = State::waiting;
  }
  return hook(kEpilog).state != State::ended;
}

bool PodRun::in_epilog() const {
  return !hooks_.empty() && hooks_.back().state != State::unborn;
}

std::optional<std::pair<Step, Millis>> PodRun::hook_limit() const {
  for (const uint16_t one : {kProlog, kEpilog}) {
    if (hooks_.empty()) break;
    const Container& hook = hooks_[one - kProlog];
    if (const auto limit = limit_of(one); limit && hook.state == State::running)
      return std::pair(Step{one, hook.instance}, hook.started_at + *limit);
  }
  return std::nullopt;
}

// Schedules the next instance of a failed container. False: the policy does not allow it, or the
// instance counter is exhausted.
bool PodRun::restart(Container& container, bool always) {
  if (!plan_ || !(plan_->restarts || always)) return false;
  if (container.end_instance == std::numeric_limits<uint16_t>::max()) return false;
  const auto& end = container.end;
  if (end.started_at && end.ended_at.ms - end.started_at->ms >= kHealthyMs) container.level = 0;
  Millis delay = 0;
  if (container.level > 0) {
    delay = std::max<Millis>(0, plan_->restart_delay_ms);
    for (uint16_t n = 1; n < container.level && delay < kDelayMaxMs; ++n) delay *= 2;
    delay = std::min(delay, kDelayMaxMs);
  }
  if (container.level < std::numeric_limits<uint16_t>::max()) ++container.level;
  container.instance = static_cast<uint16_t>(container.end_instance + 1);
  container.due_at = container.end.ended_at.ms + delay;
  container.state = State::waiting;
  return true;
}

bool PodRun::advance(bool stopping) {
  make();
  if (in_epilog()) return epilog_goes_on();
  if (waits_for_prolog(stopping)) return true;
  return (!prolog_failed() && containers_go_on(stopping)) || epilog_goes_on();
}

// False: they are over.
bool PodRun::containers_go_on(bool stopping) {
  if (stopping) {
    return std::any_of(containers_.begin(), containers_.end(),
                       [](const Container& c) { return c.lives(); });
  }
  if (!winding_down_ && progress()) {
    for (size_t i = 0; i < inits(); ++i)
      if (sidecar(i) && containers_[i].state == State::ended) restart(containers_[i], true);
    return true;
  }
  winding_down_ = true;
  bool left = false;
  for (Container& container : containers_) {
    if (container.state == State::waiting)
      container.state = container.has_end ? State::ended : State::unborn;
    left = left || container.lives();
  }
  return left;
}

std::optional<Step> PodRun::to_end() const {
  if (!winding_down_) return std::nullopt;
  for (size_t i = containers_.size(); i-- > 0;)
    if (containers_[i].lives()) return Step{static_cast<uint16_t>(i), containers_[i].instance};
  return std::nullopt;
}

bool PodRun::sidecar(size_t container) const {
  return plan_ && std::binary_search(plan_->sidecars.begin(), plan_->sidecars.end(), container);
}

// After a restart of the agent, only what followed it shows that a sidecar which ended has run.
bool PodRun::started_once(size_t container) const {
  return containers_[container].pid ||
         std::any_of(containers_.begin() + static_cast<ptrdiff_t>(container) + 1, containers_.end(),
                     [](const Container& later) { return later.state != State::unborn; });
}

// Schedules what may start next. False: all but sidecars are over.
bool PodRun::progress() {
  for (size_t i = 0; i < inits(); ++i) {
    Container& init = containers_[i];
    if (sidecar(i) ? started_once(i) : init.succeeded()) continue;
    if (init.state == State::unborn) init.state = State::waiting;
    return sidecar(i) || init.state != State::ended || restart(init);
  }
  bool over = true;
  for (size_t i = inits(); i < containers_.size(); ++i) {
    Container& app = containers_[i];
    if (app.state == State::unborn) app.state = State::waiting;
    if (app.state == State::ended && !app.succeeded()) restart(app);
    over = over && app.state == State::ended;
  }
  return !over;
}

void PodRun::take_due(PodId pod, Millis now, std::vector<StartOrder>& orders) {
  for (size_t i = 0; i < hooks_.size(); ++i) {
    if (hooks_[i].state != State::waiting || hooks_[i].due_at > now) continue;
    hooks_[i].state = State::starting;
    orders.push_back({.pod = pod,
                      .step = {static_cast<uint16_t>(kProlog + i), hooks_[i].instance},
                      .pod_started_at = started_at_});
  }
  if (in_epilog()) return;  // what waited to be restarted does so no longer
  for (size_t i = 0; i < containers_.size(); ++i) {
    Container& container = containers_[i];
    if (container.state != State::waiting || container.due_at > now) continue;
    container.state = State::starting;
    orders.push_back({pod,
                      {static_cast<uint16_t>(i), container.instance},
                      container.level,
                      started_at_,
                      nullptr,
                      container.used});
  }
}

std::optional<Millis> PodRun::next_due() const {
  std::optional<Millis> next;
  for (const auto* all : {&hooks_, &containers_}) {
    for (const Container& container : *all)
      if (container.state == State::waiting)
        next = std::min(next.value_or(container.due_at), container.due_at);
    if (in_epilog()) break;
  }
  return next;
}

// The container whose newest process this is; null: there is none.
PodRun::Container* PodRun::newest(Step step) {
  make();
  if (is_hook(step.container)) {
    Container& one = hook(step.container);
    return one.has_end ? nullptr : &one;
  }
  if (step.container >= containers_.size()) return nullptr;
  Container& container = containers_[step.container];
  if (step.instance < container.instance) return nullptr;
  if (container.has_end && step.instance <= container.end_instance) return nullptr;
  container.instance = step.instance;
  return &container;
}

bool PodRun::ordered(Step step) {
  Container* container = newest(step);
  if (container == nullptr) return false;
  container->state = State::starting;
  return true;
}

// Before the end of its newest process gives way to that of another.
void PodRun::remember_run(size_t container) {
  const Container& one = containers_[container];
  if (!one.has_end) return;
  RunEndOf<BootInstant> run{static_cast<uint16_t>(container), one.end, one.end_used};
  run.end.restarts = one.end_instance;
  add_run(runs_, run);
}

bool PodRun::started(const ProcessStart& start, std::vector<uint64_t>& forget) {
  Container* found = newest(start.step);
  if (found == nullptr) return false;
  Container& container = *found;
  if (!is_hook(start.step.container)) remember_run(start.step.container);
  container.state = State::running;
  container.pid = start.pid;
  container.cpus = start.cpus;
  container.restarts = start.step.instance;
  container.started_at = start.at;
  if (!started_at_ && !is_hook(start.step.container)) started_at_ = start.at;
  if (container.entry) forget.push_back(*std::exchange(container.entry, std::nullopt));
  return true;
}

bool PodRun::ended(const ProcessEnd& end, std::optional<EndCause> stop,
                   std::vector<uint64_t>& forget) {
  make();
  if (is_hook(end.step.container)) return hook_ended(end, forget);
  if (end.step.container >= containers_.size()) {  // its plan can no longer be read
    if (end.entry) forget.push_back(*end.entry);
    return false;
  }
  Container& container = containers_[end.step.container];
  bool old = end.step.instance < container.instance ||
             (container.has_end && end.step.instance <= container.end_instance);
  if (old) {
    if (end.entry && end.entry != container.entry) forget.push_back(*end.entry);
    return false;
  }
  if (container.entry) forget.push_back(*container.entry);
  remember_run(end.step.container);
  container.entry = end.entry;
  container.instance = container.end_instance = end.step.instance;
  container.restarts = end.step.instance;
  container.has_end = true;
  container.lost = end.lost;
  if (end.start) {
    container.pid = end.start->pid;
    if (!started_at_) started_at_ = end.start->at;
  }
  container.state = State::ended;
  container.message = end.error;
  container.used.add(end.used);
  container.end_used = end.used;
  container.end = {.exit_code = end.lost ? kExitKilled : end.exit_code,
                   .signal = end.signal,
                   .restarts = container.restarts,
                   .ended_at = {end.ended_at}};
  if (end.start) container.end.started_at = BootInstant{end.start->at};
  if (stop == EndCause::fenced) {
    container.end.cause = EndCause::fenced;
  } else if (end.lost) {
    container.end.cause = EndCause::keeper_lost;
  } else if (stop) {
    container.end.cause = !end.start && stop == EndCause::killed ? EndCause::never_started : *stop;
  } else if (!end.start && end.exit_code == kExitOfIndex) {
    container.end.exit_code = kExitCannotStart;
    container.end.started_at = container.end.ended_at;
    if (!started_at_) started_at_ = end.ended_at;
  } else if (!end.start) {
    container.end.cause = EndCause::start_failed;
  } else {
    container.end.cause = end.out_of_memory ? EndCause::out_of_memory : EndCause::exited;
  }
  return true;
}

bool PodRun::hook_ended(const ProcessEnd& end, std::vector<uint64_t>& forget) {
  Container& one = hook(end.step.container);
  if (one.has_end) {
    if (end.entry && end.entry != one.entry) forget.push_back(*end.entry);
    return false;
  }
  one.state = State::ended;
  one.has_end = true;
  one.lost = end.lost;
  one.entry = end.entry;
  if (end.start) one.pid = end.start->pid;
  one.message = hook_failure(end, limit_of(end.step.container));
  one.end.exit_code = end.lost ? kExitKilled : end.exit_code;
  one.end.ended_at = {end.ended_at};
  return true;
}

void PodRun::take_origin(const Origin& origin, uint16_t container) {
  make();
  if (origin.pod_started_at) started_at_ = origin.pod_started_at;
  if (container < containers_.size()) {
    auto& level = containers_[container].level;
    level = std::max(level, origin.level);
    Usage& used = containers_[container].used;
    used = used.later(origin.used);
  }
}

void PodRun::unstart(uint16_t container, bool stopping, Millis due_at) {
  Container& c = is_hook(container) ? hook(container) : containers_[container];
  if (!stopping || container == kEpilog) {
    c.state = State::waiting;
    c.due_at = due_at;
  } else {
    c.state = c.has_end ? State::ended : State::unborn;
  }
}

std::vector<int> PodRun::pids() const {
  std::vector<int> pids;
  for (const Container& container : containers_)
    if (container.state == State::running && container.pid) pids.push_back(*container.pid);
  return pids;
}

void PodRun::living(PodId pod, std::vector<ProcessStart>& processes) const {
  for (size_t i = 0; i < containers_.size(); ++i) {
    const Container& one = containers_[i];
    if (one.state != State::running || !one.pid) continue;
    processes.push_back({pod, {static_cast<uint16_t>(i), one.instance}, *one.pid, one.started_at});
  }
  for (size_t i = 0; i < hooks_.size(); ++i)
    if (const Container& one = hooks_[i]; one.state == State::running && one.pid)
      processes.push_back(
          {pod, {static_cast<uint16_t>(kProlog + i), one.instance}, *one.pid, one.started_at});
}

std::vector<Step> PodRun::living() const {
  std::vector<Step> steps;
  for (size_t i = 0; i < containers_.size(); ++i) {
    if (containers_[i].lives()) {
      steps.push_back({static_cast<uint16_t>(i), containers_[i].instance});
    }
  }
  for (size_t i = 0; i < hooks_.size(); ++i)
    if (hooks_[i].lives())
      steps.push_back({static_cast<uint16_t>(kProlog + i), hooks_[i].instance});
  return steps;
}

bool PodRun::runs(uint16_t container) const {
  if (is_hook(container))
    return !hooks_.empty() && hooks_[container - kProlog].state == State::running;
  return container < containers_.size() && containers_[container].state == State::running;
}

bool PodRun::starting(Step step) const {
  if (is_hook(step.container))
    return !hooks_.empty() && hooks_[step.container - kProlog].state == State::starting;
  return step.container < containers_.size() &&
         containers_[step.container].state == State::starting &&
         containers_[step.container].instance == step.instance;
}

bool PodRun::ran() const {
  return std::any_of(containers_.begin(), containers_.end(),
                     [](const Container& c) { return c.pid || c.has_end; });
}

bool PodRun::Shown::adds_nothing_to(const Shown& said) const {
  if (*this == said) return true;
  const bool ready = readiness == Readiness::ready && said.readiness == Readiness::ready;
  if (!ready || pid != said.pid || restarts != said.restarts) return false;
  for (size_t i = 0; i < containers.size(); ++i) {
    if (containers[i].phase != ContainerPhase::running) continue;
    if (i >= said.containers.size() || containers[i] != said.containers[i]) return false;
  }
  return true;
}

PodRun::Shown PodRun::shown() const {
  Shown shown;
  bool born = false, all_run = true;
  for (const Container& container : containers_) shown.restarts += container.restarts;
  for (size_t i = 0; i < containers_.size(); ++i) {
    const Container& container = containers_[i];
    if (i < inits()) {
      if (container.pid) shown.pid = container.pid;
      all_run = all_run && (!sidecar(i) || container.lives());
      continue;
    }
    born = born || container.state != State::unborn;
    all_run = all_run && container.lives();
  }
  // The first container's pid; until it is known, another container's, or the last init
  // container's.
  for (size_t i = inits(); i < containers_.size(); ++i) {
    if (!containers_[i].pid) continue;
    shown.pid = containers_[i].pid;
    break;
  }
  shown.readiness = !born     ? Readiness::initializing
                    : all_run ? Readiness::ready
                              : Readiness::not_ready;
  CpuList cpus;
  for (const Container& container : containers_)
    if (container.state == State::running)
      cpus.insert(cpus.end(), container.cpus.begin(), container.cpus.end());
  std::ranges::sort(cpus);
  shown.cpus = cpu_list_text(cpus);
  if (containers_.size() > 1 || shown.restarts > 0)
    for (const Container& container : containers_) shown.containers.push_back(now_of(container));
  return shown;
}

ContainerNowOf<BootInstant> PodRun::now_of(const Container& container) const {
  ContainerNowOf<BootInstant> now{.restarts = container.restarts};
  if (container.has_end) {
    now.last = container.end;
    now.last->restarts = container.restarts;
  }
  switch (container.state) {
    case State::running:
      now.phase = ContainerPhase::running;
      now.since = BootInstant{container.started_at};
      break;
    case State::ended:
      now.phase = ContainerPhase::ended;
      break;
    case State::unborn:
    case State::waiting:
    case State::starting:
      now.phase = container.has_end ? ContainerPhase::waiting : ContainerPhase::unborn;
      break;
  }
  return now;
}

// The container whose failure decides the pod's end: the first failed app container, else the first
// failed init container. A sidecar decides only what came to nothing because it did not start.
const PodRun::Container* PodRun::decisive(bool stopped) const {
  for (size_t i = inits(); i < containers_.size(); ++i) {
    if (containers_[i].failed()) return &containers_[i];
  }
  for (size_t i = 0; i < inits() && i < containers_.size(); ++i) {
    if (containers_[i].failed() && !sidecar(i)) return &containers_[i];
  }
  if (stopped || std::any_of(containers_.begin(), containers_.end(),
                             [](const Container& c) { return c.pid.has_value() || c.succeeded(); }))
    return nullptr;
  for (const Container& one : containers_)
    if (one.failed() && one.end.cause == EndCause::start_failed) return &one;
  return nullptr;
}

PodEnded PodRun::result(PodId pod, std::optional<EndCause> stop, Millis now) const {
  if (prolog_failed() && !stop && !ran()) {
    PodEnded end;
    end.pod = pod;
    end.cause = prolog()->lost ? EndCause::returned : EndCause::start_failed;
    end.exit_code = prolog()->lost ? 0 : kExitNotHere;
    end.message = "prolog: " + prolog()->message;
    end.ended_at = prolog()->end.ended_at;
    return end;
  }
  Shown last = shown();
  PodEnded end;
  end.pod = pod;
  if (last.pid) end.start = {*last.pid, {started_at_.value_or(0)}};
  end.restarts = last.restarts;
  end.runs = runs_;
  bool lost = false, unfinished = containers_.empty();
  for (size_t i = 0; i < containers_.size(); ++i) {
    const Container& container = containers_[i];
    lost = lost || container.lost;
    end.used.add(container.used);
    unfinished = unfinished || (i >= inits() && !container.has_end);
    if (container.has_end) end.ended_at = std::max(end.ended_at, container.end.ended_at);
  }
  if (end.ended_at == BootInstant{}) end.ended_at = {now};
  const Container* failed = decisive(stop.has_value());
  if (failed != nullptr) {
    end.exit_code = failed->end.exit_code;
    end.signal = failed->end.signal;
    end.message = failed->message;
  } else if (unfinished && (ran() || stop != EndCause::killed)) {
    end.exit_code = kExitKilled;  // what has not run has not succeeded
  }
  if (stop == EndCause::fenced) {
    end.cause = EndCause::fenced;
  } else if (lost) {
    end.cause = EndCause::keeper_lost;
  } else if (stop) {
    end.cause = stop == EndCause::killed && !end.start ? EndCause::never_started : *stop;
  } else {
    end.cause = failed == nullptr ? EndCause::exited : failed->end.cause;
  }
  if ((containers_.size() > 1 && ran()) || end.restarts > 0) {
    for (const Container& container : containers_) {
      end.containers.push_back(container.has_end
                                   ? container.end
                                   : ContainerEndOf<BootInstant>{.cause = EndCause::never_started,
                                                                 .restarts = container.restarts,
                                                                 .ended_at = end.ended_at});
    }
  }
  return end;
}

std::vector<uint64_t> PodRun::entries() const {
  std::vector<uint64_t> entries;
  for (const Container& container : containers_) {
    if (container.entry) entries.push_back(*container.entry);
  }
  for (const Container& hook : hooks_)
    if (hook.entry) entries.push_back(*hook.entry);
  return entries;
}

}  // namespace muster::core::node
