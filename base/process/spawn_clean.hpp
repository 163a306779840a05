// spawn_clean(): starts a process that inherits as little as possible from a daemon.
#pragma once

#include <sys/types.h>

namespace muster {

// Its standard input is `input`, or /dev/null if that is negative; both its outputs go to `output`.
// No signal is blocked (KJ blocks some) or ignored. `flags`: POSIX_SPAWN_SETSID or
// POSIX_SPAWN_SETPGROUP. Returns its pid; 0: see `error`, an errno.
pid_t spawn_clean(const char* path, char* const* argv, char* const* env, int input, int output,
                  short flags, int& error);

}  // namespace muster
