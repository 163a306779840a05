// Exit codes of a command that could not be started, as in POSIX shells (XCU 2.8.2).
#pragma once

#include <cerrno>

namespace muster {

inline constexpr int kExitCannotStart = 126;  // it was found, but cannot be executed
inline constexpr int kExitNotFound = 127;

// The one for an execve() that failed with `error`.
constexpr int exit_of_exec(int error) {
  return error == ENOENT || error == ENOTDIR ? kExitNotFound : kExitCannotStart;
}

}  // namespace muster
