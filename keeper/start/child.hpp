// Child: a process between its clone and its exec.
//
// A child of our own user shares our memory, as with vfork, so its cost does not depend on our
// size; the thread that starts it is suspended until its exec. A child that becomes another user
// has a copy instead: once it runs as that user, the user can stop it, or make it wait for one of
// their directories. So no thread waits for it either. What fails before the exec comes back
// through a pipe, which is read when it has ended.
//
// Until its exec, the latter cannot be recognized by its environment, and its user may stop it for
// as long as they like. So it is named after its keeper, and the kernel kills it with the keeper
// or, if it was stopped before that was arranged, the next keeper does, which need not wait for it.
// It holds neither other processes' pipes, whose readers would wait for their ends, nor the
// keeper's lock.
#pragma once

#include "keeper/kernel/cgroup.hpp"
#include "keeper/kernel/cpus.hpp"
#include "keeper/kernel/rlimits.hpp"
#include "keeper/kernel/start_settings.hpp"
#include "keeper/start/last_step.hpp"
#include "keeper/users/pam.hpp"
#include "keeper/users/secrets.hpp"
#include "trust/permit/permit.hpp"

#include <cstddef>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace muster::keeper {

struct Child {
  const LastStep* last = nullptr;
  std::vector<std::string> programs{};
  char* const* argv = nullptr;
  char** envp = nullptr;
  int in = -1, out = -1, err = -1;
  int cgroup = -1;                // cgroup.procs of the one to join; -1: none
  int report = -1, space = -1;    // with `space`, both are kept open for muster-space
  int shared_from = -1;           // it shares our descriptors, and needs none from here on
  const rlimit* files = nullptr;  // RLIMIT_NOFILE
  const StartSettings* settings = nullptr;
  CpuMask cpus{};  // that it is bound to
  Secrets* secrets = nullptr;
  // Whom it becomes; null: it stays our own user. What follows only concerns the former.
  const core::Owner* owner = nullptr;
  const std::vector<ResourceLimit>* limits = nullptr;
  PamStart* pam = nullptr;  // null: it has no PAM session
  std::string name{};       // until its exec
  int keeper = 0;           // our pid

  // What failed in it, which we see if it shares our memory.
  StartFailure failed{};
  char refusal[320] = "";  // a part of it

  // Starts it; it joins `cgroup` if it cannot begin in `born` (null: it need not). -1: errno says
  // why it cannot be started.
  int start(const Cgroup* born, char* stack, size_t stack_bytes, int* pidfd);
  // Why it has failed. Returns the length, less than `size`.
  size_t why(char* text, size_t size) const noexcept;
};

// What concerns any process here.
inline constexpr char kDescriptors[] = "descriptors";

// Whether a process that begins in another cgroup survives: a kernel may apply an earlier
// cgroup.kill of ours to it and end it at once (seen on Linux 6.18.44).
bool born_alive(Cgroups& cgroups, size_t stack_bytes);

}  // namespace muster::keeper
