// muster-space: gives a process its own mounts, then becomes its command.
//
// It is this executable under another name, started in place of the command, with the command's
// user, environment and limits (as terminal.hpp). So whatever it opens, makes or mounts, it does
// with that user's rights and no others: in a user namespace of its own, in which the user is
// mapped to itself, and a mount namespace. Both end with the process and those that it starts;
// nothing is ever mounted anywhere else, and nothing can be left mounted.
//
//   muster-space FD COMMAND ARGUMENT...      FD: a descriptor of a file with its SpacePlan
//
// A process that joins a container (`muster exec`) enters the namespaces of the container's process
// instead.
//
// Always holds: mounts are nosuid and nodev; a path of the user's choice is resolved with the
// user's rights; with no_new_privs, no program gains privileges from what was put in its way.
#pragma once

#include "base/fd.hpp"
#include "core/node/space.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::keeper {

constexpr const char* kSpaceName = "muster-space";  // argv[0]

struct SpacePlan {
  core::node::Space space;
  std::string work_dir;  // stays visible where the pod gets a /tmp of its own
  std::string cwd;
  bool home = false;         // "/" does if cwd is missing
  bool terminal = false;     // the command gets a terminal (terminal.hpp)
  int report = -1;           // where what failed is written; -1: to standard error
  int64_t not_after_ms = 0;  // boot time; 0: none
  int joins = 0;             // the pid of the container's process; 0: its own namespaces
  uint64_t dropped = 0;      // capabilities that the command does not get (privileges.hpp)

  // In a file of memory, which its process inherits; none: there is no memory for it.
  Fd file() const;
  static std::optional<SpacePlan> read(int fd);
};

// Why this kernel or machine gives our user no such namespaces; empty: it does. May take some
// milliseconds.
std::string why_no_spaces();

int space_main(char** argv);

}  // namespace muster::keeper
