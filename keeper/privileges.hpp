// Privileges: what a process gives up before its exec, as its securityContext asks.
//
// Only for processes of the keeper's own user: those of several users never have or gain any.
#pragma once

#include <cstdint>

namespace muster::keeper {

struct Privileges {
  bool none_new = false;  // no program gives it any (no_new_privs)
  uint64_t dropped = 0;   // capabilities, by the kernel's numbers

  bool any() const { return none_new || dropped != 0; }
};

// Of the calling process, with system calls only. A user who may not rule out that a program brings
// a capability back gains no privileges at all. False, with errno: it still has some of them.
bool give_up(const Privileges& privileges);

}  // namespace muster::keeper
