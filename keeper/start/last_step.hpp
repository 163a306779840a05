// LastStep: what every child does last, whoever started it and as whom: its directory, its
// privileges, its lease, the exec.
//
// A child of the keeper takes it itself or, if it needs mounts of its own, muster-space does. In
// both, this is the only place where the lease is enforced: right before the exec, because whatever
// comes earlier may wait for a disk or be stopped.
#pragma once

#include "base/process/in_child.hpp"
#include "keeper/kernel/privileges.hpp"
#include "keeper/kernel/start_settings.hpp"

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace muster::keeper {

inline constexpr char kTooLate[] = "it could not be started while its node's lease lasted";

// `not_after_ms`: boot time; 0: none.
MUSTER_IN_CHILD inline bool too_late(int64_t not_after_ms) {
  if (not_after_ms == 0) return false;
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000 >= not_after_ms;
}

// What a child could not do; see describe().
struct StartFailure {
  const char* what = nullptr;     // null: nothing has failed
  const char* subject = nullptr;  // null: none
  int error = 0;                  // an errno; 0: `what` says it all
  int exit_code = 0;
  const char* advice = nullptr;  // what would be right; null: `what` and the error say it
  const char* part = nullptr;    // of the subject, which is to blame; null: all of it

  explicit operator bool() const { return what != nullptr; }
  // "cwd /no/such: No such file or directory", "exec ./a: bad interpreter: No such file or
  // directory". Returns the length, less than `size`.
  size_t describe(char* text, size_t size) const noexcept;
};

struct LastStep {
  std::string cwd;
  bool home = false;         // falls back to "/" if cwd is missing
  Privileges privileges{};   // to give up
  int64_t not_after_ms = 0;  // boot time; 0: none

  // System calls only. begin() before the process opens files of its own, execute() after that;
  // `settings`: whose files begin anew. execute() tries the programs in turn.
  StartFailure begin() const noexcept;
  StartFailure execute(const std::vector<std::string>& programs, char* const* argv,
                       char* const* envp, const StartSettings* settings = nullptr) const noexcept;
};

}  // namespace muster::keeper
