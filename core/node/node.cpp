#include "core/node/node.hpp"

#include "base/check.hpp"
#include "base/exec_exit.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace muster::core::node {

namespace {

PodEnded never_ran(PodId pod, EndCause cause, std::string message, Millis now) {
  PodEnded end;
  end.pod = pod;
  end.cause = cause;
  end.message = std::move(message);
  end.ended_at = {now};
  return end;
}

constexpr char kNoContact[] =
    "its node had no contact with the coordinator (muster.dev/fence-after)";
constexpr Millis kNoLimit = std::numeric_limits<Millis>::max();
constexpr char kInVain[] = "no slot became free on its node in time";

}  // namespace

bool Node::obeys(Term term) {
  if (!term_.yields_to(term)) return false;
  term_ = term;
  return true;
}

bool Node::in_charge(Millis now) const {
  return !stopping_ && now < lease_until_ && fencing_.empty();
}

bool Node::may_start(Millis now) const {
  return in_charge(now) && !executor_in_trouble_ && now >= hold_until_;
}

bool Node::cannot_start(Millis now) const {
  return executor_in_trouble_ || new_pods_held_ || now < fault_until_;
}

std::string Node::why_not(Millis now) const {
  return "its node cannot start pods" + (now < fault_until_ ? ": " + fault_ : "");
}

Trouble Node::start_trouble(Millis now) const {
  if (now >= fault_until_) return {};
  return {"CannotStartPods", "no pods start until it is tried again: " + fault_};
}

bool Node::registered(const Welcome& welcome, Millis sent_at) {
  if (!obeys(welcome.term)) return false;
  disconnected();  // reports in flight move to the new session
  connected_ = true;
  lease_ms_ = welcome.lease_ms;
  renew(sent_at);
  fence(welcome.end, sent_at);
  return true;
}

void Node::fence(const std::vector<PodId>& pods, Millis now) {
  for (PodId id : pods) {
    auto pod = pods_.find(id);
    if (pod == pods_.end()) continue;  // unknown, or it has ended and the end is reported anyway
    if (pod->second.running) fencing_.insert(id);
    stop_pod(pod, EndCause::fenced, 0, now);
  }
}

void Node::new_cluster() {
  MUSTER_CHECK(empty());
  term_ = {};
  lease_until_ = contact_at_ = 0;
}

bool Node::launch(Term term, const std::vector<Launch>& pods, Millis now) {
  if (!obeys(term)) return false;
  for (const Launch& launch : pods) {
    if (knows(launch.pod)) continue;
    auto pod = pods_.try_emplace(launch.pod, launch.plan, launch.grace_ms).first;
    if (stopping_) {
      stop_pod(pod, EndCause::agent_stopped, 0, now);
    } else if (launch.plan && !devices_.has(launch.plan->devices)) {
      refuse(pod, now);
    } else {
      pod->second.number = ++last_number_;
      pod->second.launched_at = now;
      waiting_.push_back(launch.pod);
    }
  }
  return true;
}

bool Node::kill(Term term, const std::vector<Kill>& kills, Millis now) {
  if (!obeys(term)) return false;
  for (const Kill& kill : kills) {
    if (auto pod = pods_.find(kill.pod); pod != pods_.end()) {
      stop_pod(pod, EndCause::killed, kill.grace_ms, now);
    } else if (!unacked_.contains(kill.pod)) {
      // Its launch was lost, or arrives later and finds the pod ended.
      finish(never_ran(kill.pod, EndCause::never_started, "", now), {});
    }
  }
  return true;
}

bool Node::limit(Term term, const std::vector<Limit>& limits, Millis now) {
  if (!obeys(term)) return false;
  for (const Limit& limit : limits) {
    const auto found = pods_.find(limit.pod);
    if (found == pods_.end()) continue;
    Pod& pod = found->second;
    pod.limit_ms = limit.limit_ms;
    // The signal announces the limit, so a later one has a signal of its own.
    if (std::exchange(pod.signalled, false)) pod.signalled = signal_of(pod) <= now;
    if (pod.running) set_timer(found->first, pod);
  }
  return true;
}

bool Node::heartbeat_answered(Term term, Millis sent_at) {
  if (!obeys(term)) return false;
  renew(sent_at);
  return true;
}

void Node::renew(Millis sent_at) {
  lease_until_ = std::max(lease_until_, sent_at + lease_ms_);
  contact_at_ = std::max(contact_at_, sent_at);
}

void Node::report_returned(uint64_t id, const std::vector<PodId>& kept) {
  auto flight = flights_.find(id);
  if (flight == flights_.end()) return;
  for (auto [pod, version] : flight->second.starts) {
    auto found = pods_.find(pod);
    if (found != pods_.end()) found->second.acked = std::max(found->second.acked, version);
  }
  const std::set<PodId> stay(kept.begin(), kept.end());
  for (PodId pod : flight->second.ends) {
    if (stay.contains(pod)) {
      kept_.push_back(pod);
      continue;
    }
    auto found = unacked_.find(pod);
    forget_.insert(forget_.end(), found->second.entries.begin(), found->second.entries.end());
    unacked_.erase(found);
  }
  flights_.erase(flight);
}

void Node::disconnected() {
  connected_ = false;
  // Keep the order, so that what ended first is still reported first.
  for (auto flight = flights_.rbegin(); flight != flights_.rend(); ++flight) {
    const auto& [starts, ends] = flight->second;
    for (auto start = starts.rbegin(); start != starts.rend(); ++start) {
      starts_.push_front(start->first);
    }
    ends_.insert(ends_.begin(), ends.begin(), ends.end());
  }
  flights_.clear();
  ends_.insert(ends_.end(), kept_.begin(), kept_.end());
  kept_.clear();
}

void Node::stop_pod(Pods::iterator pod, EndCause why, Millis grace_ms, Millis now) {
  Pod& p = pod->second;
  if (p.run.in_epilog()) return;  // how it ended is settled
  if (p.stop) {
    if (why == EndCause::fenced) p.stop = why;
    if (grace_ms >= p.stop_grace_ms) return;  // another kill may only shorten the grace
  } else {
    p.stop = why;
  }
  p.stop_grace_ms = grace_ms;
  if (!p.run.advance(true)) return finish(pod, now);  // it waits for its slot or for a restart
  if (p.run.in_epilog()) fencing_.erase(pod->first);
  set_timer(pod->first, p);
  order_kills(pod->first, p);
}

void Node::order_kills(PodId id, const Pod& pod) {
  for (Step step : pod.run.living())
    if (step.container != kEpilog) kills_.push_back({id, step, pod.stop_grace_ms});
}

// The pod needs more devices than this node has: it could never start.
void Node::refuse(Pods::iterator pod, Millis now) {
  std::string wanted;
  for (const auto& [name, count] : pod->second.run.plan()->devices) {
    wanted += (wanted.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  }
  PodEnded end =
      never_ran(pod->first, EndCause::start_failed, "this node does not have " + wanted, now);
  end.exit_code = kExitCannotStart;
  pods_.erase(pod);
  finish(std::move(end), {});
}

// The pod is over: no process is left, and none will start.
void Node::finish(Pods::iterator pod, Millis now) {
  Pod& p = pod->second;
  PodEnded end = p.run.result(pod->first, p.stop, now);
  if (!p.stop_message.empty() && end.cause == p.stop) end.message = std::move(p.stop_message);
  finish(pod, std::move(end));
}

void Node::finish(Pods::iterator pod, PodEnded end) {
  Pod& p = pod->second;
  auto entries = p.run.entries();
  release(p);
  forget_timer(pod->first, p);
  due_.erase(pod->first);
  epilogs_.erase(pod->first);
  fencing_.erase(pod->first);
  pods_.erase(pod);
  finish(std::move(end), std::move(entries));
}

void Node::finish(PodEnded end, std::vector<uint64_t> entries) {
  PodId id = end.pod;
  unacked_.insert_or_assign(id, Unacked{std::move(end), std::move(entries)});
  ends_.push_back(id);
  over_.push_back(id);
}

// Frees the pod's slot and devices.
void Node::release(Pod& pod) {
  if (std::exchange(pod.running, false)) --running_;
  if (std::exchange(pod.queued, false)) --queued_;
  pod.withdrawn = false;
  if (pod.devices) devices_.release(*std::exchange(pod.devices, nullptr));
}

// Continues the pod after one of its processes has ended.
void Node::go_on(Pods::iterator pod, Millis now) {
  Pod& p = pod->second;
  if (!p.run.advance(p.stop.has_value())) return finish(pod, now);
  if (p.run.in_epilog()) {  // nothing of the pod itself is left
    due_.erase(pod->first);
    fencing_.erase(pod->first);
  }
  if (const auto sidecar = p.run.to_end(); sidecar && !p.stop)
    kills_.push_back({pod->first, *sidecar, p.grace_ms});
  changed_.push_back(pod->first);
  set_timer(pod->first, p);
}

// When the time limit of a started pod expires.
std::optional<Millis> Node::deadline_of(const Pod& pod) {
  if (!pod.limit_ms || !pod.run.started_at()) return std::nullopt;
  return *pod.run.started_at() + *pod.limit_ms;
}

// When its processes get the signal before that; nullopt: never, or not any more.
std::optional<Millis> Node::signal_of(const Pod& pod) {
  const auto deadline = deadline_of(pod);
  if (!deadline || pod.signalled || !pod.run.planned() || !pod.run.plan()->signal)
    return std::nullopt;
  return *deadline - pod.run.plan()->signal->before_ms;
}

void Node::order_signals(PodId id, Pod& pod) {
  pod.signalled = true;
  const LimitSignal& what = *pod.run.plan()->signal;
  for (Step step : pod.run.living())
    if (!is_hook(step.container)) signals_.push_back({id, step, what.number, what.first_only});
}

// Sets the pod's timer to its next restart, its signal or its deadline, whichever is first.
void Node::set_timer(PodId id, Pod& pod) {
  std::optional<Millis> at;
  if (pod.run.in_epilog()) {
    if (!epilogs_.contains(id)) at = pod.run.next_due();
  } else if (!pod.stop) {
    if (!due_.contains(id)) at = pod.run.next_due();
    for (const auto limit : {signal_of(pod), deadline_of(pod)})
      if (limit) at = std::min(*limit, at.value_or(*limit));
  }
  if (const auto hook = pod.run.hook_limit(); hook && !pod.hook_killed)
    at = std::min(hook->second, at.value_or(hook->second));
  if (at == pod.timer_at) return;
  forget_timer(id, pod);
  pod.timer_at = at;
  if (at) timers_.emplace(*at, id);
}

void Node::forget_timer(PodId id, Pod& pod) {
  if (auto at = std::exchange(pod.timer_at, std::nullopt)) timers_.erase({*at, id});
}

void Node::run_timers(Millis now) {
  while (!timers_.empty() && timers_.begin()->first <= now) {
    PodId id = timers_.begin()->second;
    timers_.erase(timers_.begin());
    auto pod = pods_.find(id);
    Pod& p = pod->second;
    p.timer_at.reset();
    if (const auto hook = p.run.hook_limit(); hook && now >= hook->second && !p.hook_killed) {
      p.hook_killed = true;
      kills_.push_back({id, hook->first, 0});
      set_timer(id, p);
    } else if (p.run.in_epilog()) {
      epilogs_.insert(id);
      set_timer(id, p);
    } else if (auto deadline = deadline_of(p); deadline && now >= *deadline) {
      stop_pod(pod, EndCause::deadline, p.grace_ms, now);
    } else {
      if (auto at = signal_of(p); at && now >= *at) order_signals(id, p);
      due_.insert(id);  // stays there until it may be started
      set_timer(id, p);
    }
  }
}

// When the pod must have ended, unless contact is proven by then.
Millis Node::fence_of(const Pod& pod) const {
  const PodPlan* plan = pod.run.plan();
  return plan == nullptr || !plan->fence_after_ms ? std::numeric_limits<Millis>::max()
                                                  : contact_at_ + *plan->fence_after_ms;
}

void Node::complete(Orders& orders, size_t from, const Pod& pod) const {
  const bool epilog = pod.run.in_epilog();  // it may start without contact
  const Millis not_after = epilog ? kNoLimit : std::min(lease_until_, fence_of(pod));
  for (; from < orders.starts.size(); ++from) {
    if (epilog) orders.starts[from].stop = pod.stop;
    orders.starts[from].devices = pod.devices;
    orders.starts[from].queued = pod.queued;
    orders.starts[from].not_after = not_after;
  }
}

std::optional<Millis> Node::start_by(PodId id, Step step, Millis now) const {
  const auto found = pods_.find(id);
  if (found == pods_.end() || !found->second.run.starting(step)) return std::nullopt;
  if (step.container == kEpilog) return kNoLimit;
  if (found->second.stop) return std::nullopt;
  if (!may_start(now) || held(found->second)) return now;
  return std::min(lease_until_, fence_of(found->second));
}

// They start no pods, so no lease or trouble holds them up.
void Node::start_epilogs(Orders& orders, Millis now) {
  for (PodId id : std::exchange(epilogs_, {})) {
    Pod& pod = pods_.at(id);
    const size_t before = orders.starts.size();
    pod.run.take_due(id, now, orders.starts);
    complete(orders, before, pod);
    set_timer(id, pod);
  }
}

void Node::start_due(Orders& orders, Millis now) {
  if (!may_start(now)) return;
  for (PodId id : std::exchange(due_, {})) {
    Pod& pod = pods_.at(id);
    if (pod.stop) continue;
    if (now >= fence_of(pod) || held(pod)) {
      due_.insert(id);
      continue;
    }
    size_t before = orders.starts.size();
    pod.run.take_due(id, now, orders.starts);
    complete(orders, before, pod);
    set_timer(id, pod);
  }
}

void Node::start_waiting(Orders& orders, Millis now) {
  std::vector<PodId> passed;  // skipped: no contact, or others hold their devices
  while (!waiting_.empty() && may_start(now) && !new_pods_held_) {
    PodId id = waiting_.front();
    auto found = pods_.find(id);
    if (found == pods_.end() || found->second.running) {
      waiting_.pop_front();
      continue;
    }
    Pod& pod = found->second;
    const bool queue = executor_queues_ && !pod.run.planned();
    if (!queue && running_ >= slots_) break;
    waiting_.pop_front();
    if (now >= fence_of(pod)) {
      passed.push_back(id);
      continue;
    }
    if (pod.run.plan() != nullptr && !pod.run.plan()->devices.empty()) {
      pod.devices = devices_.take(pod.run.plan()->devices);
      if (!pod.devices) {
        passed.push_back(id);
        continue;
      }
    }
    pod.running = true;
    ++running_;
    if (queue) {
      pod.queued = true;
      pod.queued_at = now;
      ++queued_;
      queue_.push_back(id);
    }
    pod.run.advance(false);
    size_t first = orders.starts.size();
    pod.run.take_due(id, now, orders.starts);
    complete(orders, first, pod);
  }
  waiting_.insert(waiting_.begin(), passed.begin(), passed.end());
}

// Gives pods that have waited too long for a slot or for the executor back to the coordinator.
// Returns when to look again; nullopt: when something happens.
std::optional<Millis> Node::return_waiting(Millis now) {
  if (!connected_ || !in_charge(now) || (running_ < slots_ && !cannot_start(now)))
    return std::nullopt;
  for (; !waiting_.empty(); waiting_.pop_front()) {
    auto pod = pods_.find(waiting_.front());
    if (pod == pods_.end() || pod->second.running) continue;
    Millis due = pod->second.launched_at + kWaitMaxMs;
    if (now < due) return due;
    PodEnded end =
        never_ran(pod->first, EndCause::returned, cannot_start(now) ? why_not(now) : kInVain, now);
    pods_.erase(pod);
    finish(std::move(end), {});
  }
  return std::nullopt;
}

// The same for pods that wait at the executor, which reports those that it has not started.
std::optional<Millis> Node::withdraw_queued(Orders& orders, Millis now) {
  for (; !queue_.empty(); queue_.pop_front()) {
    auto found = pods_.find(queue_.front());
    if (found == pods_.end()) continue;
    Pod& pod = found->second;
    if (!pod.queued || pod.stop || pod.withdrawn || !pod.run.starting({})) continue;
    if (!connected_ || (running_ <= slots_ && !cannot_start(now))) return std::nullopt;
    Millis due = pod.queued_at + kWaitMaxMs;
    if (now < due) return due;
    pod.withdrawn = true;
    orders.withdrawn.push_back(found->first);
  }
  return std::nullopt;
}

void Node::set_room(Orders& orders, Millis now) {
  if (!executor_queues_) return;
  const bool faulty = new_pods_held_ || now < fault_until_;
  const uint32_t room = faulty ? 0 : slots_ - std::min(slots_, running_ - queued_);
  if (std::exchange(room_, room) != room) orders.room = room;
}

// Call this after starts are ordered, so that a restart without a delay makes one report.
void Node::tell_changes() {
  for (PodId id : std::exchange(changed_, {})) {
    auto found = pods_.find(id);
    if (found == pods_.end()) continue;
    Pod& pod = found->second;
    PodRun::Shown shown = pod.run.shown();
    if ((!shown.pid && shown.restarts == 0) ||
        (pod.reported != 0 && shown.adds_nothing_to(pod.shown)))
      continue;
    pod.shown = shown;
    ++pod.reported;
    starts_.push_back(id);
  }
}

void Node::process_started(const ProcessStart& start) {
  auto found = pods_.find(start.pod);
  if (found == pods_.end() || !found->second.running) return;
  if (!is_hook(start.step.container)) note_start(start.at);
  if (found->second.run.started(start, forget_)) process_lives(found, start.step);
}

// An end repeats when its process started, which says nothing about now.
void Node::note_start(Millis at) {
  fault_hold_ms_ = 0;
  if (at <= last_start_at_) return;
  last_start_at_ = at;
  ++started_;
}

// The executor has started the process, or will.
void Node::process_lives(Pods::iterator found, Step step) {
  auto& [id, pod] = *found;
  changed_.push_back(id);
  if (pod.run.sidecar(step.container) && !pod.stop) pod.run.advance(false);  // the next may start
  if (pod.run.planned() || pod.limit_ms) {
    if (is_hook(step.container)) pod.hook_killed = false;
    set_timer(id, pod);
  }
  // The kill may have overtaken the start; a second kill order is harmless.
  if (step.container == kEpilog) return;
  if (pod.stop)
    kills_.push_back({id, step, pod.stop_grace_ms});
  else if (pod.run.to_end() == step)
    kills_.push_back({id, step, pod.grace_ms});
}

// Whether the executor ended the process on its own (PodPlan::fence_after_ms). An agent that
// connected while it was ending has marked it as killed.
bool Node::is_fenced(const Pod& pod, const ProcessEnd& end) {
  return end.fenced && !is_hook(end.step.container) && (!pod.stop || pod.stop == EndCause::killed);
}

void Node::stop_fenced(Pod& pod) {
  pod.stop = EndCause::fenced;
  pod.stop_message = kNoContact;
  pod.stop_grace_ms = pod.grace_ms;
}

void Node::process_ended(const ProcessEnd& end) {
  auto pod = pods_.find(end.pod);
  const bool hook = is_hook(end.step.container);
  if (end.start && !hook) note_start(end.start->at);
  if (end.unstarted) {
    if (pod != pods_.end()) not_started(pod, end);
    return;
  }
  if (pod == pods_.end()) {
    if (auto known = unacked_.find(end.pod); known != unacked_.end()) {
      // Repeated after the executor reconnected, or a further end besides the one that counted:
      // forget both together.
      auto& had = known->second.entries;
      if (end.entry && std::find(had.begin(), had.end(), *end.entry) == had.end()) {
        had.push_back(*end.entry);
      }
      return;
    }
    if (end.step.container != 0) {  // its plan is unknown
      if (end.entry) forget_.push_back(*end.entry);
      return;
    }
    pod = adopt(end.pod, {}, 0);
  }
  Pod& p = pod->second;
  const bool fenced = is_fenced(p, end);
  // If nothing of the pod has run, another node may run it; else it is a failure here.
  const bool not_here = end.not_here() && !hook && !p.stop && !p.run.ran() &&
                        p.run.living() == std::vector<Step>{end.step};
  ProcessEnd failure;
  if (end.not_here() && !not_here && !hook) {
    failure = end;
    failure.exit_code = kExitCannotStart;
  }
  if (!p.run.ended(failure.exit_code != 0 ? failure : end, fenced ? EndCause::fenced : p.stop,
                   forget_))
    return;
  if (not_here) p.run.wind_down();
  if (fenced) {
    stop_fenced(p);
    order_kills(end.pod, p);
  }
  if (end.lost && !p.stop && !hook) {
    // The pod's other processes have lost their keeper too.
    p.stop = EndCause::keeper_lost;
    order_kills(end.pod, p);
  }
  go_on(pod, end.ended_at);
}

// A start failed for a reason of the node: the next one would fail too.
void Node::hold_after(const ProcessEnd& fault) {
  fault_ = fault.error;
  if (fault.ended_at < fault_until_) return;  // ordered before the hold
  fault_hold_ms_ = std::clamp(2 * fault_hold_ms_, kFaultHoldMinMs, kFaultHoldMaxMs);
  fault_until_ = fault.ended_at + fault_hold_ms_;
  hold_until_ = std::max(hold_until_, fault_until_);
}

// The executor did not start one of the pod's processes in time. The process starts under a later
// lease, unless the pod is ordered to end first.
void Node::not_started(Pods::iterator pod, const ProcessEnd& end) {
  Pod& p = pod->second;
  if (!p.run.starting(end.step)) return;
  if (end.node_fault()) hold_after(end);
  if (!p.stop && !p.withdrawn) hold_until_ = std::max(hold_until_, end.ended_at + kHoldMs);
  const bool epilog = p.run.in_epilog();
  p.run.unstart(end.step.container, p.stop.has_value(), epilog ? end.ended_at + kHoldMs : 0);
  if (epilog || p.stop || p.run.ran() || !p.run.living().empty()) return go_on(pod, end.ended_at);
  not_begun(pod, end.error, end.ended_at);
}

// Nothing of the pod ever ran. It goes back to waiting, unless it was withdrawn or an earlier agent
// ordered its start, which this agent does not know how to repeat.
void Node::not_begun(Pods::iterator pod, std::string why, Millis now) {
  Pod& p = pod->second;
  if (!p.withdrawn && (!p.adopted || p.run.planned())) return wait_again(pod);
  if (p.withdrawn) why = kInVain;
  p.run.reset();
  finish(pod, never_ran(pod->first, EndCause::returned, std::move(why), now));
}

// Puts a pod that never ran back into its place among the waiting pods.
void Node::wait_again(Pods::iterator pod) {
  Pod& p = pod->second;
  p.run.reset();
  release(p);
  forget_timer(pod->first, p);
  due_.erase(pod->first);
  std::erase(queue_, pod->first);
  auto later = std::find_if(waiting_.begin(), waiting_.end(), [&](PodId id) {
    auto other = pods_.find(id);
    return other != pods_.end() && other->second.number > p.number;
  });
  waiting_.insert(later, pod->first);
}

// Takes over a pod that an earlier agent started.
Node::Pods::iterator Node::adopt(PodId id, const Origin& origin, Millis grace_ms) {
  auto [pod, fresh] = pods_.try_emplace(id, origin.plan, grace_ms);
  Pod& p = pod->second;
  p.adopted = p.adopted || fresh;
  if (!std::exchange(p.running, true)) ++running_;
  if (!p.devices && origin.devices) {
    devices_.adopt(*origin.devices);
    p.devices = origin.devices;
  }
  return pod;
}

// Whether this is a hook that an earlier agent may have killed because of its time limit.
bool Node::is_late(const Pod& pod, const Living& hook, Millis now) {
  if (hook.step.container == kEpilog) return true;  // nothing else ends one
  if (hook.step.container != kProlog || !hook.start || !pod.run.planned()) return false;
  const auto limit = pod.run.plan()->prolog_ms;
  return limit && now >= hook.start->at + *limit;
}

void Node::executor_connected(const std::vector<Living>& living,
                              const std::vector<ProcessEnd>& ended, Millis now) {
  room_.reset();
  contact_notified_.reset();
  queue_.clear();
  std::set<PodId> taken_back;  // pods first known from here: take in all processes, then continue
  for (const ProcessEnd& end : ended) {
    if (unacked_.contains(end.pod) || (pods_.contains(end.pod) && !taken_back.contains(end.pod))) {
      process_ended(end);
      continue;
    }
    taken_back.insert(end.pod);
    Pod& pod = adopt(end.pod, end.origin, end.origin.grace_ms)->second;
    pod.run.take_origin(end.origin, end.step.container);
    if (is_fenced(pod, end)) stop_fenced(pod);
    pod.run.ended(end, pod.stop, forget_);
    if (end.lost && !is_hook(end.step.container)) pod.stop = EndCause::keeper_lost;
    if (end.origin.stop) pod.stop = end.origin.stop;
  }
  std::set<std::pair<PodId, uint16_t>> alive;
  std::map<PodId, Millis> ending;  // pods with a sidecar that is being killed, and its grace
  for (const Living& l : living) {
    PodId id = l.pod;
    alive.emplace(id, l.step.container);
    if (!pods_.contains(id)) taken_back.insert(id);
    auto found = adopt(id, l.origin, l.grace_ms);
    Pod& pod = found->second;
    if (l.queued) {
      if (!std::exchange(pod.queued, true)) {
        ++queued_;
        pod.queued_at = now;
      }
      pod.withdrawn = false;  // if it was withdrawn, that order was lost
      queue_.push_back(id);
    }
    if (taken_back.contains(id)) pod.run.take_origin(l.origin, l.step.container);
    if (taken_back.contains(id) && l.origin.stop) pod.stop = l.origin.stop;
    if (l.killing && !pod.stop && pod.run.sidecar(l.step.container)) {
      ending.emplace(id, l.grace_ms);
    } else if (l.killing && !pod.stop && !is_late(pod, l, now)) {
      pod.stop = EndCause::killed;
      pod.stop_grace_ms = l.grace_ms;  // the real one is unknown; the keeper only lets it shrink
    }
    if (l.start)
      process_started({id, l.step, l.start->pid, l.start->at, l.cpus});
    else if (pod.run.ordered(l.step))
      process_lives(found, l.step);
    auto deadline = deadline_of(pod);  // only agents order that kill, and nothing records it
    if (pod.stop == EndCause::killed && deadline && now >= *deadline) pod.stop = EndCause::deadline;
  }
  // A sidecar is also ended when all others are over. If they are not, the whole pod is.
  for (const auto& [id, grace_ms] : ending) {
    Pod& pod = pods_.find(id)->second;
    if (pod.stop || !pod.run.advance(false) || pod.run.to_end()) continue;
    pod.stop = EndCause::killed;
    pod.stop_grace_ms = grace_ms;
  }
  for (PodId id : taken_back) go_on(pods_.find(id), now);
  lose_what_is_not(alive, now);
}

void Node::executor_lost(Millis now) {
  std::vector<PodId> all;
  for (const auto& [id, pod] : pods_)
    if (pod.running) all.push_back(id);
  for (PodId id : all) {
    const auto pod = pods_.find(id);
    const std::vector<Step> living = pod->second.run.living();
    for (Step step : living) lose(id, pod->second, step, now);
    if (!living.empty()) go_on(pod, now);
    // Their ends must not wait for an executor.
    if (const auto left = pods_.find(id); left != pods_.end() && left->second.run.in_epilog())
      finish(left, now);
  }
}

// The executor of this process is gone. The pod's other processes are, too, or must be.
void Node::lose(PodId id, Pod& pod, Step step, Millis now) {
  ProcessEnd lost{.pod = id,
                  .step = step,
                  .lost = true,
                  .error = "the keeper of its process was lost",
                  .ended_at = now};
  if (auto pid = pod.run.shown().pid) lost.start = {*pid, pod.run.started_at().value_or(now)};
  pod.run.ended(lost, pod.stop, forget_);
  if (pod.stop || is_hook(step.container)) return;
  pod.stop = EndCause::keeper_lost;
  order_kills(id, pod);
}

// Processes of an earlier executor that are not alive: if their orders never reached it, they go
// back to waiting; otherwise they are lost.
void Node::lose_what_is_not(const std::set<std::pair<PodId, uint16_t>>& alive, Millis now) {
  std::vector<PodId> all, again;
  for (const auto& [id, pod] : pods_) {
    if (pod.running) all.push_back(id);
  }
  for (PodId id : all) {
    auto pod = pods_.find(id);
    Pod& p = pod->second;
    bool changed = false;
    for (Step step : p.run.living()) {
      if (alive.contains({id, step.container})) continue;
      changed = true;
      if (p.run.runs(step.container) || (p.adopted && !p.run.planned() && !p.queued)) {
        lose(id, p, step, now);
      } else {
        p.run.unstart(step.container, p.stop.has_value());
      }
    }
    if (!changed) continue;
    if (!p.stop && !p.run.ran() && !p.run.in_epilog()) {  // no process had reached the old executor
      again.push_back(id);
    } else {
      go_on(pod, now);
    }
  }
  for (auto id = again.rbegin(); id != again.rend(); ++id)
    not_begun(pods_.find(*id), "its keeper was lost", now);
}

bool Node::runs(PodId pod, uint16_t container) const {
  const auto found = pods_.find(pod);
  return found != pods_.end() && found->second.run.runs(container);
}

std::vector<ProcessStart> Node::living() const {
  std::vector<ProcessStart> all;
  for (const auto& [id, pod] : pods_) pod.run.living(id, all);
  return all;
}

std::vector<std::pair<PodId, std::vector<int>>> Node::processes() const {
  std::vector<std::pair<PodId, std::vector<int>>> all;
  for (const auto& [id, pod] : pods_) {
    if (pod.stop) continue;
    if (auto pids = pod.run.pids(); !pids.empty()) all.emplace_back(id, std::move(pids));
  }
  return all;
}

void Node::evict(PodId id, Millis now) {
  if (auto pod = pods_.find(id); pod != pods_.end()) stop_pod(pod, EndCause::evicted, 0, now);
}

void Node::give_up(PodId id, EndCause why, std::string message, Millis now) {
  auto pod = pods_.find(id);
  if (pod == pods_.end() || pod->second.stop || !pod->second.run.started_at()) return;
  pod->second.stop_message = std::move(message);
  stop_pod(pod, why, pod->second.grace_ms, now);
}

void Node::stop(Millis now) {
  stopping_ = true;
  std::vector<PodId> all;
  for (const auto& entry : pods_) all.push_back(entry.first);
  for (PodId id : all) {
    auto pod = pods_.find(id);
    stop_pod(pod, EndCause::agent_stopped, pod->second.grace_ms, now);
  }
}

Report Node::take_report() {
  Report report{.id = ++last_report_};
  Flight flight;
  while (!starts_.empty() && flight.starts.size() < kListMax) {
    PodId id = starts_.front();
    starts_.pop_front();
    auto found = pods_.find(id);
    if (found == pods_.end() || found->second.acked == found->second.reported) continue;
    const Pod& pod = found->second;
    flight.starts.emplace_back(id, pod.reported);
    report.starts.push_back({id, pod.shown.pid, pod.run.started_at().value_or(0),
                             pod.shown.restarts, pod.shown.readiness, pod.shown.containers,
                             pod.shown.cpus});
  }
  while (!ends_.empty() && flight.ends.size() < kListMax) {
    PodId id = ends_.front();
    ends_.pop_front();
    flight.ends.push_back(id);
    report.ends.push_back(unacked_.at(id).end);
  }
  if (!flight.starts.empty() || !flight.ends.empty()) {
    flights_.emplace(report.id, std::move(flight));
  }
  return report;
}

Orders Node::next(Millis now) {
  Orders orders;
  run_timers(now);
  if (contact_at_ != 0 && contact_notified_ != contact_at_)
    orders.contact_at = contact_notified_ = contact_at_;
  orders.kills = std::exchange(kills_, {});
  orders.signals = std::exchange(signals_, {});
  start_epilogs(orders, now);
  start_due(orders, now);
  start_waiting(orders, now);
  set_room(orders, now);
  std::optional<Millis> wait_until = return_waiting(now);
  std::optional<Millis> queued_until = withdraw_queued(orders, now);
  tell_changes();
  bool send_now =
      starts_.size() + ends_.size() >= kListMax || pods_.size() + unacked_.size() < kGatherFrom;
  if (now < reported_at_ + gather_ms_ && !send_now) {
    if (!starts_.empty() || !ends_.empty()) orders.again_at = reported_at_ + gather_ms_;
  } else {
    take_reports(orders, now);
  }
  auto again_at = [&orders](Millis at) {
    orders.again_at = std::min(at, orders.again_at.value_or(at));
  };
  if (!timers_.empty()) again_at(timers_.begin()->first);
  if (wait_until) again_at(*wait_until);
  if (queued_until) again_at(*queued_until);
  if (now < hold_until_) again_at(hold_until_);
  orders.forget = std::exchange(forget_, {});
  orders.over = std::exchange(over_, {});
  return orders;
}

void Node::take_reports(Orders& orders, Millis now) {
  while (connected_ && flights_.size() < kReportsMax && (!starts_.empty() || !ends_.empty())) {
    reported_at_ = now;
    Report report = take_report();
    if (!report.starts.empty() || !report.ends.empty()) orders.reports.push_back(std::move(report));
  }
}

std::vector<PodId> Node::running() const {
  std::vector<PodId> ids;
  for (const auto& [id, pod] : pods_) {
    if (pod.running) ids.push_back(id);
  }
  return ids;
}

std::vector<PodId> Node::waiting() const {
  std::vector<PodId> ids;
  for (const auto& [id, pod] : pods_) {
    if (!pod.running) ids.push_back(id);
  }
  return ids;
}

std::vector<PodEnded> Node::ends(size_t most) const {
  std::vector<PodEnded> ends;
  for (const auto& [id, unacked] : unacked_) {
    if (ends.size() == most) break;
    if (unacked.end.cause != EndCause::keeper_lost) ends.push_back(unacked.end);
  }
  return ends;
}

std::vector<PodId> Node::ended() const {
  std::vector<PodId> ids;
  for (const auto& entry : unacked_) ids.push_back(entry.first);
  return ids;
}

}  // namespace muster::core::node
