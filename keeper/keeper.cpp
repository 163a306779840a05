// muster-keeper: the parent of all processes of one node's pods.
//
//   muster-keeper WORK_DIR CLUSTER_ID
//
// Started by the agent, and outlives it. Keeps its lock, socket, spool and log in WORK_DIR/keeper;
// leaves when it has had neither processes nor an agent for a minute, when the directory is gone,
// or by SIGTERM while nothing runs. MUSTER_KEEPER_IDLE_MS changes the minute,
// MUSTER_KEEPER_SEGMENT_BYTES the spool's segments. MUSTER_KEEPER_UMASK (octal) is the umask of
// processes; without it they get ours. A process gets a cgroup when it has limits or its agent asks
// for one; with MUSTER_KEEPER_CGROUP=on each does, with off none.
//
// Always holds: never two on a work-dir (the lock).
#include "keeper/adopted.hpp"
#include "keeper/cgroup.hpp"
#include "keeper/proc.hpp"
#include "keeper/protocol.hpp"
#include "keeper/spawner.hpp"
#include "keeper/spool.hpp"
#include "keeper/supervisor.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/close_range.h>
#include <memory>
#include <string>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

namespace muster::keeper {
namespace {

constexpr uint64_t kIdleMs = 60'000;
constexpr uint64_t kSegmentBytes = 4u << 20;
// A process has a pidfd and four descriptors of its cgroup; those are to take half at most.
constexpr uint64_t kDescriptorsEach = 10;
constexpr uint64_t kSegmentBytesMin = 64u << 10;

uint64_t number_of(const char* variable, uint64_t otherwise, int base = 10) {
  const char* value = std::getenv(variable);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, base);
}

[[noreturn]] void leave(const std::string& why, int code) {
  std::fprintf(stderr, "muster-keeper: %s\n", why.c_str());
  _exit(code);
}

[[noreturn]] void fail(const std::string& what) {
  leave(what + ": " + std::strerror(errno), kExitFailed);
}

volatile std::sig_atomic_t told_to_end = 0;  // so often by SIGTERM

// Processes begin with default dispositions: a handler ends with the exec, an ignored signal would
// not.
void set_signals() {
  // By system call, as the C library refuses for two that it uses itself; all zeros is SIG_DFL.
  constexpr char kDefault[64] = {};
  for (int signal = 1; signal < NSIG; ++signal) {
    syscall(SYS_rt_sigaction, signal, kDefault, nullptr, NSIG / 8);
  }
  for (int signal : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGXFSZ}) std::signal(signal, [](int) {});
  std::signal(SIGTERM, [](int) { told_to_end = told_to_end + 1; });
  // Ends are heard of by descriptor. A signal for each would break off what the main thread sleeps
  // in: one that the thread which started the process blocks is not ignored but goes to another.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  sigprocmask(SIG_SETMASK, &ends, nullptr);
}

// Raises our own limit of descriptors, one a process; returns what processes get.
rlimit raise_descriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  rlimit raised = limit;
  raised.rlim_cur = raised.rlim_max;
  setrlimit(RLIMIT_NOFILE, &raised);
  return limit;
}

int listen_at(int dir_fd) {
  unlinkat(dir_fd, "socket", 0);  // of a keeper that died: we have the lock
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // The directory's own path may be longer than an address.
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/socket", dir_fd);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 ||
      listen(fd, 16) < 0) {
    fail("socket");
  }
  return fd;
}

// Puts our number into the lock file; returns that of a keeper of this boot that died, or 0. What
// it started is found by this even if its spool is damaged.
uint64_t swap_number(int lock_fd, uint64_t keeper) {
  char text[128] = {};
  std::string boot = boot_id();
  uint64_t before = 0;
  if (pread(lock_fd, text, sizeof text - 1, 0) > 0 && std::string(text).starts_with(boot + " ")) {
    before = std::strtoull(text + boot.size() + 1, nullptr, 16);
  }
  int size = std::snprintf(text, sizeof text, "%s %016llx\n", boot.c_str(),
                           static_cast<unsigned long long>(keeper));
  if (ftruncate(lock_fd, 0) < 0 || pwrite(lock_fd, text, static_cast<size_t>(size), 0) != size) {
    fail("lock");
  }
  return before;
}

// What the keepers before us did not see end is killed: nobody is its parent any more.
void end_lost(uint64_t keeper_before, const std::vector<Record>& records) {
  std::vector<uint64_t> keepers;
  std::vector<Leader> leaders;
  if (keeper_before != 0) keepers.push_back(keeper_before);
  for (const auto& record : records) {
    if (record.ended || !record.this_boot) continue;
    if (std::find(keepers.begin(), keepers.end(), record.keeper) == keepers.end()) {
      keepers.push_back(record.keeper);
    }
    if (record.start_ticks != 0) leaders.push_back({record.pid, record.start_ticks});
  }
  if (!keepers.empty() && !kill_leftovers_of(keepers, leaders)) {
    std::fprintf(stderr, "muster-keeper: something of an earlier keeper's does not die\n");
  }
}

[[noreturn]] void run(const char* work_dir, const char* cluster) {
  close_range(3, ~0u, 0);
  set_signals();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_NAME, "muster-keeper");
  rlimit limit = raise_descriptors();
  mode_t inherited = umask(077);
  auto pods_umask = static_cast<mode_t>(number_of("MUSTER_KEEPER_UMASK", inherited, 8));

  int work_fd = open(work_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (work_fd < 0 || (mkdirat(work_fd, "keeper", 0700) < 0 && errno != EEXIST)) fail(work_dir);
  int dir_fd = openat(work_fd, "keeper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dir_fd < 0) fail(work_dir);
  close(work_fd);
  if (chdir("/") < 0) fail("/");  // pins no file system
  int lock_fd = openat(dir_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (lock_fd < 0) fail("lock");
  if (flock(lock_fd, LOCK_EX | LOCK_NB) < 0) _exit(kExitLocked);

  uint64_t keeper = random_number();
  uint64_t before = swap_number(lock_fd, keeper);
  auto segment_bytes =
      std::max(number_of("MUSTER_KEEPER_SEGMENT_BYTES", kSegmentBytes), kSegmentBytesMin);
  Spool spool(boot_id(), keeper, segment_bytes);
  Spool::Found found = spool.open(dir_fd, cluster);
  end_lost(before, found.records);
  if (found.opened == Spool::Opened::damaged) leave(found.why, kExitDamaged);
  if (found.opened == Spool::Opened::failed) leave(found.why, kExitFailed);

  std::unique_ptr<Cgroups> cgroups;
  std::string no_limits = "MUSTER_KEEPER_CGROUP=off";
  const char* wanted = std::getenv("MUSTER_KEEPER_CGROUP");
  bool for_all = wanted != nullptr && std::strcmp(wanted, "on") == 0;
  if (wanted == nullptr || std::strcmp(wanted, "off") != 0) {
    cgroups = std::make_unique<Cgroups>(keeper);
    const bool created = cgroups->create(limit.rlim_max / kDescriptorsEach);
    no_limits = cgroups->why();
    if (!created) cgroups.reset();
  }
  Outputs outputs;
  Spawner spawner(outputs, cgroups.get(), for_all, limit, pods_umask & 0777);
  Supervisor supervisor({.dir_fd = dir_fd,
                         .listen_fd = listen_at(dir_fd),
                         .keeper = keeper,
                         .no_limits = std::move(no_limits),
                         .idle_ns = number_of("MUSTER_KEEPER_IDLE_MS", kIdleMs) * 1'000'000,
                         .told_to_end = &told_to_end},
                        spool, outputs, spawner, cgroups.get());
  for (auto& record : found.records) supervisor.adopt(std::move(record));
  supervisor.run();
  if (cgroups != nullptr) {
    cgroups->kill_all();
    cgroups->remove();
  }
  unlinkat(dir_fd, "socket", 0);
  if (ftruncate(lock_fd, 0) < 0) std::perror("muster-keeper: lock");  // nothing is left of us
  _exit(0);  // with all that is here: the workers wait for ever
}

}  // namespace
}  // namespace muster::keeper

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: muster-keeper WORK_DIR CLUSTER_ID\n");
    return 2;
  }
  muster::keeper::run(argv[1], argv[2]);
}
