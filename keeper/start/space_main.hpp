// muster-space: gives a process its own mounts, then becomes its command.
//
// It is this executable under another name, started in place of the command, with the command's
// user, environment and limits (as terminal.hpp). So it opens, makes and mounts everything with
// that user's rights and no others, in its own mount namespace and a user namespace in which the
// user is mapped to itself. Both end with the process and its descendants; nothing is ever mounted
// anywhere else, and nothing can be left mounted.
//
//   muster-space FD COMMAND ARGUMENT...      FD: a descriptor of a file with its SpacePlan
//
// A process that joins a container (`muster exec`) enters the namespaces of the container's process
// instead.
//
// Invariants: mounts are nosuid and nodev; a path that the user chose is resolved with the user's
// rights; with no_new_privs, no program gains privileges from what is put in its way.
#pragma once

#include "base/fd.hpp"
#include "core/node/space.hpp"
#include "keeper/start/last_step.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::keeper {

constexpr const char* kSpaceName = "muster-space";  // argv[0]

struct SpacePlan {
  core::node::Space space;
  std::string work_dir;   // stays visible where the pod gets its own /tmp
  LastStep last{};        // its none_new does not count: nothing here gains privileges
  bool terminal = false;  // the command gets a terminal (terminal.hpp)
  int report = -1;        // where failures are written; -1: to standard error
  int joins = 0;          // the pid of the container's process; 0: its own namespaces

  // In a memfd, which its process inherits; none: out of memory.
  Fd file() const;
  static std::optional<SpacePlan> read(int fd);
};

// Why this kernel or machine gives our user no such namespaces; empty: it does. May take a few
// milliseconds.
std::string why_no_spaces();

int space_main(char** argv);

}  // namespace muster::keeper
