// The lease of a start: whether it is too late to execute, checked right before every exec and
// before an enqueued process is begun.
#pragma once

#include <cstdint>
#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>

namespace muster::keeper {

// `not_after_ms`: boot time; 0: none. A system call only, since a child that shares its parent's
// memory asks too.
__attribute__((no_sanitize("address", "undefined", "thread"))) inline bool too_late(
    int64_t not_after_ms) {
  if (not_after_ms == 0) return false;
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000 >= not_after_ms;
}

}  // namespace muster::keeper
