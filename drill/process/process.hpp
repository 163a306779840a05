// Process: a process that a drill may signal, pinned by a pidfd so that no other is ever signaled.
//
// A pid alone may have been reused. A Process is opened once, its start time, executable and owner
// are read while the pidfd proves that it is alive, and signals go through the pidfd.
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace muster::cli::drill {

// For failures that may not recur.
inline Error unavailable(std::string message) {
  return {Errc::unavailable, std::move(message), {}};
}

// A whole file; empty if it cannot be read.
std::string text_of_file(const std::string& path);

struct ProcessFacts {
  char state = 0;  // as in /proc/PID/stat: R, S, T, Z…
  pid_t parent = 0;
  uint64_t start_ticks = 0;  // since boot
};
// Nothing: there is no such process.
std::optional<ProcessFacts> facts_of(pid_t pid);

// The words of its command line; empty: it is gone or a zombie.
std::vector<std::string> command_of(pid_t pid);

std::vector<pid_t> all_pids();

class Process {
 public:
  // not_found: no live process has this pid. unavailable: its executable cannot be read.
  static Result<Process> open(pid_t pid);

  pid_t pid() const { return pid_; }
  uint64_t start_ticks() const { return start_ticks_; }
  const std::string& executable() const { return executable_; }  // a path
  uid_t owner() const { return owner_; }
  // "pid 4711, started at tick 123456"
  std::string name() const;

  Status send(int signal) const;
  bool gone() const;   // it has ended; true for a zombie
  char state() const;  // 0: gone
  bool wait_gone(Millis patience_ms) const;
  // All its threads have this state.
  bool wait_state(char state, Millis patience_ms) const;

 private:
  friend class Frozen;
  friend class Full;
  Process(Fd fd, pid_t pid) : fd_(std::move(fd)), pid_(pid) {}
  Fd fd_;
  pid_t pid_;
  uint64_t start_ticks_ = 0;
  std::string executable_;
  uid_t owner_ = 0;
};

// Stops a process (SIGSTOP) for the lifetime of this object and continues it afterwards. If we are
// killed, a small watcher process continues it.
class Frozen {
 public:
  explicit Frozen(const Process& process);
  ~Frozen();
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;

 private:
  const Process& process_;
  Fd pipe_;  // to the watcher
  pid_t watcher_ = -1;
};

// Likewise, lets no file of a process grow (RLIMIT_FSIZE 0).
class Full {
 public:
  explicit Full(const Process& process);
  ~Full();
  Full(const Full&) = delete;
  Full& operator=(const Full&) = delete;
  bool took() const { return watcher_ > 0; }  // false: the process could not be limited

 private:
  Fd pipe_;  // to the watcher
  pid_t watcher_ = -1;
};

// SHA-256 of a file, or of the program that a process runs, even if its file was replaced.
std::string digest_of(const std::string& path);
std::string digest_of(const Process& process);

// All descendants of the process.
std::vector<Process> descendants(pid_t pid);

// The daemon whose pid is in a file: a number, or endpoints.json of a data-dir. Refuses a process
// that is not `muster VERB`, and one of another user unless we are root.
Result<Process> process_in_file(const std::string& path, const std::string& verb);

}  // namespace muster::cli::drill
