// Adopted: processes that lost their parent and became our children.
//
// The keeper is a child subreaper, so whatever a pod leaves behind becomes a child of the main
// thread (workers start all others). It is attributed to a process by its session, else by
// the tokens in its environment (proc.hpp); if neither works, it is only reaped. Until then it is a
// stray, which may still turn out to be a descendant of any process that its user started before
// it, but of no other: a user's strays do not delay the ends of other users' processes.
//
// Invariant: only the main thread reaps them, so a pid in here is not reused before reap() has seen
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

namespace muster::keeper {

class Adopted {
 public:
  explicit Adopted(uint64_t keeper) : keeper_(keeper) {}

  // Reaps the dead. True: some are alive. One system call if there are none.
  bool reap();
  // One that cannot be identified yet: it is in the middle of an exec, or hides its environment.
  struct Stray {
    uid_t user = 0;
    uint64_t start_ticks = 0;
  };
  // Calls `found` for each living one whose process (its entry) is known, and returns those to look
  // at again soon. `session_entry` returns the entry of the process that leads a session, or 0.
  std::vector<Stray> scan(const std::function<uint64_t(int session)>& session_entry,
                          const std::function<void(int pid, uint64_t entry)>& found);

 private:
  struct Owner {
    uint64_t entry = 0;  // 0: unknown
    int looks = 0;       // attempts to identify it: its environment is unreadable during an exec
  };
  const uint64_t keeper_;
  std::unordered_map<int, Owner> owners_;
};

// Kills what dead keepers left behind: their cgroups, every process with their tokens, and the
// sessions of `leaders`. True once nothing is left; false after a few seconds.
struct Leader {
  int pid = 0;
  uint64_t start_ticks = 0;
};
bool kill_leftovers_of(const std::vector<uint64_t>& keepers, const std::vector<Leader>& leaders);

}  // namespace muster::keeper
