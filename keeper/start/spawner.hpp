// Spawner: the threads that start processes and reap them.
//
// A thread that starts a process is suspended until the exec (child.hpp), so there is a worker per
// core, and the main thread, which writes the spool and talks to the agent, starts none.
//
// A worker reaps the processes that it started, so it wakes up where its process ran, which keeps
// cores busy and caches warm. The worker with the fewest processes starts the next one. While a
// start takes long (a hung disk), the main thread reaps that worker's processes (rescue()).
//
// Jobs passed to submit() start at once. Jobs passed to enqueue() start while fewer than `room` of
// them live: the worker that reaps one starts the next, so a slot is filled without a round trip, a
// wake-up or the main thread. Those of one Kubernetes Job start in order. Users and their Jobs take
// turns (turns.hpp).
//
// Invariants: workers live as long as the keeper, because a process's parent is the thread that
// started it; nothing is executed at or after the order's not_after (last_step.hpp); nothing starts
// before its intent is written; a pid is never signaled after it has been reaped, because both
// happen under the mutex.
#pragma once

#include "base/fd.hpp"
#include "keeper/files/outputs.hpp"
#include "keeper/files/pod_dirs.hpp"
#include "keeper/files/spool.hpp"
#include "keeper/kernel/cgroup.hpp"
#include "keeper/kernel/cpus.hpp"
#include "keeper/kernel/proc.hpp"
#include "keeper/start/child_fds.hpp"
#include "keeper/start/launch.hpp"
#include "keeper/start/turns.hpp"
#include "keeper/users/owners.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace muster::keeper {

struct Child;

struct SpawnJob {
  Token token;
  std::string order;         // the spawn frame after its note; empty with a permit
  bool fresh = true;         // the first process of its container, so its outputs do not exist yet
  Record* record = nullptr;  // of an enqueued job: its intent is written when it is dequeued
  // Only with a permit, where processes are started as their owners:
  std::optional<PermitOrder> as{};
  PodId pod{};
  uint16_t container = 0;
  uint16_t number = 0;  // Key::instance
  Limits limits{};
  uint32_t cpus = 0;  // how many it gets for itself
  bool contained = false;
  int64_t not_after_ms = 0;
  // A session (protocol.hpp) joins its container's cgroup. -1: there is none.
  bool session = false;
  int joins_cgroup = -1;
  int joins_pid = 0;  // of the container's process
  core::node::CpuList joins_cpus{};
  bool agent_reads = false;  // the agent reads outputs itself
  bool as_root = false;      // a hook, in spite of its permit

  bool hook() const { return as && core::node::is_hook(container); }
  // Whom it runs as; null: our own user.
  const core::Owner* owner() const {
    return as && as->permit && !as_root ? &as->permit->owner : nullptr;
  }
};

// What this keeper can do for pods with volumes.
struct Spaces {
  PodDirs* dirs = nullptr;  // null: there is no scratch directory
  std::string no_dirs{};    // why not
  std::string no_mounts{};  // why processes cannot have their own mounts; empty: they can
  std::string work_dir{};   // absolute
};

// A start is recorded and reported, and its outputs get their names, after this time. The end of a
// shorter process carries its start, which saves a spool entry and a frame.
constexpr uint64_t kFreshNs = 5'000'000;

struct Spawned {
  uint64_t entry = 0;
  std::optional<Start> start{};  // without ticks; absent: it could not be started
  bool unborn = false;           // it may still fail to start, see begun()
  bool late = false;             // not started because its not_after had passed
  int exit_code = 0;             // to report if not started
  bool node_fault = false;       // not started for a reason that concerns any process here
  std::string error;
  std::unique_ptr<Cgroup> cgroup{};    // null: none
  core::node::CpuList cpus{};          // that it has for itself, or its container has
  uint32_t cpus_missing = 0;           // as many were asked for and not free, so it has none
  std::vector<std::string> outputs{};  // opened for it, to be closed
  std::vector<std::string> written{};  // the files that it writes to
  Fd input{};                          // the write end of its input, if it has any
};

struct Exited {
  uint64_t entry = 0;
  int exit_code = 0;
  int signal = 0;  // the signal that ended it, else 0
  uint64_t end_ns = 0;
  core::Usage used{};
  std::string error{};                 // what failed, if it ended before its exec
  bool left = true;                    // others in its group or cgroup may be alive
  std::vector<std::string> outputs{};  // still to be closed
};

class Spawner {
 public:
  // `owners`, `cgroups` may be null. `for_all`: every process gets a cgroup, even if its order does
  // not ask for one. `limit`, `mask`: the RLIMIT_NOFILE and umask of processes.
  Spawner(Spool& spool, Outputs& outputs, const Owners* owners, Cgroups* cgroups, bool for_all,
          rlimit limit, mode_t mask, ChildFds& child_fds, const Spaces& spaces);

  void submit(std::vector<SpawnJob> jobs);
  void enqueue(std::vector<SpawnJob> jobs);
  void set_room(size_t room);
  // Drops an enqueued job; false: it has been dequeued.
  bool withdraw(uint64_t entry);
  // The spool can be written again.
  void resume();
  // Reaps the processes of workers that are held up. True if there are any: call it again soon.
  bool rescue();
  // Whether a running process is past its exec. False: it may still fail to start, or is reaped.
  bool begun(uint64_t entry);
  // A process has left nothing behind: frees its place and CPUs, unless a worker already has.
  void vacate(uint64_t entry);

  // Signals the group of a process that is not reaped yet; does nothing for others.
  void signal(uint64_t entry, int number, bool first_only = false);

  struct News {
    std::vector<Spawned> spawned;  // before their ends
    std::vector<Exited> exited;
  };
  News take();
  // Readable if take() has something, except a start that the caller sees soon enough anyway; while
  // it gathers, once half of the jobs that waited when it began to have been dequeued.
  int event_fd() const { return event_fd_; }
  void gather(bool gathers);
  // The main thread calls take() at the latest at `ns` (boot time); UINT64_MAX: once it is told.
  void takes_at(uint64_t ns) { takes_at_ns_ = ns; }
  size_t waiting() const { return waiting_; }  // enqueued jobs not dequeued yet

 private:
  struct Worker {
    Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    const int epoll_fd;                           // wake_fd and the pidfds of its children
    const int wake_fd;                            // an eventfd: there may be a job to start
    std::atomic<uint64_t> starting_since_ns = 0;  // boot time; 0: it is not starting a process
    // Guarded by mutex_.
    size_t children = 0;
    bool idle = true;  // it starts nothing until it is woken
  };
  struct Running {
    Worker* worker = nullptr;
    int pid = 0, pidfd = -1;
    int report = -1;                 // to read what failed before the exec; -1: none
    const Cgroup* cgroup = nullptr;  // the main thread owns it
    std::vector<std::string> outputs{};
  };

  struct Output {  // of a process
    int fd = -1;
    Fd own{};  // unless it is borrowed
  };

  static constexpr size_t kStackBytes = 64u << 10;  // of a child until its exec
  void work(Worker& worker);
  std::optional<SpawnJob> next(Worker& worker);
  SpawnJob dequeue_locked();
  bool ready_locked() const;
  void run(Worker& worker, SpawnJob job, char* stack);
  void reap(uint64_t entry);
  void tell_locked();
  void signal_locked();
  bool seen_soon(const SpawnJob& job, const Spawned& result) const;
  void wake_locked();
  // Starts a process; nullopt: its intent could not be written. `report`: to read what failed in
  // it before its exec; -1: nothing has.
  std::optional<Spawned> start(const SpawnJob& job, char* stack, int& pidfd, int& report);
  // Checks and records an enqueued job before it starts. False: its intent cannot be written now.
  bool begin(const SpawnJob& job, int64_t not_after_ms, Spawned& result);
  // What the order or its permit asks for. False: it is refused, and `result` says why.
  bool read(const SpawnJob& job, bool sound, Launch& launch, Spawned& result) const;
  // Makes what a process with volumes needs. Empty, or why it cannot start. `file`: what
  // muster-space reads; none: it needs no mounts.
  std::string prepare(const SpawnJob& job, const Launch& launch, int report, Fd& file);
  // Opens its outputs. Empty, or why they cannot be opened.
  std::string open_outputs(const SpawnJob& job, const Launch& launch, Output& out, Output& err,
                           Spawned& result);
  std::string open_own(const SpawnJob& job, std::string_view path, Output& output, Spawned& result);
  // Binds it to CPUs of its own, as far as there are any, or to those of its container.
  void bind(const SpawnJob& job, Launch& launch, Child& child, Spawned& result);
  // What a process of this order gets; null: none.
  std::unique_ptr<Cgroup> cgroup_for(const SpawnJob& job, const Launch& launch);
  // The result for a process that is not started; returns its cgroup. no_room(): for a reason that
  // concerns any process here, which errno says.
  Spawned refused(Spawned result, std::string why, int exit_code);
  Spawned no_room(Spawned result, const char* what);

  Spool& spool_;
  Outputs& outputs_;
  const Owners* const owners_;
  Cgroups* const cgroups_;
  const bool cgroups_for_all_;
  const bool born_in_cgroup_;  // otherwise a process joins its cgroup after the clone
  const rlimit limit_;
  const mode_t mask_;
  ChildFds& child_fds_;
  const Spaces& spaces_;
  Cpus cpus_;
  const int null_fd_;
  const int event_fd_;
  std::deque<Worker> workers_;
  std::atomic<size_t> waiting_ = 0;
  std::atomic<uint64_t> takes_at_ns_ = UINT64_MAX;
  std::mutex mutex_;  // guards what follows
  std::deque<SpawnJob> jobs_;
  Turns<SpawnJob> queue_;  // enqueued
  size_t room_ = 0;
  std::unordered_set<uint64_t> placed_;  // enqueued jobs that occupy a place of the room
  bool stalled_ = false;                 // the spool could not be written
  std::unordered_map<uint64_t, Running> children_;
  News news_;
  bool told_ = false;  // event_fd_ is readable
  bool gathers_ = false;
  size_t low_ = SIZE_MAX;  // while it gathers: signals when this many wait
};

}  // namespace muster::keeper
