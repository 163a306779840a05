#include "agent/run/orphans.hpp"

#include "base/clock.hpp"
#include "base/process/process_stat.hpp"

#include <csignal>
#include <cstdlib>
#include <string>
#include <unistd.h>

namespace muster::agent {
namespace {

constexpr Millis kStartSlackMs = 2'000;  // of a start as the keeper has reported it

}  // namespace

void kill_orphans(const std::vector<core::node::ProcessStart>& processes) {
  for (const auto& process : processes) {
    const auto found = process_stat(std::to_string(process.pid));
    if (!found || found->group != process.pid) continue;
    const Millis started_ms =
        static_cast<Millis>(found->started_ticks) * 1000 / sysconf(_SC_CLK_TCK);
    if (std::abs(started_ms - process.at) <= kStartSlackMs) kill(-process.pid, SIGKILL);
  }
}

}  // namespace muster::agent
