#include "agent/agent_loop.hpp"

#include "agent/disk.hpp"
#include "agent/memory.hpp"
#include "agent/run/orphans.hpp"
#include "base/check.hpp"
#include "base/log.hpp"
#include "core/node/space.hpp"

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

namespace muster::agent {

namespace {

constexpr Millis kExecutorPauseMs = 1'000, kExecutorPollMs = 1'000;
constexpr Millis kExecutorGraceMs = 10'000;  // then, what a keeper without successor ran is lost
constexpr Millis kWorkDirGraceMs = 10'000;   // to report what became of the pods
constexpr Millis kGatherMs = 2;  // between two reports at high rates, unless one is full
constexpr Millis kDrainLookMs = 50;
constexpr Millis kEndLookMs = 200;
constexpr Millis kClosingMs = 30'000;  // before its end, a node takes no new pods
constexpr Millis kDrainAloneMs =
    5'000;  // ends are safe in the spool: don't wait longer for the coordinator
constexpr Millis kSignalToAllMs = 500;  // from a signal to a pod or keeper until we get it, too
constexpr Millis kKillMaxMs = 2'000;
constexpr Millis kSweepEachMs = 60'000, kSweepStepMs = 20;
constexpr Millis kMemoryEachMs = 1'000, kMemoryAfterMs = 3'000;  // lets an eviction free memory
constexpr size_t kSweepEntries = 200;                            // about a millisecond

}  // namespace

void Agent::Bug::taskFailed(kj::Exception&& exception) {
  MUSTER_CHECK(false, text_of(exception));
}

Agent::Agent(kj::AsyncIoContext& io, const AgentOptions& options, WorkDir& work_dir,
             Credentials& credentials, LogStore& logs, RunDirs& run_dirs, Executor& executor)
    : io_(io),
      timer_(io.provider->getTimer()),
      options_(options),
      servers_(options.coordinator_user, options.insecure ? TrustedServers::Remote::accepted
                                                          : TrustedServers::Remote::refused),
      coordinators_(options.coordinators),
      address_(coordinators_.now()),
      work_dir_(work_dir),
      credentials_(credentials),
      logs_(logs),
      run_dirs_(run_dirs),
      executor_(executor),
      node_(options.slots, work_dir.term(), kGatherMs,
            core::node::Devices(options.resources, options.device_numbers)),
      sessions_(io.unixEventPort, timer_, executor, logs),
      local_(io, run_dirs, *this),
      configs_(timer_,
               {[this] { return session(); },
                [this](std::vector<Executor::Start> starts) { start_held(std::move(starts)); }},
               extras_of(options)),
      peers_(io, options.peer_ports) {
  if (options_.health_check.empty()) return;
  check_.emplace(timer_, options_.health_check, options_.health_check_every_ms, [this] {
    hold_starts();
    schedule();
    if (link_.get() != nullptr && link_->session != nullptr) send_heartbeat(*link_);
  });
}

kj::Promise<Result<int>> Agent::run() {
  auto finished = kj::newPromiseAndFulfiller<void>();
  finished_ = kj::mv(finished.fulfiller);
  log::info("node {} with {} slots, work-dir {}", work_dir_.node_name(), options_.slots,
            work_dir_.path());
  if (!credentials_.encrypted())
    for (const std::string& address : coordinators_.all())
      if (const auto refused = servers_.refuses_address(address)) finish(*refused);
  if (!result_) connect_executor();
  // Without a keeper at startup, fail; only a keeper that is lost later is worth a retry.
  if (!executor_ready_ && !result_) finish(Error{Errc::unavailable, said_});
  if (!result_) {
    tasks_.add(stay_connected());
    tasks_.add(watch_executor());
    if (!options_.hollow) {
      tasks_.add(sweep_logs());
      tasks_.add(watch_outputs());
      tasks_.add(check_sessions());
    }
    if (options_.until_ms) {
      life_ms_ = std::max<Millis>(0, *options_.until_ms - wall_now());
      tasks_.add(watch_end());
    }
    if (!options_.hollow && options_.evict_below_bytes) tasks_.add(watch_memory());
    if (check_) {
      hold_starts();
      tasks_.add(check_->run());
    }
  }
  return finished.promise.then([this] {
    if (link_.get() != nullptr) close_link("the agent is shutting down");
    return *result_;
  });
}

void Agent::finish(Result<int> result) {
  if (result_) return;
  result_ = std::move(result);
  finished_->fulfill();
}

void Agent::say(const std::string& state) {
  if (state == said_) return;
  said_ = state;
  log::warn("{}", state);
}

// --- the executor

void Agent::connect_executor() {
  auto known = executor_.connect(*this);
  if (known) {
    executor_ready_ = true;
    executor_gone_ms_.reset();
    say_limits();
    executor_gone_.clear();
    pods_.insert(known->templates.begin(), known->templates.end());
    listen_to_pods();
    node_.executor_queues(executor_.queues());
    node_.executor_connected(known->living, known->ended, boot_now());
    executor_.keep(node_.running());
    schedule();
    return;
  }
  executor_gone_ = known.error().message;
  say("no keeper: " + executor_gone_);
  if (known.error().code != Errc::unavailable) finish(known.error());
}

// Only MPI jobs need it.
void Agent::listen_to_pods() {
  if (options_.hollow || listening_) return;
  Status listening = local_.listen(executor_.runs_users());
  listening_ = listening.ok();
  if (!listening_) log::warn("MPI jobs cannot run here: {}", listening.error().message);
}

void Agent::say_limits() {
  if (options_.hollow) return;
  const Executor::Limits limits = executor_.limits();
  if (limits.memory && limits.cpu)
    log::info("memory and cpu limits of containers are enforced");
  else
    log::warn("{} limits of containers are not enforced: {}",
              limits.cpu      ? "memory"
              : limits.memory ? "cpu"
                              : "memory and cpu",
              limits.why);
}

// Keeps the node's condition up to date; running pods are not affected, unless their keeper is gone
// for good.
kj::Promise<void> Agent::watch_executor() {
  const Millis now = boot_now();
  if (!executor_ready_ && executor_gone_ms_ && now - *executor_gone_ms_ >= kExecutorGraceMs) {
    executor_gone_ms_.reset();
    log::error("no keeper has replaced the one that is gone: {} pods are lost with it",
               node_.running().size());
    kill_orphans(node_.living());
    node_.executor_lost(now);
    schedule();
  }
  if (const Status there = work_dir_.there(); !there) {
    if (!work_dir_gone_ms_) log::error("{}", there.error().message);
    const Millis since = *(work_dir_gone_ms_ = work_dir_gone_ms_.value_or(now));
    if (node_.empty() || now - since >= kWorkDirGraceMs) {
      finish(Error{Errc::unavailable, there.error().message + ": start the agent again"});
      return kj::READY_NOW;
    }
  }
  core::node::Trouble trouble =
      executor_ready_ ? executor_.check() : core::node::Trouble{"KeeperNotRunning", executor_gone_};
  if (!trouble && !work_dir_.path().empty())
    trouble = disk_trouble(work_dir_.path(), options_.disk_reserve_bytes);
  if (work_dir_gone_ms_) trouble = {"WorkDirGone", "the agent's work-dir was deleted"};
  executor_trouble_ = static_cast<bool>(trouble);
  hold_starts();
  show_trouble(trouble ? std::move(trouble) : node_.start_trouble(now));
  return timer_.afterDelay(kExecutorPollMs * kj::MILLISECONDS).then([this] {
    return watch_executor();
  });
}

void Agent::hold_starts() {
  node_.executor_in_trouble(executor_trouble_);
  node_.hold_new_pods(!health_failure().empty());
}

void Agent::show_trouble(core::node::Trouble trouble) {
  if (trouble == trouble_) return;
  if (trouble)
    log::warn("{}: {}", trouble.reason, trouble.message);
  else
    log::info("pods can start again");
  trouble_ = std::move(trouble);
  schedule();
  if (link_.get() != nullptr && link_->session != nullptr) send_heartbeat(*link_);
}

void Agent::on_started(const std::vector<core::node::ProcessStart>& started) {
  starts_ += started.size();
  for (const auto& start : started) node_.process_started(start);
  schedule();
}

// Whoever ends an allocation (--until) sends SIGTERM to all of its processes, and a pod, or the
// keeper that tells of its end, may get it before we do: then the node is leaving, and the pod has
// not failed. So such ends are taken only when that signal would have arrived.
bool Agent::may_be_ending() const {
  return options_.until_ms && !draining_;
}

void Agent::on_ended(const std::vector<core::node::ProcessEnd>& ended) {
  ends_ += ended.size();
  if (!may_be_ending()) return take_ends(ended);
  std::vector<core::node::ProcessEnd> now, later;
  for (const auto& end : ended) (end.signal == SIGTERM ? later : now).push_back(end);
  take_ends(now);
  if (later.empty()) return;
  tasks_.add(
      timer_.afterDelay(kSignalToAllMs * kj::MILLISECONDS).then([this, later = std::move(later)] {
        take_ends(later);
      }));
}

// Why the node gets no new pods: its health check fails, or an epilog has left something behind.
std::string Agent::health_failure() const {
  const std::string check = check_ ? check_->failure() : "";
  return check.empty() ? epilog_failure_ : check;
}

void Agent::note_hook(const core::node::ProcessEnd& end) {
  const bool prolog = end.step.container == core::node::kProlog;
  const core::node::HookLimits limits = extras_of(options_).hooks;
  const std::string failure =
      end.unstarted ? "" : hook_failure(end, prolog ? limits.prolog_ms : limits.epilog_ms);
  if (failure.empty()) return;
  const std::string what =
      (prolog ? "the prolog of " : "the epilog of ") + to_string(end.pod) + " failed: " + failure;
  log::warn("{}", what);
  if (prolog || end.lost) return;
  epilog_failure_ = what;
  hold_starts();
  if (link_.get() != nullptr && link_->session != nullptr) send_heartbeat(*link_);
}

void Agent::take_ends(const std::vector<core::node::ProcessEnd>& ended) {
  for (const auto& end : ended)
    if (core::node::is_hook(end.step.container)) note_hook(end);
  for (const auto& end : ended) node_.process_ended(end);
  const bool faulty =
      std::any_of(ended.begin(), ended.end(), [](const auto& end) { return end.node_fault(); });
  if (faulty && !trouble_) show_trouble(node_.start_trouble(boot_now()));
  schedule();
}

void Agent::on_volume_full(PodId pod, const std::string& message) {
  log::warn("evicting {}: {}", to_string(pod), message);
  node_.give_up(pod, core::EndCause::evicted, message, boot_now());
  schedule();
}

void Agent::on_executor_gone(const std::string& why) {
  executor_ready_ = false;
  executor_gone_ms_ = boot_now();
  executor_trouble_ = true;  // until one has replaced it
  hold_starts();
  configs_.clear();
  if (leaving_) return finish(0);
  say("the keeper is gone: " + why + "; starting another");
  if (!may_be_ending()) return reconnect_executor();
  tasks_.add(
      timer_.afterDelay(kSignalToAllMs * kj::MILLISECONDS).then([this] { reconnect_executor(); }));
}

void Agent::reconnect_executor() {
  if (leaving_) return finish(0);
  connect_executor();
  if (executor_ready_) return;
  tasks_.add(timer_.afterDelay(kExecutorPauseMs * kj::MILLISECONDS).then([this] {
    reconnect_executor();
  }));
}

// --- the node's orders

void Agent::schedule() {
  if (std::exchange(pumping_, true)) return;
  tasks_.add(kj::evalLast([this] { pump(); }));
}

void Agent::pump() {
  pumping_ = false;
  if (leaving_) return;
  core::node::Orders orders = node_.next(boot_now());
  if (orders.contact_at) executor_.contact(*orders.contact_at);
  for (const auto& end : configs_.drop(orders.kills, orders.withdrawn)) {
    node_.process_ended(end);
    schedule();
  }
  if (!orders.kills.empty()) executor_.kill(orders.kills);
  if (!orders.signals.empty()) executor_.signal(orders.signals);
  if (orders.room) executor_.set_room(*orders.room);
  if (!orders.withdrawn.empty()) executor_.withdraw(orders.withdrawn);
  if (!orders.starts.empty()) {
    std::vector<Executor::Start> starts;
    starts.reserve(orders.starts.size());
    for (const auto& order : orders.starts) {
      auto& job = pods_.at(order.pod);
      if (!job->config_needs.empty() && !core::node::is_hook(order.step.container)) {
        auto fresh = configs_.fresh(*job);
        if (fresh == nullptr) {
          configs_.hold({order, job});
          continue;
        }
        job = std::move(fresh);
      }
      starts.push_back({order, job});
    }
    if (!starts.empty()) executor_.start(starts);
  }
  for (const auto& report : orders.reports) {
    // The node reports only while it is registered, which implies a link with a session.
    send(*link_, KJ_ASSERT_NONNULL(link_->session), report);
  }
  executor_.forget(orders.forget);
  std::vector<PodId> released;
  for (PodId pod : orders.over) {
    const auto job = pods_.extract(pod);
    if (job && core::node::has_space(*job.mapped())) released.push_back(pod);
    run_dirs_.remove(pod);
  }
  if (!released.empty()) executor_.release(released);
  if (!orders.again_at || (again_at_ && *again_at_ <= *orders.again_at)) return;
  again_at_ = orders.again_at;  // replaces a later one, which next() will ask for again
  again_ = timer_.afterDelay(std::max<Millis>(1, *again_at_ - boot_now()) * kj::MILLISECONDS)
               .then([this] {
                 again_at_.reset();
                 schedule();
               })
               .eagerlyEvaluate([](kj::Exception&& e) { MUSTER_CHECK(false, text_of(e)); });
}

// Their config maps have arrived. Meanwhile, the lease or the pods may have ended.
void Agent::start_held(std::vector<Executor::Start> held) {
  std::vector<Executor::Start> starts;
  for (auto& start : held) {
    const Millis now = boot_now();
    const auto by = node_.start_by(start.order.pod, start.order.step, now);
    const auto pod = pods_.find(start.order.pod);
    if (!by || pod == pods_.end()) {
      node_.process_ended(
          {.pod = start.order.pod, .step = start.order.step, .ended_at = now, .unstarted = true});
      schedule();
    } else if (*by <= now || !executor_ready_) {
      configs_.hold_longer(std::move(start));
    } else {
      pod->second = start.job;
      start.order.not_after = *by;
      starts.push_back(std::move(start));
    }
  }
  if (!starts.empty()) executor_.start(starts);
}

// --- leaving

void Agent::obey(AgentControl::Command command) {
  switch (command) {
    case AgentControl::Command::none:
      return;
    case AgentControl::Command::drain:
      return drain();
    case AgentControl::Command::leave:
      log::info("shutting down; pods keep running");
      leaving_ = true;
      return finish(0);
    case AgentControl::Command::kill:
      if (std::exchange(leaving_, true)) return;
      log::info("shutting down; terminating all pods");
      executor_.end_all();
      if (!executor_ready_) return finish(0);
      tasks_.add(timer_.afterDelay(kKillMaxMs * kj::MILLISECONDS).then([this] { finish(0); }));
      return;
  }
}

void Agent::drain() {
  if (std::exchange(draining_, true)) return;
  log::info("draining: {} pods running, {} waiting", node_.running().size(),
            node_.waiting().size());
  node_.stop(boot_now());
  if (link_.get() != nullptr) {
    KJ_IF_MAYBE (session, link_->session) {
      say_leave(*link_, *session);
    }
  }
  schedule();
  tasks_.add(watch_drain(boot_now()));
}

// Before the node's end, it takes no new pods; then each pod is ended early enough for its grace,
// and at last the agent drains. In steps, because the wall clock may jump.
kj::Promise<void> Agent::watch_end() {
  const Millis left_ms = *options_.until_ms - wall_now();
  if (left_ms <= std::min(kClosingMs, life_ms_ / 10) && !std::exchange(closing_, true)) {
    log::info("the node ends in {} s (--until): it takes no new pods", left_ms / 1000);
    KJ_IF_MAYBE (session, this->session()) {
      say_leave(*link_, *session);
    }
  }
  for (const auto& [id, pids] : node_.processes()) {
    const auto job = pods_.find(id);
    if (job == pods_.end() || left_ms > job->second->grace_ms) continue;
    node_.give_up(id, core::EndCause::agent_stopped, "the node ends (--until)", boot_now());
    schedule();
  }
  if (left_ms <= 0) {
    drain();
    return kj::READY_NOW;
  }
  return timer_.afterDelay(std::min(left_ms, kEndLookMs) * kj::MILLISECONDS).then([this] {
    return watch_end();
  });
}

void Agent::say_leave(Link& link, wire::Session::Client session) {
  saying_leave_ = true;
  link.tasks.add(session.leaveRequest().send().then(
      [this](capnp::Response<wire::Session::LeaveResults>&&) { saying_leave_ = false; }));
}

kj::Promise<void> Agent::watch_drain(Millis alone_since) {
  Millis now = boot_now();
  bool heard = link_.get() != nullptr && link_->session != nullptr;
  if (heard || !node_.idle()) alone_since = now;
  if ((node_.empty() && !saying_leave_) || now - alone_since >= kDrainAloneMs) {
    if (!node_.empty())
      log::warn("leaving {} unacknowledged ends in {} for the next agent", node_.unacked(),
                work_dir_.path());
    finish(0);
    return kj::READY_NOW;
  }
  return timer_.afterDelay(kDrainLookMs * kj::MILLISECONDS).then([this, alone_since] {
    return watch_drain(alone_since);
  });
}

kj::Promise<void> Agent::sweep_logs() {
  bool done =
      logs_.sweep({options_.log_keep_ms, options_.log_max_bytes}, wall_now(), kSweepEntries);
  return timer_.afterDelay((done ? kSweepEachMs : kSweepStepMs) * kj::MILLISECONDS).then([this] {
    return sweep_logs();
  });
}

kj::Promise<void> Agent::watch_outputs() {
  logs_.times().look(wall_now());
  return timer_.afterDelay(LogTimes::kEachMs * kj::MILLISECONDS).then([this] {
    return watch_outputs();
  });
}

// While the node is short of memory, evicts the largest pod, one at a time: the kernel's OOM killer
// might pick the keeper.
kj::Promise<void> Agent::watch_memory() {
  auto available = available_memory();
  Millis pause = kMemoryEachMs;
  if (available && *available < *options_.evict_below_bytes) {
    const auto used = memory_by_group();
    std::optional<PodId> largest;
    uint64_t most = 0;
    for (const auto& [id, pids] : node_.processes()) {
      uint64_t bytes = 0;
      for (int pid : pids)
        if (auto it = used.find(pid); it != used.end()) bytes += it->second;
      if (!largest || bytes > most) largest = id, most = bytes;
    }
    if (largest) {
      log::warn("{} MiB of memory left: evicting {}, which uses {} MiB", *available >> 20,
                to_string(*largest), most >> 20);
      node_.evict(*largest, boot_now());
      schedule();
      pause = kMemoryAfterMs;
    }
  }
  return timer_.afterDelay(pause * kj::MILLISECONDS).then([this] { return watch_memory(); });
}

}  // namespace muster::agent
