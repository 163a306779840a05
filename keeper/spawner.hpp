// Spawner: the threads that start processes and see them exit.
//
// A thread that starts a process is suspended until the exec, so there is a worker per core, and
// the main thread, which writes the spool and talks to the agent, starts none. Until its exec the
// child shares our memory, like vfork (so the cost does not grow with our size), on a small stack
// of its own.
//
// A worker waits for the ends of what it started, so that it is woken where its process ran, which
// keeps cores busy and caches warm; and the one with the fewest processes starts the next. While a
// start takes long (a disk that hangs), the main thread sees to the ends of that worker's processes
// (rescue()).
//
// Jobs of submit() start at once. Jobs of enqueue() start in their order while fewer than `room` of
// them live: the worker that reaps one starts the next, so that a slot is filled without a
// round trip, a wake-up or the main thread.
//
// Invariants: workers live as long as the keeper, because a process's parent is the thread that
// started it; nothing is executed at or after the order's not_after, which the child itself checks
// right before its exec; nothing starts before its intent is written; a pid is signalled only until
// it is reaped, both under the mutex.
#pragma once

#include "base/fd.hpp"
#include "keeper/cgroup.hpp"
#include "keeper/child_fds.hpp"
#include "keeper/outputs.hpp"
#include "keeper/owners.hpp"
#include "keeper/pod_dirs.hpp"
#include "keeper/proc.hpp"
#include "keeper/space_main.hpp"
#include "keeper/spool.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace muster::keeper {

struct SpawnJob {
  Token token;
  std::string order;         // the spawn frame after its note; empty with a permit
  bool fresh = true;         // the first process of its container, so its outputs are not there yet
  Record* record = nullptr;  // of an enqueued job: its intent is written when its turn comes
  // With a permit, where processes are started as their owners:
  std::optional<PermitOrder> as{};
  PodId pod{};
  uint16_t container = 0;
  uint16_t number = 0;  // Key::instance
  Limits limits{};
  bool contained = false;
  int64_t not_after_ms = 0;
  // A session (protocol.hpp): it joins its container's cgroup. -1: that has none.
  bool session = false;
  int joins_cgroup = -1;
  int joins_pid = 0;         // of the container's process
  bool agent_reads = false;  // the agent reads outputs itself
};

// What this keeper can do for pods with volumes.
struct Spaces {
  PodDirs* dirs = nullptr;  // null: there is no scratch directory
  std::string no_dirs{};    // why not
  std::string no_mounts{};  // why processes cannot have mounts of their own; empty: they can
  std::string work_dir{};   // absolute
};

struct Spawned {
  uint64_t entry = 0;
  std::optional<Start> start{};  // without ticks; absent: it could not be started
  bool late = false;             // not started because its not_after had passed
  int exit_code = 0;             // to report if not started
  std::string error;
  std::unique_ptr<Cgroup> cgroup{};    // null: none
  std::vector<std::string> outputs{};  // opened for it
  Fd input{};                          // where what it is to read is written, if it reads any
};

struct Exited {
  uint64_t entry = 0;
  int exit_code = 0;
  int signal = 0;  // that ended it, else 0
  uint64_t end_ns = 0;
  std::string error{};  // it ended before its exec: what failed
  bool left = true;     // others of its group or cgroup may be alive
};

class Spawner {
 public:
  // `owners`, `cgroups` may be null. `for_all`: each process gets one, also if its order does not
  // ask. `limit`, `mask`: the RLIMIT_NOFILE and umask that processes get. `lock`: the keeper's.
  Spawner(Spool& spool, Outputs& outputs, const Owners* owners, Cgroups* cgroups, bool for_all,
          rlimit limit, mode_t mask, int lock, ChildFds& child_fds, const Spaces& spaces);

  void submit(std::vector<SpawnJob> jobs);
  void enqueue(std::vector<SpawnJob> jobs);
  void set_room(size_t room);
  // Drops an enqueued job; false: its turn has come.
  bool withdraw(uint64_t entry);
  // The spool can be written again.
  void resume();
  // Notices what has exited of workers that are held up. True if there are any: call it again soon.
  bool rescue();
  // A process has left nothing behind, so that its place is free, unless a worker saw that already.
  void vacate(uint64_t entry);

  // Sends it to the group of a process that is not reaped; does nothing for others.
  void signal(uint64_t entry, int number);

  struct News {
    std::vector<Spawned> spawned;  // before their ends
    std::vector<Exited> exited;
  };
  News take();
  int event_fd() const { return event_fd_; }   // readable if take() has something
  size_t waiting() const { return waiting_; }  // enqueued jobs whose turn has not come

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
  struct Child {
    Worker* worker = nullptr;
    int pid = 0, pidfd = -1;
    int report = -1;                 // what failed before the exec can be read here; -1: nothing
    const Cgroup* cgroup = nullptr;  // the main thread owns it
  };

  static constexpr size_t kStackBytes = 64u << 10;  // of a child until its exec
  static std::string read_report(int fd);
  // What comes before an enqueued job starts. False: its intent cannot be written now.
  bool begin(const SpawnJob& job, int64_t not_after_ms, Spawned& result);
  void work(Worker& worker);
  std::optional<SpawnJob> next(Worker& worker);
  bool ready_locked() const;
  void run(Worker& worker, SpawnJob job, char* stack);
  void reap(uint64_t entry);
  void tell_locked();
  void wake_locked();
  // Makes what a process with volumes needs. Empty, or why it cannot start. `file`: what
  // muster-space reads; none: it needs no mounts.
  std::string prepare(const SpawnJob& job, const core::node::Space& space, uid_t uid, gid_t gid,
                      SpacePlan& plan, Fd& file);
  std::optional<Spawned> spawn(const SpawnJob& job, char* stack, int& pidfd, int& report);
  std::optional<Spawned> spawn_as(const SpawnJob& job, char* stack, int& pidfd, int& report);

  Spool& spool_;
  Outputs& outputs_;
  const Owners* const owners_;
  Cgroups* const cgroups_;
  const bool cgroups_for_all_;
  const bool born_in_cgroup_;  // else a process joins its cgroup after the clone
  const rlimit limit_;
  const mode_t mask_;
  const int lock_;
  ChildFds& child_fds_;
  const Spaces& spaces_;
  const int null_fd_;
  const int event_fd_;
  std::deque<Worker> workers_;
  std::atomic<size_t> waiting_ = 0;
  std::mutex mutex_;  // guards what follows
  std::deque<SpawnJob> jobs_, queue_;
  size_t room_ = 0;
  std::unordered_set<uint64_t> placed_;  // enqueued jobs that take a place of the room
  bool stalled_ = false;                 // the spool could not be written
  std::unordered_map<uint64_t, Child> children_;
  News news_;
};

}  // namespace muster::keeper
