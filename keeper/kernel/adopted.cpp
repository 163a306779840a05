#include "keeper/kernel/adopted.hpp"

#include "keeper/kernel/cgroup.hpp"
#include "keeper/kernel/proc.hpp"

#include <algorithm>
#include <sys/wait.h>
#include <unistd.h>
#include <unordered_set>

namespace muster::keeper {
namespace {

constexpr int kLooks =
    50;  // one every millisecond; a process whose environment stays empty is not ours
constexpr uint64_t kLeftoversNs = 4'000'000'000;  // the agent waits 5 s for us

}  // namespace

bool Adopted::reap() {
  while (true) {
    int pid = waitpid(-1, nullptr, WNOHANG | __WNOTHREAD | __WALL);  // of the main thread only
    if (pid <= 0) return pid == 0;
    owners_.erase(pid);
  }
}

std::vector<Adopted::Stray> Adopted::scan(
    const std::function<uint64_t(int session)>& session_entry,
    const std::function<void(int pid, uint64_t entry)>& found) {
  std::vector<Stray> strays;
  for (int pid : adopted_pids()) {
    Owner& owner = owners_[pid];
    if (owner.entry == 0 && owner.looks < kLooks) {
      ++owner.looks;
      ProcStat stat;
      if (!read_stat(pid, stat) || stat.state == 'Z') continue;  // reaped next time
      owner.entry = session_entry(stat.session);
      std::vector<Token> tokens;
      if (owner.entry == 0 && !read_tokens(pid, tokens))
        strays.push_back({user_of(pid).value_or(0), stat.start_ticks});
      const auto ours = std::ranges::find(tokens, keeper_, &Token::keeper);
      if (ours != tokens.end()) owner.entry = ours->entry;
    }
    if (owner.entry != 0) found(pid, owner.entry);
  }
  return strays;
}

bool kill_leftovers_of(const std::vector<uint64_t>& keepers, const std::vector<Leader>& leaders) {
  for (uint64_t keeper : keepers) {
    Cgroups cgroups(keeper);
    if (cgroups.open()) cgroups.kill_all();
  }
  std::unordered_set<int> sessions;  // of leaders that still exist (same pid and start time)
  for (const Leader& leader : leaders) {
    ProcStat stat;
    if (read_stat(leader.pid, stat) && stat.start_ticks == leader.start_ticks) {
      sessions.insert(leader.pid);
    }
  }
  uint64_t give_up = boot_ns() + kLeftoversNs;
  int clean = 0;
  while (clean < 2) {  // two passes in a row: a process may fork or exec during one
    bool left = false;
    for (int pid : all_pids()) {
      ProcStat stat;
      if (pid == getpid() || !read_stat(pid, stat) || stat.state == 'Z' || stat.state == 'X')
        continue;
      bool theirs = sessions.contains(stat.session) || is_unborn_of(pid, keepers);
      if (!theirs) {
        std::vector<Token> tokens;
        read_tokens(pid, tokens);
        theirs = std::ranges::any_of(tokens, [&](const Token& token) {
          return std::ranges::find(keepers, token.keeper) != keepers.end();
        });
      }
      if (!theirs) continue;
      left = true;
      kill_process(pid, stat.start_ticks);
    }
    clean = left ? 0 : clean + 1;
    if (left && boot_ns() > give_up) return false;
    usleep(left ? 1000 : 5000);
  }
  for (uint64_t keeper : keepers) {
    Cgroups cgroups(keeper);
    if (cgroups.open()) {
      cgroups.kill_all();
      cgroups.remove();
    }
  }
  return true;
}

}  // namespace muster::keeper
