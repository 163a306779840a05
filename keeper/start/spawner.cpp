#include "keeper/start/spawner.hpp"

#include "base/bytes.hpp"
#include "base/exec_exit.hpp"
#include "keeper/kernel/privileges.hpp"
#include "keeper/kernel/start_fault.hpp"
#include "keeper/kernel/tell.hpp"
#include "keeper/protocol.hpp"
#include "keeper/start/input_pipe.hpp"
#include "keeper/start/lease.hpp"
#include "keeper/start/search_path.hpp"
#include "keeper/start/terminal.hpp"
#include "keeper/users/secrets.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace muster::keeper {
namespace {

constexpr uint64_t kCloneFlags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD;

constexpr char kLate[] = "late", kSecret[] = "secret", kDescriptors[] = "descriptors",
               kCwd[] = "cwd", kOpen[] = "open";
constexpr uint64_t kWakeEvent = ~uint64_t{0};  // not an entry
constexpr uint64_t kHeldUpNs = 50'000'000;     // a start that takes longer holds its worker up

// The child between clone and exec. It runs in our memory while our thread is suspended, so system
// calls only.
__attribute__((no_sanitize("address", "undefined", "thread"))) int child_main(void* argument) {
  auto* plan = static_cast<ChildPlan*>(argument);
  auto fail = [plan](const char* what) {
    plan->error = errno;
    plan->failed = what;
    _exit(kExitCannotStart);
  };
  // If joining fails (out of memory), session and environment identify it, as without cgroups.
  if (plan->cgroup >= 0 && write(plan->cgroup, "0", 1) < 0) errno = 0;
  if (plan->shared_from >= 0 &&
      syscall(SYS_close_range, plan->shared_from, ~0u, CLOSE_RANGE_UNSHARE) < 0 &&
      syscall(SYS_unshare, CLONE_FILES) < 0)
    fail(kDescriptors);
  setsid();
  setrlimit(RLIMIT_NOFILE, plan->limit);
  plan->settings->apply();
  if (dup2(plan->in, 0) < 0 || dup2(plan->out, 1) < 0 || dup2(plan->err, 2) < 0) fail(kDescriptors);
  for (const int fd : {plan->report, plan->space})
    if (fd >= 0) fcntl(fd, F_SETFD, 0);
  if (chdir(plan->cwd) < 0) fail(kCwd);
  if (plan->secrets != nullptr && !plan->secrets->read(plan->uid, plan->envp)) fail(kSecret);
  if (plan->privileges.any() && !give_up(plan->privileges)) fail("securityContext");
  plan->file = plan->settings->redirect();
  if (plan->file != nullptr) fail(kOpen);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);  // exec resets handlers, and none is SIG_IGN
  // Last, because earlier steps may have waited for a disk or been frozen.
  if (too_late(plan->not_after_ms)) fail(kLate);
  plan->settings->begin_files();
  execve(plan->path, plan->argv, plan->envp);
  fail("exec");
  return kExitCannotStart;
}

// TSan treats clone() as a fork and, as the child shares our memory, loses track of our locks.
#if defined(__SANITIZE_THREAD__) && defined(__x86_64__)
constexpr bool kOwnClone = true;
#else
constexpr bool kOwnClone = false;
#endif

// Starts `entry`, which does not return, in a cgroup (-1: in ours). That costs less than joining
// later, which briefly blocks all forks on the machine. The C library has no call for it. Returns
// -1 if that is not possible.
int clone_into(int cgroup_dir, uint64_t flags, int (*entry)(void*), void* argument, char* stack,
               size_t stack_bytes, int* pidfd) {
#if defined(__x86_64__)
  struct {  // clone_args, version 2
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
        set_tid_size, cgroup;
  } args{};
  args.flags = flags | (cgroup_dir >= 0 ? CLONE_INTO_CGROUP : 0);
  args.pidfd = reinterpret_cast<uintptr_t>(pidfd);
  args.exit_signal = SIGCHLD;
  args.stack = reinterpret_cast<uintptr_t>(stack);
  args.stack_size = stack_bytes;
  args.cgroup = cgroup_dir >= 0 ? static_cast<uint64_t>(cgroup_dir) : 0;
  long result = SYS_clone3;
  register auto child_entry asm("r12") = entry;
  register void* child_argument asm("r13") = argument;
  // In the child, on its own stack: entry(argument).
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %%r13, %%rdi\n\t"
      "call *%%r12\n\t"
      "hlt\n"
      "1:"
      : "+a"(result)
      : "D"(&args), "S"(sizeof args), "r"(child_entry), "r"(child_argument)
      : "rcx", "r11", "memory", "cc");
  if (result > 0) return static_cast<int>(result);
  errno = static_cast<int>(-result);  // the kernel's error
  return -1;
#else
  static_cast<void>(cgroup_dir), static_cast<void>(flags), static_cast<void>(entry);
  static_cast<void>(argument), static_cast<void>(stack), static_cast<void>(stack_bytes);
  static_cast<void>(pidfd);
  errno = ENOSYS;
  return -1;
#endif
}

__attribute__((no_sanitize("address", "undefined", "thread"))) int child_that_ends(void*) {
  _exit(0);
}

// Whether a process started in another cgroup survives: a kernel may apply an earlier cgroup.kill
// of ours to it and end it at once (seen on Linux 6.18.44).
bool born_alive(Cgroups& cgroups, size_t stack_bytes) {
  auto group = cgroups.take({});
  if (group == nullptr) return false;
  std::vector<char> stack(stack_bytes);
  int pidfd = -1, status = -1;
  int pid = clone_into(group->dir, kCloneFlags, child_that_ends, nullptr, stack.data(),
                       stack.size(), &pidfd);
  if (pid > 0) {
    waitpid(pid, &status, 0);
    close(pidfd);
  }
  cgroups.recycle(std::move(group));
  return pid > 0 && WIFEXITED(status);
}

// Starts a process that shares our memory until its exec. -1: errno says why not.
int clone_own(ChildPlan& plan, const Cgroup* cgroup, bool born_there, int joins_cgroup, char* stack,
              size_t stack_bytes, int* pidfd) {
  const uint64_t flags = kCloneFlags | (plan.shared_from >= 0 ? CLONE_FILES : 0);
  if (cgroup != nullptr && born_there) {
    plan.cgroup = -1;
    const int pid = clone_into(cgroup->dir, flags, child_main, &plan, stack, stack_bytes, pidfd);
    if (pid >= 0) return pid;
  }
  plan.cgroup = cgroup != nullptr ? cgroup->procs : joins_cgroup;
  return kOwnClone ? clone_into(-1, flags, child_main, &plan, stack, stack_bytes, pidfd)
                   : clone(child_main, stack + stack_bytes, static_cast<int>(flags) | SIGCHLD,
                           &plan, pidfd);
}

int code_of(int error) {
  if (is_machines_fault(error)) return core::kExitNotHere;
  return exit_of_exec(error);
}

bool executable(const std::string& path, int& error) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    if (access(path.c_str(), X_OK) == 0) return true;
    error = EACCES;  // reported only if no later directory has it
  }
  return false;
}

// Where execvp would find it.
std::string look_up(const std::string& name, std::string_view cwd, std::string_view path,
                    int& error) {
  error = ENOENT;
  std::string found;
  search_path(name, path, cwd, [&](const std::string& candidate) {
    if (!executable(candidate, error)) return false;
    found = candidate;
    return true;
  });
  return found;
}

size_t cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<size_t>(CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

// What to execute for this command: muster-space and muster-terminal look it up themselves. An
// errno: there is no such program.
int find_program(Launch& launch, const Fd& plan, std::string& program) {
  program = launch.argv[0];
  launch.wrap(plan);
  if (launch.wrapped()) program = kOwnProgram;
  if (program.find('/') != std::string::npos) return 0;
  int error = 0;
  std::string found = look_up(program, launch.cwd, launch.path, error);
  if (found.empty()) return error;
  program = std::move(found);
  return 0;
}

core::Usage usage_of(const rusage& used) {
  const auto us = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
  };
  return {us(used.ru_utime), us(used.ru_stime), static_cast<uint64_t>(used.ru_maxrss) * 1024};
}

// The user and the Kubernetes Job that it takes turns for.
std::pair<uid_t, uint64_t> turn_of(const SpawnJob& job) {
  const bool owned = job.as && job.as->permit;
  return {owned ? job.as->permit->owner.uid : 0, job.record->key.job};
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
      workers_(cores()) {
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
  std::optional<Spawned> result =
      job.as ? spawn_as(job, stack, pidfd, report) : spawn(job, stack, pidfd, report);
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
    children_.emplace(entry, Child{&worker, result->start->pid, pidfd, report, result->cgroup.get(),
                                   result->outputs});
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
  Child& child = found->second;
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
  if (!exited.left) placed_.erase(entry);
  exited.outputs = std::move(child.outputs);
  children_.erase(found);
  // An adopted process may still write to what it inherited.
  if (!exited.left && !exited.outputs.empty() && none_adopted()) outputs_.reuse(exited.outputs);
  news_.exited.push_back(std::move(exited));
  tell_locked();
}

bool Spawner::begin(const SpawnJob& job, int64_t not_after_ms, Spawned& result) {
  if (job.record == nullptr) return true;
  result.late = too_late(not_after_ms);
  return result.late || spool_.begin(*job.record);
}

std::string Spawner::prepare(const SpawnJob& job, const core::node::Space& space, uid_t uid,
                             gid_t gid, SpacePlan& plan, Fd& file) {
  if (space.mounted() && !spaces_.no_mounts.empty())
    return "this node cannot mount volumes: " + spaces_.no_mounts;
  if (space.has_dirs() && spaces_.dirs == nullptr)
    return "this node has no scratch directory: " + spaces_.no_dirs;
  if (job.session) {
    plan.joins = job.joins_pid;
  } else {
    if (space.has_dirs())
      if (Status made = spaces_.dirs->make(job.pod, space, uid, gid); !made.ok())
        return made.error().message;
    plan.space = space;
  }
  if (!space.mounted()) return "";
  plan.work_dir = spaces_.work_dir;
  file = plan.file();
  return file ? "" : "no memory to describe its volumes";
}

std::unique_ptr<Cgroup> Spawner::cgroup_for(const SpawnJob& job, const Launch& launch) {
  const bool wanted = cgroups_for_all_ || launch.contained;
  if (cgroups_ == nullptr || !wanted || job.session) return nullptr;
  Limits limits = launch.limits;
  limits.nice = launch.settings.nice.value_or(0);
  return cgroups_->take(limits);
}

Spawned Spawner::refused(Spawned result, std::string why, int exit_code) {
  if (result.cgroup != nullptr) cgroups_->recycle(std::move(result.cgroup));
  result.exit_code = exit_code;
  result.error = std::move(why);
  return result;
}

Spawned Spawner::failed(Spawned result, const std::string& what, int error) {
  return refused(std::move(result), what + ": " + std::strerror(error), code_of(error));
}

Spawned Spawner::no_room(Spawned result, const std::string& what, int error) {
  result.node_fault = true;
  return failed(std::move(result), what, error);
}

bool Spawner::open_report(Fd& reads, Fd& writes) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  reads = Fd(ends[0]);
  writes = Fd(ends[1]);
  return true;
}

bool Spawner::open_own(const SpawnJob& job, std::string_view path, Output& output,
                       Spawned& result) {
  std::string name(path);
  const Outputs::Opened opened = outputs_.open(name, job.fresh);
  output.fd = opened.fd;
  if (!opened.pooled) output.own = Fd(opened.fd);
  if (output.fd < 0) return false;
  result.written.push_back(name);
  result.outputs.push_back(std::move(name));
  return true;
}

// nullopt: its intent could not be written.
std::optional<Spawned> Spawner::spawn(const SpawnJob& job, char* stack, int& pidfd, int& report) {
  Spawned result;
  result.entry = job.token.entry;
  Launch launch;
  launch.name(job.token, job.session);
  const bool sound = launch.read(job.order);
  if (!begin(job, launch.not_after_ms, result)) return std::nullopt;
  if (result.late) return result;
  if (!sound) return failed(std::move(result), "order", EBADMSG);
  if (launch.argv.empty() || launch.argv[0][0] == '\0')
    return failed(std::move(result), "exec: no command", ENOENT);

  Fd plan_file, report_reads, report_writes;
  if (launch.space.any()) {
    if (!open_report(report_reads, report_writes)) return no_room(std::move(result), "pipe", errno);
    SpacePlan own = launch.space_plan(report_writes.get());
    if (auto why = prepare(job, launch.space, geteuid(), getegid(), own, plan_file); !why.empty())
      return refused(std::move(result), std::move(why), core::kExitNotHere);
  }

  std::string program;
  if (int error = find_program(launch, plan_file, program); error != 0)
    return failed(std::move(result), "exec " + program, error);
  Secrets secrets(launch.secret_files);
  launch.end(secrets);

  Output out, err;
  if (!open_own(job, launch.out, out, result))
    return no_room(std::move(result), "open " + std::string(launch.out), errno);
  if (launch.err != launch.out && !open_own(job, launch.err, err, result))
    return no_room(std::move(result), "open " + std::string(launch.err), errno);
  InputPipe input;
  if (launch.input && !input.open()) return no_room(std::move(result), "open a pipe", errno);
  result.cgroup = cgroup_for(job, launch);

  ChildPlan plan;
  plan.path = program.c_str();
  plan.argv = launch.argv.data();
  plan.envp = launch.envp.data();
  plan.cwd = plan_file ? "/" : launch.cwd.c_str();
  plan.report = plan_file ? report_writes.get() : -1;
  plan.space = plan_file.get();
  plan.in = launch.input ? input.reads.get() : null_fd_;
  plan.out = out.fd;
  plan.err = err.fd >= 0 ? err.fd : out.fd;
  const bool plain = !launch.input && !plan_file;
  const ChildFds::Set few = plain ? child_fds_.take(plan.out, plan.err) : ChildFds::Set();
  if (few) {
    plan.in = child_fds_.null();
    plan.out = few.out();
    plan.err = few.err();
    plan.shared_from = child_fds_.end();
  }
  plan.limit = &limit_;
  plan.not_after_ms = launch.not_after_ms;
  const StartSettings settings(launch.settings, mask_, job.fresh);
  plan.settings = &settings;
  if (!plan_file) plan.privileges = launch.privileges;
  if (!secrets.empty()) {
    plan.secrets = &secrets;
    plan.uid = geteuid();
  }
  const uint64_t start_ns = boot_ns();
  const int pid = clone_own(plan, result.cgroup.get(), born_in_cgroup_, job.joins_cgroup, stack,
                            kStackBytes, &pidfd);
  if (pid < 0) return no_room(std::move(result), "fork", errno);
  if (plan.failed != nullptr) {
    waitpid(pid, nullptr, 0);
    close(pidfd);
    return not_started(std::move(result), plan, launch);
  }
  result.start = Start{pid, start_ns};
  result.input = std::move(input.writes);
  if (plan_file) report = report_reads.release();
  return result;
}

// What has failed in the child before its exec.
Spawned Spawner::not_started(Spawned result, const ChildPlan& plan, const Launch& launch) {
  result.late = plan.failed == kLate;
  if (plan.failed == kSecret) {
    char text[512];
    const size_t size = plan.secrets->failure(text, sizeof text);
    return refused(std::move(result), std::string(text, size), plan.secrets->exit_code());
  }
  const bool cwd = plan.failed == kCwd, file = plan.failed == kOpen;
  result.node_fault = plan.failed == kDescriptors;
  result = failed(std::move(result),
                  std::string(plan.failed) + " " +
                      (cwd    ? launch.cwd.c_str()
                       : file ? plan.file
                              : plan.path),
                  plan.error);
  if (cwd || file) result.exit_code = core::kExitNotHere;
  return result;
}

}  // namespace muster::keeper
