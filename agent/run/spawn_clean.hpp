// spawn_clean(): starts a process that inherits as little as possible from the agent.
#pragma once

#include <sys/types.h>

namespace muster::agent {

// Its standard input is /dev/null, both its outputs go to `output`, no signal is blocked (KJ blocks
// some) or ignored. `flags`: POSIX_SPAWN_SETSID or POSIX_SPAWN_SETPGROUP. Returns its pid; 0: see
// `error`, an errno.
pid_t spawn_clean(const char* path, char* const* argv, char* const* env, int output, short flags,
                  int& error);

}  // namespace muster::agent
