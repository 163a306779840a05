#include "keeper/start/spawner.hpp"

#include "base/process/usable_cpus.hpp"
#include "keeper/kernel/tell.hpp"
#include "keeper/start/child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace muster::keeper {
namespace {

constexpr uint64_t kWakeEvent = ~uint64_t{0};  // not an entry
constexpr uint64_t kHeldUpNs = 50'000'000;     // a start that takes longer holds its worker up

std::string read_report(int fd) {
  if (fd < 0) return "";
  char text[512];
  const ssize_t size = read(fd, text, sizeof text);
  close(fd);
  return {text, static_cast<size_t>(std::max<ssize_t>(0, size))};
}

core::Usage usage_of(const rusage& used) {
  const auto us = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
  };
  return {us(used.ru_utime), us(used.ru_stime), static_cast<uint64_t>(used.ru_maxrss) * 1024};
}

// The user and the Kubernetes Job that it takes turns for.
std::pair<uid_t, uint64_t> turn_of(const SpawnJob& job) {
  const core::Owner* const owner = job.owner();
  return {owner != nullptr ? owner->uid : 0, job.record->key.job};
}

}  // namespace

Spawner::Spawner(Spool& spool, Outputs& outputs, const Owners* owners, Cgroups* cgroups,
                 bool for_all, rlimit limit, mode_t mask, ChildFds& child_fds, const Spaces& spaces)
    : spool_(spool),
      outputs_(outputs),
      owners_(owners),
      cgroups_(cgroups),
      cgroups_for_all_(for_all),
      born_in_cgroup_(cgroups != nullptr && born_alive(*cgroups, kStackBytes)),
      limit_(limit),
      mask_(mask),
      child_fds_(child_fds),
      spaces_(spaces),
      null_fd_(open("/dev/null", O_RDONLY | O_CLOEXEC)),
      event_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      workers_(usable_cpu_count()) {
  for (Worker& worker : workers_) std::thread([this, &worker] { work(worker); }).detach();
}

Spawner::Worker::Worker()
    : epoll_fd(epoll_create1(EPOLL_CLOEXEC)), wake_fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeEvent;
  if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wake_fd, &event) < 0) tell_errno("epoll_ctl");
}

void Spawner::submit(std::vector<SpawnJob> jobs) {
  std::lock_guard lock(mutex_);
  for (auto& job : jobs) jobs_.push_back(std::move(job));
  wake_locked();
}

void Spawner::enqueue(std::vector<SpawnJob> jobs) {
  std::lock_guard lock(mutex_);
  waiting_ += jobs.size();
  for (SpawnJob& job : jobs) {
    const auto [user, group] = turn_of(job);
    queue_.push_back(user, group, std::move(job));
  }
  wake_locked();
}

SpawnJob Spawner::dequeue_locked() {
  SpawnJob job = queue_.pop();
  if (--waiting_ == low_ && gathers_) signal_locked();
  return job;
}

void Spawner::set_room(size_t room) {
  std::lock_guard lock(mutex_);
  room_ = room;
  wake_locked();
}

bool Spawner::withdraw(uint64_t entry) {
  std::lock_guard lock(mutex_);
  const size_t removed =
      queue_.remove([entry](const SpawnJob& job) { return job.token.entry == entry; });
  waiting_ -= removed;
  return removed > 0;
}

// What fails is written to the pipe, and the exec closes it.
bool Spawner::begun(uint64_t entry) {
  std::lock_guard lock(mutex_);
  const auto found = children_.find(entry);
  if (found == children_.end()) return false;
  pollfd report{found->second.report, POLLIN, 0};
  return report.fd < 0 || (poll(&report, 1, 0) == 1 && (report.revents & POLLIN) == 0);
}

void Spawner::resume() {
  std::lock_guard lock(mutex_);
  if (std::exchange(stalled_, false)) wake_locked();
}

bool Spawner::rescue() {
  bool held_up = false;
  for (Worker& worker : workers_) {
    const uint64_t since = worker.starting_since_ns;
    if (since == 0 || boot_ns() < since + kHeldUpNs) continue;
    held_up = true;
    std::array<epoll_event, 64> events;
    const int count = epoll_wait(worker.epoll_fd, events.data(), events.size(), 0);
    for (int i = 0; i < count; ++i)
      if (const uint64_t id = events[static_cast<size_t>(i)].data.u64; id != kWakeEvent) reap(id);
  }
  if (held_up) {
    std::lock_guard lock(mutex_);
    wake_locked();
  }
  return held_up;
}

void Spawner::vacate(uint64_t entry) {
  std::lock_guard lock(mutex_);
  cpus_.give_back(entry);
  if (placed_.erase(entry) != 0) wake_locked();
}

void Spawner::signal(uint64_t entry, int number, bool first_only) {
  std::lock_guard lock(mutex_);
  // A session leader cannot leave its group. A process that starts as its owner may not have made
  // its group yet.
  if (auto child = children_.find(entry); child != children_.end())
    if (first_only || kill(-child->second.pid, number) != 0) kill(child->second.pid, number);
}

Spawner::News Spawner::take() {
  eventfd_t count;
  eventfd_read(event_fd_, &count);
  std::lock_guard lock(mutex_);
  told_ = false;
  return std::exchange(news_, {});
}

// Wakes an idle worker if there is a job to start. Busy workers look for jobs before they go idle.
void Spawner::wake_locked() {
  if (!ready_locked()) return;
  Worker* fewest = nullptr;
  for (Worker& worker : workers_)
    if (worker.idle && (fewest == nullptr || worker.children < fewest->children)) fewest = &worker;
  if (fewest != nullptr) eventfd_write(fewest->wake_fd, 1);
}

bool Spawner::ready_locked() const {
  return !jobs_.empty() || (!queue_.empty() && placed_.size() < room_ && !stalled_);
}

void Spawner::gather(bool gathers) {
  std::lock_guard lock(mutex_);
  low_ = waiting_ > 0 ? waiting_ / 2 : SIZE_MAX;
  if (std::exchange(gathers_, gathers) == gathers) return;
  if (gathers) {
    eventfd_t count;
    eventfd_read(event_fd_, &count);
    told_ = false;
  } else if (!news_.spawned.empty() || !news_.exited.empty()) {
    signal_locked();
  }
}

void Spawner::tell_locked() {
  if (!gathers_) signal_locked();
}

// Signals the first time since the last take().
void Spawner::signal_locked() {
  if (!std::exchange(told_, true)) eventfd_write(event_fd_, 1);
}

// Whether the main thread need not be woken for this start.
bool Spawner::seen_soon(const SpawnJob& job, const Spawned& result) const {
  return result.start && !job.session && takes_at_ns_ <= result.start->at_ns + kFreshNs;
}

void Spawner::work(Worker& worker) {
  // No handler of ours may run in a child that still shares our memory.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  std::vector<char> stack(kStackBytes);
  std::optional<SpawnJob> job;
  while (true) {
    epoll_event event{};
    if (epoll_wait(worker.epoll_fd, &event, 1, job ? 0 : -1) == 1) {
      if (event.data.u64 != kWakeEvent) {
        reap(event.data.u64);
      } else {
        eventfd_t count;
        eventfd_read(worker.wake_fd, &count);
      }
    }
    if (!job) job = next(worker);
    if (!job) continue;
    worker.starting_since_ns = boot_ns();
    run(worker, *std::exchange(job, std::nullopt), stack.data());
    worker.starting_since_ns = 0;
    job = next(worker);
  }
}

// The job that this worker starts now, if any. Wakes another worker if there are more jobs, or if
// the other has fewer processes.
std::optional<SpawnJob> Spawner::next(Worker& worker) {
  std::optional<SpawnJob> job;
  std::lock_guard lock(mutex_);
  worker.idle = true;
  if (!ready_locked()) return job;
  for (const Worker& other : workers_) {
    if (!other.idle || other.children >= worker.children) continue;
    wake_locked();
    return job;
  }
  worker.idle = false;
  ++worker.children;
  if (jobs_.empty()) {
    job = dequeue_locked();
    placed_.insert(job->token.entry);
  } else {
    job = std::move(jobs_.front());
    jobs_.pop_front();
  }
  wake_locked();
  return job;
}

void Spawner::run(Worker& worker, SpawnJob job, char* stack) {
  const uint64_t entry = job.token.entry;
  int pidfd = -1;
  int report = -1;
  std::optional<Spawned> result = start(job, stack, pidfd, report);
  if (!result || !result->start) cpus_.give_back(entry);
  std::lock_guard lock(mutex_);
  if (!result) {
    --worker.children;
    placed_.erase(entry);
    ++waiting_;
    const auto [user, group] = turn_of(job);
    queue_.push_front(user, group, std::move(job));
    stalled_ = true;
    return;
  }
  if (result->start) {
    children_.emplace(entry, Running{&worker, result->start->pid, pidfd, report,
                                     result->cgroup.get(), result->outputs});
    epoll_event event{};
    event.events = EPOLLIN | EPOLLONESHOT;  // one worker reaps it
    event.data.u64 = entry;
    if (epoll_ctl(worker.epoll_fd, EPOLL_CTL_ADD, pidfd, &event) < 0) tell_errno("epoll_ctl");
  } else {
    --worker.children;
    placed_.erase(entry);
  }
  const bool quiet = seen_soon(job, *result);
  news_.spawned.push_back(std::move(*result));
  if (!quiet) tell_locked();
}

// One of the processes may have exited. Whoever finds it reaped finds its end in take().
void Spawner::reap(uint64_t entry) {
  std::lock_guard lock(mutex_);
  auto found = children_.find(entry);
  if (found == children_.end()) return;
  Running& child = found->second;
  // Kill the group before reaping, while its pid cannot be reused. A member that is forking dies
  // before the fork completes. The main thread kills what is left in the cgroup.
  kill(-child.pid, SIGKILL);
  siginfo_t info{};
  rusage used{};  // of it and of the descendants that it has waited for
  if (syscall(SYS_waitid, P_PIDFD, static_cast<id_t>(child.pidfd), &info, WEXITED | WNOHANG,
              &used) < 0 ||
      info.si_pid == 0) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLONESHOT;
    event.data.u64 = entry;
    epoll_ctl(child.worker->epoll_fd, EPOLL_CTL_MOD, child.pidfd, &event);
    return;
  }
  --child.worker->children;
  // A child that has not exec'ed yet may hold a copy of the descriptor, so close() alone would not
  // remove the event.
  epoll_ctl(child.worker->epoll_fd, EPOLL_CTL_DEL, child.pidfd, nullptr);
  close(child.pidfd);
  Exited exited{.entry = entry, .end_ns = boot_ns()};
  const bool killed = info.si_code != CLD_EXITED;
  exited.exit_code = killed ? 128 + info.si_status : info.si_status;
  exited.signal = killed ? info.si_status : 0;
  exited.used = usage_of(used);
  exited.error = read_report(child.report);
  // If anything is left, the main thread ends that first.
  exited.left = kill(-child.pid, 0) == 0 || errno != ESRCH ||
                (child.cgroup != nullptr && !Cgroups::is_empty(*child.cgroup));
  if (!exited.left) {
    cpus_.give_back(entry);
    placed_.erase(entry);
  }
  exited.outputs = std::move(child.outputs);
  children_.erase(found);
  // An adopted process may still write to what it inherited.
  if (!exited.left && !exited.outputs.empty() && none_adopted()) outputs_.reuse(exited.outputs);
  news_.exited.push_back(std::move(exited));
  tell_locked();
}

}  // namespace muster::keeper
