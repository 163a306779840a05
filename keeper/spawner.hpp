// Spawner: the threads that start processes.
//
// A thread that starts a process is suspended until the exec, so there is a worker per core, and
// the main thread, which must notice ends meanwhile, starts none. Until its exec the child shares
// our memory, like vfork (so the cost does not grow with our size), on a small stack of its own.
//
// Invariants: workers live as long as the keeper, because a process's parent is the thread that
// started it; nothing is executed at or after the order's not_after, which the child itself checks
// right before its exec.
#pragma once

#include "keeper/cgroup.hpp"
#include "keeper/outputs.hpp"
#include "keeper/proc.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace muster::keeper {

struct SpawnJob {
  Token token;
  std::string order;  // the spawn frame after its note
};

struct Spawned {
  uint64_t entry = 0;
  int pid = 0;  // 0: it could not be started
  int pidfd = -1;
  uint64_t start_ns = 0;
  bool late = false;  // not started because its not_after had passed
  int exit_code = 0;  // to report if not started
  std::string error;
  std::unique_ptr<Cgroup> cgroup{};    // null: none
  std::vector<std::string> outputs{};  // opened for it
};

class Spawner {
 public:
  // `cgroups` may be null. `for_all`: each process gets one, also if its order does not ask.
  // `limit`, `mask`: the RLIMIT_NOFILE and umask that processes get.
  Spawner(Outputs& outputs, Cgroups* cgroups, bool for_all, rlimit limit, mode_t mask);
  void submit(std::vector<SpawnJob> jobs);
  std::vector<Spawned> take();
  int event_fd() const { return event_fd_; }  // readable if take() has something

 private:
  void work();
  Spawned spawn(const SpawnJob& job, char* stack);

  Outputs& outputs_;
  Cgroups* const cgroups_;
  const bool cgroups_for_all_;
  const bool born_in_cgroup_;  // else a process joins its cgroup after the clone
  const rlimit limit_;
  const mode_t mask_;
  const int null_fd_;
  const int event_fd_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::deque<SpawnJob> jobs_;
  std::vector<Spawned> done_;
};

}  // namespace muster::keeper
