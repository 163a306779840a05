// muster-keeper: the parent of all processes of one node's pods.
//
//   muster-keeper WORK_DIR CLUSTER_ID      (docs/man/muster-keeper.8.scd)
//
// Started by the agent, and outlives it. Its lock, socket, spool and log are in WORK_DIR/keeper. It
// exits when it has had neither processes nor an agent for a minute (MUSTER_KEEPER_IDLE_MS), when
// the agent orders it, when the directory is gone, or on SIGTERM while nothing runs.
// MUSTER_KEEPER_SEGMENT_BYTES sets the size of the spool's segments, MUSTER_KEEPER_UMASK (octal)
// the umask of processes (default: ours). owners.hpp says whose processes it starts, child.hpp
// how. Each process gets a cgroup, where we may make them; with MUSTER_KEEPER_CGROUP=limits only
// one that has limits or whose agent asks for it, with off none.
//
// Invariant: at most one keeper per work-dir (the lock).
#include "base/fd.hpp"
#include "base/files/standard_fds.hpp"
#include "base/lines/stderr_lines.hpp"
#include "base/peer/unix_address.hpp"
#include "base/process/service_manager.hpp"
#include "base/version.hpp"
#include "keeper/files/pod_dirs.hpp"
#include "keeper/files/spool.hpp"
#include "keeper/kernel/adopted.hpp"
#include "keeper/kernel/cgroup.hpp"
#include "keeper/kernel/proc.hpp"
#include "keeper/kernel/rlimits.hpp"
#include "keeper/kernel/tell.hpp"
#include "keeper/loop/supervisor.hpp"
#include "keeper/protocol.hpp"
#include "keeper/start/child_fds.hpp"
#include "keeper/start/space_main.hpp"
#include "keeper/start/spawner.hpp"
#include "keeper/start/terminal.hpp"
#include "keeper/users/output_server.hpp"
#include "keeper/users/pam.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace muster::keeper {
namespace {

constexpr uint64_t kIdleMs = 60'000;
constexpr uint64_t kNever = uint64_t{1} << 62;
constexpr uint64_t kSegmentBytes = 4u << 20;
// A process in a cgroup takes five descriptors: its pidfd and four of the cgroup. Such processes
// may use at most half of the limit.
constexpr uint64_t kDescriptorsEach = 10;
constexpr uint64_t kSegmentBytesMin = 64u << 10;
constexpr int kAgentsWaitingMax = 16;
constexpr unsigned kLockPatienceMs = 2'000, kLockPauseMs = 10;

uint64_t number_of(const char* variable, uint64_t otherwise, int base = 10) {
  const char* value = std::getenv(variable);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, base);
}

[[noreturn]] void leave(const std::string& why, int code) {
  tell("%s", why.c_str());
  drain_stderr();
  _exit(code);
}

[[noreturn]] void fail(const std::string& what) {
  leave(what + ": " + std::strerror(errno), kExitFailed);
}

volatile std::sig_atomic_t sigterms = 0;  // number of SIGTERMs received

// All other signals wait while the handler runs: the kernel would stack a frame of several KiB for
// each that is pending, and many at once overflow a small stack.
void handle_alone(int signal, void (*handler)(int)) {
  struct sigaction how {};
  how.sa_handler = handler;
  how.sa_flags = SA_RESTART;
  sigfillset(&how.sa_mask);
  sigaction(signal, &how, nullptr);
}

// Processes must start with default dispositions: exec resets handlers, but not ignored signals.
void set_signals() {
  // A raw system call, because the C library refuses the two signals it uses itself. All zeros is
  // SIG_DFL.
  constexpr char kDefault[64] = {};
  for (int signal = 1; signal < NSIG; ++signal) {
    syscall(SYS_rt_sigaction, signal, kDefault, nullptr, NSIG / 8);
  }
  // Whatever is sent to us by mistake, such as the signals that a daemon or its agent understands,
  // must not end all pods. Faults keep their meaning, and so does SIGTERM.
  for (int signal = 1; signal < NSIG; ++signal) {
    constexpr int kKept[] = {SIGKILL, SIGSTOP, SIGCONT, SIGCHLD, SIGABRT, SIGSEGV,
                             SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGSYS,  SIGTERM};
    if (std::find(std::begin(kKept), std::end(kKept), signal) == std::end(kKept))
      handle_alone(signal, [](int) {});
  }
  // The two that the C library keeps to itself: as another is handled now, as the kernel has it.
  char handled[64] = {};
  syscall(SYS_rt_sigaction, SIGHUP, nullptr, handled, NSIG / 8);
  for (int signal = SIGSYS + 1; signal < SIGRTMIN; ++signal)
    syscall(SYS_rt_sigaction, signal, handled, nullptr, NSIG / 8);
  handle_alone(SIGTERM, [](int) { sigterms = sigterms + 1; });
  // Ends are noticed through pidfds, so SIGCHLD only disturbs. The kernel does not discard it,
  // since the worker that started the process blocks it; unless we block it too, it interrupts the
  // main thread's sleep.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  sigprocmask(SIG_SETMASK, &ends, nullptr);
}

// Raises our descriptor limit, since each process takes some. Returns the original, which processes
// get.
rlimit raise_descriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  rlimit raised = limit;
  raised.rlim_cur = raised.rlim_max;
  setrlimit(RLIMIT_NOFILE, &raised);
  return limit;
}

// Makes a socket for the agent; for one that runs as another user (callers are checked after
// accept()) if `others`. -1: errno says why.
int listen_at(int dir_fd, const char* name, int type, int waiting_max, bool others) {
  unlinkat(dir_fd, name, 0);  // left by a keeper that died: we have the lock
  Fd made(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  const auto address = unix_address(dir_fd, name);
  if (!made || !address ||
      bind(made.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) < 0 ||
      listen(made.get(), waiting_max) < 0 || (others && fchmodat(dir_fd, name, 0666, 0) != 0))
    return -1;
  return made.release();
}

// A child of a keeper that has just died may hold its lock until it dies too.
bool lock(int fd, unsigned patience_ms) {
  for (unsigned waited_ms = 0; flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
       waited_ms += kLockPauseMs) {
    if (waited_ms >= patience_ms) return false;
    usleep(kLockPauseMs * 1000);
  }
  return true;
}

// Writes our number to the lock file. Returns the number of a keeper that died during this boot, or
// 0. It identifies what that keeper started even if the spool is damaged.
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

// Kills what is left of processes whose end no earlier keeper recorded: they have lost their
// parent.
void end_lost(uint64_t keeper_before, const std::vector<Record>& records) {
  std::vector<uint64_t> keepers;
  std::vector<Leader> leaders;
  if (keeper_before != 0) keepers.push_back(keeper_before);
  for (const auto& record : records) {
    if (record.ended || !record.this_boot) continue;
    if (std::find(keepers.begin(), keepers.end(), record.keeper) == keepers.end()) {
      keepers.push_back(record.keeper);
    }
    if (record.start && record.start->ticks != 0)
      leaders.push_back({record.start->pid, record.start->ticks});
  }
  if (!keepers.empty() && !kill_leftovers_of(keepers, leaders)) {
    tell("some processes of an earlier keeper could not be killed");
  }
}

// The work-dir belongs to the agent, which may have planted what is in it. The agent must be able
// to reach the socket.
void take_over(int dir_fd) {
  struct stat info {};
  if (fstat(dir_fd, &info) != 0) fail("keeper");
  if (info.st_uid != 0) leave("the directory keeper in the work-dir is not root's", kExitFailed);
  if (fchmod(dir_fd, 0711) != 0) fail("keeper");
}

// Keeps only the capabilities that a keeper of several users needs: to become those users, to
// signal them and read their environments, and to open and give away files in the agent's
// directory. Drops all others, for itself and what it starts, before there is a second thread. With
// PAM, it also keeps what sessions need: pam_limits (CAP_SYS_RESOURCE, also to set those limits for
// the process, and CAP_SYS_NICE), PAM itself (CAP_AUDIT_WRITE) and pam_loginuid
// (CAP_AUDIT_CONTROL).
void give_up_capabilities(bool pam) {
  constexpr unsigned kKept[] = {CAP_SETUID,       CAP_SETGID, CAP_KILL,      CAP_CHOWN,
                                CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_SYS_PTRACE};
  constexpr unsigned kKeptForPam[] = {CAP_SYS_RESOURCE, CAP_SYS_NICE, CAP_AUDIT_WRITE,
                                      CAP_AUDIT_CONTROL};
  uint64_t kept = 0;
  for (const unsigned capability : kKept) kept |= uint64_t{1} << capability;
  for (const unsigned capability : kKeptForPam)
    if (pam) kept |= uint64_t{1} << capability;
  for (unsigned capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability)
    if ((kept >> capability & 1) == 0 && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
      fail("capabilities");
  __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct had[2] = {}, want[2] = {};
  if (syscall(SYS_capget, &head, had) != 0) fail("capabilities");
  for (int half = 0; half < 2; ++half) {
    want[half].permitted = had[half].permitted & static_cast<uint32_t>(kept >> (32 * half));
    want[half].effective = want[half].permitted;
  }
  if (syscall(SYS_capset, &head, want) != 0) fail("capabilities");
}

struct Dirs {
  int work = -1, keeper = -1, lock = -1;
};

// Opens the work-dir and ours below it.
Dirs open_dirs(const char* work_dir) {
  Dirs dirs;
  dirs.work = open(work_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dirs.work < 0 || (mkdirat(dirs.work, "keeper", 0700) < 0 && errno != EEXIST)) fail(work_dir);
  dirs.keeper = openat(dirs.work, "keeper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dirs.keeper < 0) fail(work_dir);
  return dirs;
}

// The lock is on the directory, so that removing the file opens nothing; earlier versions lock the
// file.
void take_lock(Dirs& dirs, unsigned patience_ms) {
  dirs.lock = openat(dirs.keeper, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (dirs.lock < 0) fail("lock");
  for (const int fd : {dirs.keeper, dirs.lock})
    if (!lock(fd, patience_ms)) _exit(kExitLocked);
}

void find_spaces(const Dirs& dirs, bool of_owners, Spaces& spaces) {
  if (const char* off = std::getenv("MUSTER_KEEPER_NO_MOUNTS"); off != nullptr && *off != '\0')
    spaces.no_mounts = "MUSTER_KEEPER_NO_MOUNTS";
  else
    spaces.no_mounts = why_no_spaces();
  auto found = PodDirs::open(dirs.work, of_owners);
  if (found.ok())
    spaces.dirs = found->release();
  else
    spaces.no_dirs = found.error().message;
}

// As MUSTER_KEEPER_CGROUP says.
struct CgroupChoice {
  std::unique_ptr<Cgroups> cgroups{};                  // null: there are none
  bool for_all = true;                                 // also for processes without limits
  std::string no_limits = "MUSTER_KEEPER_CGROUP=off";  // why limits are not enforced
};

CgroupChoice choose_cgroups(uint64_t keeper, size_t most) {
  CgroupChoice choice;
  const char* wanted = std::getenv("MUSTER_KEEPER_CGROUP");
  choice.for_all = wanted == nullptr || std::strcmp(wanted, "limits") != 0;
  if (wanted != nullptr && std::strcmp(wanted, "off") == 0) return choice;
  choice.cgroups = std::make_unique<Cgroups>(keeper);
  const bool created = choice.cgroups->create(most);
  choice.no_limits = choice.cgroups->why();
  if (!created) choice.cgroups.reset();
  return choice;
}

void serve_outputs_at(int dir_fd, const Owners& owners) {
  const int fd = listen_at(dir_fd, kOutputSocket, SOCK_SEQPACKET, SOMAXCONN, true);
  if (fd < 0) fail(kOutputSocket);
  serve_outputs(fd, owners);
}

constexpr char kHelp[] =
    "Run and watch the processes of a node's pods, for its agent.\n"
    "Usage: muster-keeper WORK_DIR CLUSTER_ID\n\n"
    "Arguments:\n"
    "  WORK_DIR                    The agent's --work-dir\n"
    "  CLUSTER_ID                  The cluster that the node belongs to; empty: any, or none "
    "yet\n\n"
    "Flags:\n"
    "  -h,--help                   Show this help\n"
    "  --version                   Show the versions of this executable\n\n"
    "An agent starts its keeper by itself. Where pods run as the users who submitted them, root "
    "starts\nit, with the settings of its node in MUSTER_KEEPER_* variables: see "
    "muster-keeper(8).\nSIGTERM ends a keeper that runs no processes; any other stays, and its log "
    "says so.\n";

// The exit code, if the arguments ask for words.
std::optional<int> say(int argc, char** argv) {
  const std::string_view word = argc == 2 ? argv[1] : "";
  if (word == "-h" || word == "--help") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (word == "--version") {
    std::printf("muster-keeper %s\nprotocols: keeper %u, keeperOldest %u, spool %u\n",
                muster::kVersion, kVersion, kOldestVersion, kSpoolVersion);
    return 0;
  }
  if (argc == 3) return std::nullopt;
  std::fputs("usage: muster-keeper WORK_DIR CLUSTER_ID (see muster-keeper --help)\n", stderr);
  return 2;
}

[[noreturn]] void run(const char* work_dir, const char* cluster, const ServiceManager& manager) {
  close_range(3, ~0u, 0);
  ChildFds child_fds;
  set_signals();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_NAME, "muster-keeper");
  mode_t inherited = umask(077);
  auto pods_umask = static_cast<mode_t>(number_of("MUSTER_KEEPER_UMASK", inherited, 8));

  Dirs dirs = open_dirs(work_dir);
  auto settings = Owners::settings(dirs.work);
  if (!settings.ok()) leave(settings.error().message, kExitFailed);
  Spaces spaces{.work_dir = path_of_fd(dirs.work)};
  if (*settings) {
    take_over(dirs.keeper);
    if (const std::string why = make_room_for((*settings)->limits); !why.empty())
      leave(why, kExitFailed);
    give_up_capabilities(!(*settings)->pam.service.empty());
  }
  queue_told();
  const rlimit limit = raise_descriptors();
  if (chdir("/") < 0) fail("/");  // keep no file system busy
  take_lock(dirs, *settings ? kLockPatienceMs : 0);
  child_fds.hold(dirs.lock);
  uint64_t keeper = random_number();
  uint64_t before = swap_number(dirs.lock, keeper);
  auto segment_bytes =
      std::max(number_of("MUSTER_KEEPER_SEGMENT_BYTES", kSegmentBytes), kSegmentBytesMin);
  Spool spool(boot_id(), keeper, segment_bytes);
  Spool::Found found = spool.open(dirs.keeper, cluster);
  end_lost(before, found.records);
  if (found.opened == Spool::Opened::damaged) leave(found.why, kExitDamaged);
  if (found.opened == Spool::Opened::failed) leave(found.why, kExitFailed);

  find_spaces(dirs, settings->has_value(), spaces);
  std::optional<Owners> owners;
  if (*settings) {
    if (spaces.dirs != nullptr) (*settings)->scratch = spaces.dirs->path();
    owners.emplace(std::move(**settings));
  } else {
    close(dirs.work);
  }
  CgroupChoice choice = choose_cgroups(keeper, limit.rlim_max / kDescriptorsEach);
  Cgroups* const cgroups = choice.cgroups.get();
  Outputs outputs(dirs.keeper);
  const Owners* several = owners ? &*owners : nullptr;
  Spawner spawner(spool, outputs, several, cgroups, choice.for_all, limit, pods_umask & 0777,
                  child_fds, spaces);
  if (several != nullptr) serve_outputs_at(dirs.keeper, *several);
  const auto listen_again = [dir_fd = dirs.keeper, several] {
    return listen_at(dir_fd, kSocketName, SOCK_STREAM | SOCK_NONBLOCK, kAgentsWaitingMax,
                     several != nullptr);
  };
  const int listen_fd = listen_again();
  if (listen_fd < 0) fail(kSocketName);
  Supervisor supervisor(
      {.dir_fd = dirs.keeper,
       .listen_fd = listen_fd,
       .listen_again = listen_again,
       .keeper = keeper,
       .no_limits = std::move(choice.no_limits),
       // The agent could not restart this keeper.
       .idle_ns =
           several != nullptr ? kNever : number_of("MUSTER_KEEPER_IDLE_MS", kIdleMs) * 1'000'000,
       .output_max_bytes = number_of(kOutputMaxSetting, OutputLimit::kDefaultBytes),
       .sigterms = &sigterms},
      spool, outputs, spawner, several, cgroups, spaces);
  for (auto& record : found.records) supervisor.adopt(std::move(record));
  manager.ready();
  supervisor.run();
  if (cgroups != nullptr) {
    cgroups->kill_all();
    cgroups->remove();
  }
  if (spaces.dirs != nullptr) spaces.dirs->leave();
  unlinkat(dirs.keeper, kSocketName, 0);
  if (ftruncate(dirs.lock, 0) < 0) tell_errno("lock");  // an orderly exit
  drain_stderr();
  _exit(0);  // without destructors: the workers wait forever
}

}  // namespace
}  // namespace muster::keeper

int main(int argc, char** argv) {
  if (argc > 0 && std::strcmp(argv[0], muster::keeper::kTerminalName) == 0)
    return muster::keeper::terminal_main(argv);
  if (argc > 0 && std::strcmp(argv[0], muster::keeper::kSpaceName) == 0)
    return muster::keeper::space_main(argv);
  if (argc > 1 && std::strcmp(argv[1], muster::keeper::kPamFlag) == 0)
    return muster::keeper::pam_session_main(argc, argv);
  muster::open_standard_fds();
  if (const auto said = muster::keeper::say(argc, argv)) return *said;
  muster::keeper::run(argv[1], argv[2], muster::ServiceManager::take());
}
