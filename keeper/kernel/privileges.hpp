// Privileges: what a process gives up before its exec, as its securityContext asks.
//
// Only for processes of the keeper's own user: those of other users never have or gain any.
#pragma once

#include <cstdint>

namespace muster::keeper {

struct Privileges {
  bool none_new = false;  // it gains none by running a program (no_new_privs)
  uint64_t dropped = 0;   // capabilities, by the kernel's numbers

  bool any() const { return none_new || dropped != 0; }
};

// Applies to the calling process, with system calls only. Where it may not change the bounding set,
// a program could bring a capability back, so it also sets no_new_privs. False, with errno: it
// still has some of them.
bool give_up(const Privileges& privileges);

}  // namespace muster::keeper
