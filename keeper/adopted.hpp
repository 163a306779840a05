// Adopted: the processes that lost their parent and became our children.
//
// The keeper is child subreaper, so whatever a pod leaves behind ends up here, as a child of the
// main thread (workers start all others), told apart by session, else by MUSTER_PROCESS. What
// neither tells is only reaped.
//
// Always holds: only the main thread reaps them, so a pid in here is not used again before reap()
// has seen it.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

namespace muster::keeper {

class Adopted {
 public:
  explicit Adopted(uint64_t keeper) : keeper_(keeper) {}

  // Reaps the dead. True: some are alive. A system call or two, if there are none.
  bool reap();
  // Calls `found` with each living one whose process (its entry) is known. `session_entry` says
  // which process leads a session, or 0. True: one cannot be told yet (it is in the middle of an
  // exec), so look again soon.
  bool scan(const std::function<uint64_t(int session)>& session_entry,
            const std::function<void(int pid, uint64_t entry)>& found);

 private:
  struct Owner {
    uint64_t entry = 0;  // 0: not known
    int looks = 0;       // its environment cannot be read in the middle of an exec: look again
  };
  const uint64_t keeper_;
  std::unordered_map<int, Owner> owners_;
};

// Kills what a keeper that died has left: whatever says MUSTER_PROCESS of it, and the sessions of
// the processes it started. Returns when nothing of it is left, or after some seconds with false.
struct Leader {
  int pid = 0;
  uint64_t start_ticks = 0;
};
bool kill_leftovers_of(const std::vector<uint64_t>& keepers, const std::vector<Leader>& leaders);

}  // namespace muster::keeper
