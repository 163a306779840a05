#include "keeper/loop/supervisor.hpp"

#include "keeper/kernel/proc.hpp"
#include "keeper/kernel/start_fault.hpp"
#include "keeper/kernel/tell.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::keeper {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kGatherNs = 2 * kNsPerMs;       // minimum between two turns
constexpr uint64_t kGatherMaxNs = 128 * kNsPerMs;  // maximum between two lists of starts and ends
constexpr size_t kGatherFrom = 16;                 // living processes
constexpr uint64_t kCheckNs = 500 * kNsPerMs;
// As kFreshNs: with many processes, even the shortest take longer, since they share the cores.
constexpr uint64_t kFreshOfManyNs = 50 * kNsPerMs;
constexpr uint64_t kUnbornNs = 2 * kNsPerMs, kUnbornMaxNs = 200 * kNsPerMs;
constexpr int kQuickLooks = 100;  // one every millisecond, then one every ten
// After so many, a process whose group and cgroup are empty has ended, whatever strays there are.
constexpr int kStrayLooks = 100;
constexpr uint64_t kScanShare =
    10;  // scans of the adopted take at most one in so many parts of time
constexpr uint64_t kNsPerTick = 10 * kNsPerMs;  // of /proc, whatever the kernel's own rate
constexpr uint64_t kFarewellNs = 500 * kNsPerMs;
constexpr uint64_t kUnwrittenMaxNs =
    5'000 * kNsPerMs;  // then ends are told before they are written
// How long ends that cannot be written wait for an agent that takes them.
constexpr uint64_t kUnwrittenIdleNs = 600'000 * kNsPerMs;
// A pong waits for the ends of processes that have exited, so that all are reported before it.
constexpr uint64_t kPongMaxNs = 300 * kNsPerMs;

constexpr uint64_t kListenEvent = ~uint64_t{0};
constexpr uint64_t kSpawnedEvent = ~uint64_t{1};

void watch(int epoll_fd, int operation, int fd, uint32_t events, uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (epoll_ctl(epoll_fd, operation, fd, &event) < 0) tell_errno("epoll_ctl");
}

}  // namespace

Supervisor::Supervisor(Options options, Spool& spool, Outputs& outputs, Spawner& spawner,
                       const Owners* owners, Cgroups* cgroups, const Spaces& spaces)
    : options_(options),
      spool_(spool),
      outputs_(outputs),
      spawner_(spawner),
      owners_(owners),
      cgroups_(cgroups),
      spaces_(spaces),
      adopted_(options.keeper),
      output_limit_(options.output_max_bytes, owners != nullptr ? owners->work_fd() : AT_FDCWD,
                    [owners](const std::string& path) {
                      return owners != nullptr
                                 ? owners->reopen_output(path)
                                 : open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
                    }),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)) {
  watch(epoll_fd_, EPOLL_CTL_ADD, listen_fd_, EPOLLIN, kListenEvent);
  watch(epoll_fd_, EPOLL_CTL_ADD, spawner_.event_fd(), EPOLLIN, kSpawnedEvent);
  now_ns_ = idle_since_ns_ = boot_ns();
}

void Supervisor::adopt(Record record) {
  auto process = std::make_unique<Process>();
  static_cast<Record&>(*process) = std::move(record);
  spool_.adopt(*process);
  if (!process->ended) {
    process->lost = true;
    process->exit_code = 128 + SIGKILL;
    process->signal = SIGKILL;
    process->error = "its keeper died";
    process->end_ns = process->this_boot ? now_ns_ : 0;
    process->ended = true;
    spool_.ended(*process);
    ends_.push_back(process->entry);
  } else {
    process->committed = true;
  }
  process->state = State::ended;
  by_key_[process->key] = process.get();
  processes_[process->entry] = std::move(process);
}

void Supervisor::run() {
  spool_.adopted_all();
  std::array<epoll_event, 256> events;
  while (true) {
    rest();
    int count = epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()), timeout_ms());
    now_ns_ = boot_ns();
    for (int i = 0; i < count; ++i) {
      uint64_t id = events[static_cast<size_t>(i)].data.u64;
      if (id == kListenEvent) {
        accept_agent();
      } else if (id == kSpawnedEvent) {
        take_news();
      } else if (id == kAgentEvent) {
        if (events[static_cast<size_t>(i)].events & ~uint32_t{EPOLLOUT}) read_agent();
      } else {
        on_room_for_input(id);
      }
    }
    held_up_ = spawner_.rescue();
    if (pinged_ns_ || held_up_ || now_ns_ >= news_at_ns_) take_news();
    run_timers();
    look_for_leftovers();
    check_idle();
    check_sigterms();
    bool written = commit();
    if (pinged_ns_ && (leaving_.empty() || now_ns_ >= *pinged_ns_ + kPongMaxNs)) {
      Frame(out_, Type::pong).text(spool_.trouble());
      pinged_ns_.reset();
    }
    send();
    if (stopping_ && living_ == 0) {
      if (stop_at_ns_ == 0) stop_at_ns_ = now_ns_ + kFarewellNs;
      if ((written && (agent_fd_ < 0 || out_.empty())) || now_ns_ >= stop_at_ns_) break;
    }
  }
  spool_.leave();
  outputs_.remove_spares();
}

// Under load, starts and ends are taken in lists, which saves wake-ups here, in the agent and in
// the coordinator, and writes to the spool. While the queue lasts, no slot waits for them, so they
// are gathered for longer, until half of the queue is left. This does not delay the agent's orders.
// After a pause there is no delay.
void Supervisor::take_news() {
  spawner_.takes_at(UINT64_MAX);  // first, so that no start goes unnoticed in between
  Spawner::News news = spawner_.take();
  for (auto& spawned : news.spawned) on_spawned(std::move(spawned));
  for (auto& exited : news.exited) on_exited(std::move(exited));
  news_taken_ = true;
  const bool gathers = living_ >= kGatherFrom && !(news.spawned.empty() && news.exited.empty());
  if (gathers)
    take_news_at(now_ns_ + (spawner_.waiting() > 0 ? kGatherMaxNs : kGatherNs));
  else
    take_news_at(news.exited.empty() || spawner_.waiting() == 0 ? UINT64_MAX : now_ns_ + kFreshNs);
  gathers_ = gathers;
  spawner_.gather(gathers);
}

void Supervisor::take_news_at(uint64_t ns) {
  news_at_ns_ = ns;
  spawner_.takes_at(ns);
}

// Under load, spaces out the turns, so that orders also arrive in lists.
void Supervisor::rest() {
  const uint64_t until = now_ns_ + kGatherNs;
  if (living_ < kGatherFrom || boot_ns() >= until) return;
  timespec at{static_cast<time_t>(until / 1'000'000'000), static_cast<long>(until % 1'000'000'000)};
  clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &at, nullptr);
}

Supervisor::Process* Supervisor::find(uint64_t entry) {
  auto it = processes_.find(entry);
  return it == processes_.end() ? nullptr : it->second.get();
}

// Every process of a container, ended ones too.
template <class Do>
void Supervisor::for_instances(Key key, Do act) {
  key.instance = 0;
  auto same = [&key](const Key& other) {
    return other.job == key.job && other.index == key.index && other.attempt == key.attempt &&
           other.container == key.container;
  };
  for (auto it = by_key_.lower_bound(key); it != by_key_.end() && same(it->first); ++it)
    act(*it->second);
}

// The process that a session joins; null: its container does not run.
Supervisor::Process* Supervisor::host_of(Key session) {
  session.container &= static_cast<uint16_t>(~kSessionBit);
  Process* host = nullptr;
  for_instances(session, [&host](Process& one) {
    if (one.state == State::running && !one.killing) host = &one;
  });
  return host;
}

// Every living session of a container.
template <class Do>
void Supervisor::for_sessions(Key host, Do act) {
  if (sessions_ == 0 || host.session()) return;
  host.container |= kSessionBit;
  for_instances(host, [&act](Process& one) {
    if (!one.ended) act(one);
  });
}

uint64_t Supervisor::fresh_ns() const {
  return living_ < kGatherFrom ? kFreshNs : kFreshOfManyNs;
}

int Supervisor::timeout_ms() const {
  uint64_t until = next_check_ns_;
  if (!kills_.empty()) until = std::min(until, kills_.begin()->first);
  until = std::min(until, next_fence_ns());
  until = std::min(until, news_at_ns_);
  if (!fresh_.empty() && !gathers_) {
    auto first = processes_.find(fresh_.front());
    const bool runs = first != processes_.end() && first->second->state == State::running;
    until = std::min(until, runs ? first->second->start->at_ns + fresh_ns() : now_ns_);
  }
  if (!unborn_.empty()) until = std::min(until, next_unborn_ns_);
  uint64_t wait_ms = until > now_ns_ ? (until - now_ns_ + kNsPerMs - 1) / kNsPerMs : 0;
  if (unwritten_ || held_up_ || stop_at_ns_ != 0) wait_ms = std::min<uint64_t>(wait_ms, 20);
  for (uint64_t entry : leaving_) {
    int looks = processes_.at(entry)->looks;
    wait_ms = std::min<uint64_t>(wait_ms, looks < kQuickLooks ? 1 : 10);
  }
  return static_cast<int>(wait_ms);
}

// ---- processes

void Supervisor::on_spawned(Spawned spawned) {
  Process* process = find(spawned.entry);
  if (process == nullptr) return;
  process->tried_ns = now_ns_;
  process->outputs = std::move(spawned.outputs);
  process->written = std::move(spawned.written);
  if (spawned.late) return turn_away(*process, kTooLate);
  if (spawned.node_fault) {
    process->exit_code = core::kExitNotHere;
    return turn_away(*process, std::move(spawned.error));
  }
  if (!spawned.start) {
    process->exit_code = spawned.exit_code;
    process->error = std::move(spawned.error);
    process->end_ns = now_ns_;
    end(*process);
    return;
  }
  process->start = spawned.start;
  process->unborn = spawned.unborn;
  process->cgroup = std::move(spawned.cgroup);
  process->cpus = std::move(spawned.cpus);
  if (spawned.cpus_missing > 0)
    tell("not bound, %u CPUs of its own are not free: %s", spawned.cpus_missing,
         process->note.c_str());
  process->input = std::move(spawned.input);
  process->state = State::running;
  by_pid_[process->start->pid] = process->entry;
  fresh_.push_back(process->entry);
  if (process->killing) kill_group(*process, process->kill_at_ns <= now_ns_ ? SIGKILL : SIGTERM);
  if (std::exchange(process->input_waits, false)) tell_taken(process->key, 0, !process->input);
}

void Supervisor::on_exited(Exited exited) {
  Process& process = *find(exited.entry);
  process.exit_code = exited.exit_code;
  process.signal = exited.signal;
  process.end_ns = exited.end_ns;
  process.used = exited.used;
  process.no_exec = !exited.error.empty();
  process.error = std::move(exited.error);
  process.outputs = std::move(exited.outputs);
  process.left = exited.left;
  process.state = State::leaving;
  close_input(process);
  leaving_.push_back(process.entry);
  for_sessions(process.key, [this](Process& session) { kill(session, 0); });
}

void Supervisor::look_for_leftovers() {
  if (leaving_.empty()) return;
  // Groups first: by the time we scan the adopted, orphans of dead groups are among them.
  std::vector<uint64_t> still, gone;
  for (uint64_t entry : leaving_) {
    Process& process = *find(entry);
    ++process.looks;
    bool left = process.left && (::kill(-process.start->pid, 0) == 0 || errno != ESRCH);
    for_sessions(process.key, [&left](const Process&) { left = true; });
    if (process.left && process.cgroup != nullptr && !Cgroups::is_empty(*process.cgroup)) {
      Cgroups::kill(*process.cgroup);
      left = true;
    }
    (left ? still : gone).push_back(entry);
  }
  if (adopted_.reap()) {
    // What a process with a cgroup leaves is in there, so it waits neither for a scan nor for
    // strays.
    const bool scans = now_ns_ >= next_scan_ns_;
    const auto strays =
        !scans ? std::vector<Adopted::Stray>()
               : adopted_.scan(
                     [this](int session) {
                       auto it = by_pid_.find(session);
                       return it == by_pid_.end() ? 0 : it->second;
                     },
                     [&](int pid, uint64_t entry) {
                       Process* process = find(entry);
                       if (process != nullptr && process->state == State::running) return;
                       ::kill(pid, SIGKILL);  // our child, so the pid cannot have been reused
                       if (auto it = std::find(gone.begin(), gone.end(), entry); it != gone.end()) {
                         gone.erase(it);
                         still.push_back(entry);
                       }
                     });
    if (scans) next_scan_ns_ = now_ns_ + kScanShare * (boot_ns() - now_ns_);
    std::erase_if(gone, [&](uint64_t entry) {
      const Process& process = *find(entry);
      const bool waits = process.cgroup == nullptr &&
                         (!scans || (process.looks < kStrayLooks &&
                                     std::ranges::any_of(strays, [&](const auto& one) {
                                       return may_have_left(process, one);
                                     })));
      if (waits) still.push_back(entry);
      return waits;
    });
  }
  leaving_ = std::move(still);
  for (uint64_t entry : gone) end(*find(entry));
}

// Nothing has descendants that are older, or that belong to another user.
bool Supervisor::may_have_left(const Process& process, const Adopted::Stray& stray) const {
  return stray.user == process.user.value_or(geteuid()) &&
         (stray.start_ticks + 2) * kNsPerTick >= process.start->at_ns;
}

void Supervisor::settle(Process& process) {
  if (process.start) {
    auto it = by_pid_.find(process.start->pid);
    if (it != by_pid_.end() && it->second == process.entry) by_pid_.erase(it);
  }
  if (process.killing) kills_.erase({process.kill_at_ns, process.entry});
  if (process.fence) fences_.erase({process.fence->after_ns, process.entry});
  close_input(process);
  if (process.cgroup != nullptr) {
    process.out_of_memory = process.signal == SIGKILL && cgroups_->out_of_memory(*process.cgroup);
    cgroups_->measure(*process.cgroup, process.used);
    cgroups_->recycle(std::move(process.cgroup));
  }
  for (const std::string& path : std::exchange(process.outputs, {})) outputs_.close(path);
  output_limit_.remove(process.entry);
  if (process.enqueued || !process.cpus.empty()) spawner_.vacate(process.entry);
  process.state = State::ended;
  process.ended = true;
  --living_;
  if (process.key.session()) --sessions_;
  ends_.push_back(process.entry);
}

void Supervisor::end(Process& process) {
  settle(process);
  if (process.no_exec) {  // nothing was started
    process.tried_ns = process.start->at_ns;
    process.start.reset();
    process.used = {};
  }
  spool_.ended(process);
}

void Supervisor::turn_away(Process& process, std::string why) {
  tell("not started: %s: %s", process.note.c_str(), why.c_str());
  drop(process, std::move(why));
}

// It was not started and won't be.
void Supervisor::drop(Process& process, std::string why) {
  process.unstarted = true;
  process.error = std::move(why);
  process.end_ns = now_ns_;
  settle(process);
  spool_.withdraw(process);
}

// Drops a process that is still queued; false: it is not.
bool Supervisor::withdraw(Process& process, const char* why) {
  if (process.state != State::starting || !process.enqueued) return false;
  auto job = std::find_if(queue_.begin(), queue_.end(),
                          [&](const SpawnJob& one) { return one.token.entry == process.entry; });
  if (job != queue_.end())
    queue_.erase(job);
  else if (!spawner_.withdraw(process.entry))
    return false;
  drop(process, why);
  return true;
}

void Supervisor::kill_group(const Process& process, int signal) {
  spawner_.signal(process.entry, signal);
  if (signal == SIGKILL && process.cgroup != nullptr) Cgroups::kill(*process.cgroup);
}

void Supervisor::kill(Process& process, int64_t grace_ms) {
  if (process.state != State::starting && process.state != State::running) return;
  if (withdraw(process, "it was killed while it was still queued")) return;
  constexpr int64_t kGraceMax = int64_t{1} << 40;
  uint64_t at =
      now_ns_ + static_cast<uint64_t>(std::clamp<int64_t>(grace_ms, 0, kGraceMax)) * kNsPerMs;
  bool first = !process.killing;
  if (!first && at >= process.kill_at_ns) return;
  if (!first) kills_.erase({process.kill_at_ns, process.entry});
  process.killing = true;
  process.kill_at_ns = at;
  kills_.emplace(at, process.entry);
  if (first && grace_ms > 0 && process.state == State::running) kill_group(process, SIGTERM);
  for_sessions(process.key, [this, grace_ms](Process& session) { kill(session, grace_ms); });
}

uint64_t Supervisor::next_fence_ns() const {
  return fences_.empty() ? UINT64_MAX : contact_ns_ + fences_.begin()->first;
}

void Supervisor::run_fences() {
  while (next_fence_ns() <= now_ns_) {
    Process& process = *find(fences_.begin()->second);
    fences_.erase(fences_.begin());
    if (process.killing || process.state == State::leaving) continue;
    process.fenced = true;
    tell("ended, %lld s without contact: %s",
         static_cast<long long>((now_ns_ - contact_ns_) / 1'000'000'000), process.note.c_str());
    kill(process, process.fence->grace_ms);
  }
}

void Supervisor::run_timers() {
  run_fences();
  while (!kills_.empty() && kills_.begin()->first <= now_ns_) {
    Process* process = find(kills_.begin()->second);
    kills_.erase(kills_.begin());
    if (process->state == State::running) kill_group(*process, SIGKILL);  // else on_spawned() does
  }
  // Until news is taken, it is not known which of them still run.
  while (!fresh_.empty() && (news_taken_ || !gathers_)) {
    Process* process = find(fresh_.front());
    if (process != nullptr && process->state == State::running) {
      if (process->start->at_ns + fresh_ns() > now_ns_) break;
      if (!process->unborn || spawner_.begun(process->entry)) {
        show_start(*process);
      } else {
        unborn_.push_back(process->entry);
        unborn_wait_ns_ = kUnbornNs;
        next_unborn_ns_ = now_ns_ + unborn_wait_ns_;
      }
    }
    fresh_.pop_front();
  }
  look_for_births();
  news_taken_ = false;
}

// A start is news only once it cannot fail any more: then, it is an attempt. Until then, the
// process may wait for a disk, or have been stopped by its user.
void Supervisor::look_for_births() {
  if (unborn_.empty() || now_ns_ < next_unborn_ns_) return;
  std::erase_if(unborn_, [this](uint64_t entry) {
    Process* process = find(entry);
    if (process == nullptr || process->state != State::running) return true;
    if (!spawner_.begun(entry)) return false;
    show_start(*process);
    return true;
  });
  unborn_wait_ns_ = std::min(2 * unborn_wait_ns_, kUnbornMaxNs);
  next_unborn_ns_ = now_ns_ + unborn_wait_ns_;
}

void Supervisor::show_start(Process& process) {
  process.unborn = false;
  ProcStat stat;
  if (read_stat(process.start->pid, stat)) process.start->ticks = stat.start_ticks;
  spool_.started(process);
  starts_.push_back(process.entry);
  for (const std::string& path : process.outputs) outputs_.name(path);
  output_limit_.add(process.entry, std::exchange(process.written, {}));
}

void Supervisor::stop() {
  if (stopping_) return;
  stopping_ = true;
  for (auto& [entry, process] : processes_) kill(*process, 0);
  run_timers();
}

// What runs can be recorded nowhere, and an agent of another directory cannot take it over: its
// node is lost, and its pods are replaced.
void Supervisor::leave_deleted_dir() {
  if (stopping_) return;
  tell("its directory was deleted: ending %zu processes", living_);
  for (auto& [entry, process] : processes_)
    if (!process->ended) process->lost = true;
  stop();
}

// Without its name, the next agent could not connect, and would not start.
void Supervisor::mend_socket() {
  if (stopping_ || faccessat(options_.dir_fd, kSocketName, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
      errno != ENOENT)
    return;
  const int made = options_.listen_again();
  if (made < 0) return;
  watch(epoll_fd_, EPOLL_CTL_ADD, made, EPOLLIN, kListenEvent);
  close(std::exchange(listen_fd_, made));  // which ends its watch
  tell("its socket was deleted, and is made anew");
}

void Supervisor::check_idle() {
  if (living_ > 0 || agent_fd_ >= 0) idle_since_ns_ = now_ns_;
  if (now_ns_ < next_check_ns_) return;
  next_check_ns_ = now_ns_ + std::min(kCheckNs, options_.idle_ns / 4 + kNsPerMs);
  struct stat info {};
  if (fstat(options_.dir_fd, &info) == 0 && info.st_nlink == 0) leave_deleted_dir();
  mend_socket();
  const uint64_t idle_max_ns =
      unwritten_ ? std::max(options_.idle_ns, kUnwrittenIdleNs) : options_.idle_ns;
  if (now_ns_ - idle_since_ns_ >= idle_max_ns) stop();
  outputs_.trim();
  output_limit_.look();
  tell_full();
  if (leaving_.empty() && adopted_.reap()) {
    // A descendant may be reparented to us after its process has ended, when a parent that could
    // not be identified dies.
    adopted_.scan([](int) { return uint64_t{0}; },
                  [this](int pid, uint64_t entry) {
                    Process* process = find(entry);
                    if (process == nullptr || process->state == State::ended) ::kill(pid, SIGKILL);
                  });
  }
}

// Obeys SIGTERM only if nothing would be lost: not while a process runs, nor while the spool is
// behind our memory.
void Supervisor::check_sigterms() {
  if (std::exchange(sigterms_seen_, *options_.sigterms) == *options_.sigterms) return;
  if (living_ == 0 && !unwritten_) return stop();
  if (living_ > 0)
    tell("ignoring SIGTERM: %zu processes are running", living_);
  else
    tell("ignoring SIGTERM: the spool is not written");
}

// The disk is gone, or full for good. Ends that only we know would hold their jobs up: the agent
// may pass them on, and forgets them only once they are written here too.
void Supervisor::tell_unwritten() {
  for (; ends_told_ < ends_.size(); ++ends_told_)
    if (Process* process = find(ends_[ends_told_]); process != nullptr && !process->unstarted)
      tell_end(*process);
}

// Writes the spool, then does what depends on it.
bool Supervisor::commit() {
  unwritten_ = !spool_.flush();
  if (unwritten_) {
    if (unwritten_since_ns_ == 0) unwritten_since_ns_ = now_ns_;
    if (now_ns_ - unwritten_since_ns_ >= kUnwrittenMaxNs) tell_unwritten();
    return false;
  }
  unwritten_since_ns_ = 0;
  ends_told_ = 0;
  spawner_.resume();
  // What starts now need not wake us for that.
  if (!gathers_ && !(jobs_.empty() && queue_.empty()))
    take_news_at(std::min(news_at_ns_, now_ns_ + kFreshNs));
  if (!jobs_.empty()) spawner_.submit(std::exchange(jobs_, {}));
  if (!queue_.empty()) spawner_.enqueue(std::exchange(queue_, {}));
  for (uint64_t entry : std::exchange(starts_, {})) {
    if (Process* process = find(entry); process != nullptr && !process->ended) tell_start(*process);
  }
  for (uint64_t entry : std::exchange(ends_, {})) {
    if (Process* process = find(entry)) {
      process->committed = true;
      tell_end(*process);
      if (process->unstarted) remove(*process);
    }
  }
  return true;
}

}  // namespace muster::keeper
