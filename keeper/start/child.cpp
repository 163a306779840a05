#include "keeper/start/child.hpp"

#include "base/exec_exit.hpp"
#include "base/process/in_child.hpp"
#include "core/node/values.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace muster::keeper {
namespace {

constexpr char kSecret[] = "secret";
constexpr uint64_t kSharing = CLONE_VM | CLONE_VFORK | CLONE_PIDFD;

// TSan treats clone() as a fork and, as the child shares our memory, loses track of our locks.
#if defined(__SANITIZE_THREAD__) && defined(__x86_64__)
constexpr bool kOwnClone = true;
#else
constexpr bool kOwnClone = false;
#endif

// ---- in the child: system calls only, and not the C library's set*id(), which would wait for
// threads that a copy of our memory does not have

MUSTER_IN_CHILD StartFailure cannot(const char* what, int error = errno) {
  return {what, nullptr, error, core::kExitNotHere};
}

// `signal` 0: no longer. A thread's children get it when the thread ends, and workers never do.
void die_with_keeper(const Child& child, int signal) {
  prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0);
  if (syscall(SYS_getppid) != child.keeper) _exit(kExitCannotStart);
}

void close_all_but(std::array<int, 6> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned from = 3;
  for (const int fd : kept) {
    if (fd < static_cast<int>(from)) continue;
    if (static_cast<unsigned>(fd) > from)
      syscall(SYS_close_range, from, static_cast<unsigned>(fd) - 1, 0);
    from = static_cast<unsigned>(fd) + 1;
  }
  syscall(SYS_close_range, from, ~0u, 0);
}

MUSTER_IN_CHILD bool unshare_descriptors(const Child& child) {
  return child.shared_from < 0 ||
         syscall(SYS_close_range, child.shared_from, ~0u, CLOSE_RANGE_UNSHARE) == 0 ||
         syscall(SYS_unshare, CLONE_FILES) == 0;
}

StartFailure become(const Child& child) {
  constexpr const char* kWhat = "becoming the job's owner";
  const long id = -1;
  const uint32_t uid = child.owner->uid, gid = child.owner->gid;
  if (syscall(SYS_setgroups, child.owner->groups.size(), child.owner->groups.data()) != 0 ||
      syscall(SYS_setresgid, gid, gid, gid) != 0 || syscall(SYS_setresuid, uid, uid, uid) != 0 ||
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return cannot(kWhat);
  die_with_keeper(child, SIGKILL);  // the kernel has forgotten it with the change of user
  // Never continue as root, whatever these calls returned.
  if (syscall(SYS_geteuid) == 0 || syscall(SYS_getuid) == 0 || syscall(SYS_getegid) == 0 ||
      syscall(SYS_setresuid, id, 0, id) == 0)
    return cannot(kWhat, EPERM);
  return {};
}

MUSTER_IN_CHILD StartFailure take_steps(Child& child) {
  const bool becomes = child.owner != nullptr;
  if (becomes) {
    prctl(PR_SET_NAME, child.name.c_str(), 0, 0, 0);
    die_with_keeper(child, SIGKILL);
    close_all_but({child.in, child.out, child.err, child.report, child.cgroup, child.space});
  }
  setsid();
  if (child.pam != nullptr)
    if (const char* why = child.pam->open(); why != nullptr) return cannot(why, 0);
  // If joining fails (out of memory), session and environment identify it, as without cgroups.
  if (child.cgroup >= 0 && write(child.cgroup, "0", 1) < 0) errno = 0;
  if (!child.cpus.bind()) errno = 0;  // they were taken away from us, or went offline
  if (!unshare_descriptors(child)) return cannot(kDescriptors);
  setrlimit(RLIMIT_NOFILE, child.files);
  if (dup2(child.in, 0) < 0 || dup2(child.out, 1) < 0 || dup2(child.err, 2) < 0)
    return cannot(kDescriptors);
  if (child.pam != nullptr && !child.pam->set_limits()) return cannot("limits of the PAM session");
  child.settings->apply();
  if (becomes) {
    for (const ResourceLimit& limit : *child.limits)  // the site's win over the job's
      if (setrlimit(limit.resource, &limit.value) != 0) return cannot(kLimitsVariable);
    if (const StartFailure failure = become(child)) return failure;
  }
  if (child.space >= 0)
    for (const int fd : {child.report, child.space}) fcntl(fd, F_SETFD, 0);
  if (!child.secrets->read(becomes ? child.owner->uid : geteuid(), child.envp))
    return {kSecret, nullptr, 0, child.secrets->exit_code()};
  if (const StartFailure failure = child.last->begin()) return failure;
  if (const auto refused = child.settings->redirect(child.refusal, sizeof child.refusal);
      refused.file != nullptr)
    return {"open", refused.file, refused.error, core::kExitNotHere, refused.advice, refused.why};
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);  // exec resets handlers, and none is SIG_IGN
  if (becomes) die_with_keeper(child, 0);
  return child.last->execute(child.programs, child.argv, child.envp, child.settings);
}

MUSTER_IN_CHILD int child_main(void* argument) {
  auto& child = *static_cast<Child*>(argument);
  child.failed = take_steps(child);
  if (child.owner != nullptr) {
    char text[512];
    if (write(child.report, text, child.why(text, sizeof text)) < 0) errno = 0;
  }
  _exit(child.failed.exit_code);
}

MUSTER_IN_CHILD int child_that_ends(void*) {
  _exit(0);
}

// ---- in the keeper

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

}  // namespace

bool born_alive(Cgroups& cgroups, size_t stack_bytes) {
  auto group = cgroups.take({});
  if (group == nullptr) return false;
  std::vector<char> stack(stack_bytes);
  int pidfd = -1, status = -1;
  int pid = clone_into(group->dir, kSharing, child_that_ends, nullptr, stack.data(), stack.size(),
                       &pidfd);
  if (pid > 0) {
    waitpid(pid, &status, 0);
    close(pidfd);
  }
  cgroups.recycle(std::move(group));
  return pid > 0 && WIFEXITED(status);
}

size_t Child::why(char* text, size_t size) const noexcept {
  return failed.what == kSecret ? secrets->failure(text, size) : failed.describe(text, size);
}

int Child::start(const Cgroup* born, char* stack, size_t stack_bytes, int* pidfd) {
  const bool shares = owner == nullptr;
  const uint64_t flags =
      (shares ? kSharing : uint64_t{CLONE_PIDFD}) | (shared_from >= 0 ? CLONE_FILES : 0);
  if (born != nullptr) {
    const int joins = std::exchange(cgroup, -1);
    const int pid = clone_into(born->dir, flags, child_main, this, stack, stack_bytes, pidfd);
    if (pid >= 0) return pid;
    cgroup = joins;
  }
  return kOwnClone && shares ? clone_into(-1, flags, child_main, this, stack, stack_bytes, pidfd)
                             : clone(child_main, stack + stack_bytes,
                                     static_cast<int>(flags) | SIGCHLD, this, pidfd);
}

}  // namespace muster::keeper
