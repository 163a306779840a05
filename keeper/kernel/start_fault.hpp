// Whose fault it is that a process could not be started: what was asked for, or this node.
//
// A command that does not exist fails anywhere. A node that has run out of memory, descriptors or
// disk space, or whose file systems do not answer, would fail any command; and what only this job
// needs (its directory, a volume, the owner's account) may exist on another node. These have the
// exit code core::kExitNotHere, and the coordinator places the pod elsewhere.
#pragma once

#include "base/exec_exit.hpp"
#include "core/node/values.hpp"

#include <cerrno>

namespace muster::keeper {

// Whether a system call failed for a reason of the machine rather than of its arguments. `error`:
// from errno.
inline bool is_machines_fault(int error) {
  switch (error) {
    case EAGAIN:
    case EDQUOT:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case EIO:
    case EMFILE:
    case ENFILE:
    case ENODEV:
    case ENOLINK:
    case ENOMEM:
    case ENOSPC:
    case ENOTCONN:
    case ENXIO:
    case EREMOTEIO:
    case EROFS:
    case ESTALE:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

// The exit code of a process that could not be started for this reason.
inline int exit_of_start(int error) {
  return is_machines_fault(error) ? core::kExitNotHere : exit_of_exec(error);
}

}  // namespace muster::keeper
