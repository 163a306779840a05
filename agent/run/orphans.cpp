#include "agent/run/orphans.hpp"

#include "base/clock.hpp"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <unistd.h>

namespace muster::agent {
namespace {

constexpr Millis kStartSlackMs = 2'000;  // of a start as the keeper has reported it

struct GroupLeader {
  int group = 0;
  Millis started_ms = 0;  // boot time
};

// From /proc/PID/stat (proc(5)); nullopt: there is no such process.
std::optional<GroupLeader> stat_of(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  GroupLeader found;
  std::string skipped;
  unsigned long long ticks = 0;
  fields >> skipped >> skipped >> found.group;  // state, ppid, pgrp
  for (int field = 6; field < 22; ++field) fields >> skipped;
  fields >> ticks;  // starttime
  if (!fields) return std::nullopt;
  found.started_ms = static_cast<Millis>(ticks) * 1000 / sysconf(_SC_CLK_TCK);
  return found;
}

}  // namespace

void kill_orphans(const std::vector<core::node::ProcessStart>& processes) {
  for (const auto& process : processes) {
    const auto found = stat_of(process.pid);
    if (found && found->group == process.pid &&
        std::abs(found->started_ms - process.at) <= kStartSlackMs)
      kill(-process.pid, SIGKILL);
  }
}

}  // namespace muster::agent
