// What the kernel says of a process in /proc/PID/stat (proc(5)).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster {

struct ProcessStat {
  int group = 0;
  uint64_t started_ticks = 0;  // since the boot
  uint64_t pages = 0;          // resident
};

// nullopt: there is no such process.
std::optional<ProcessStat> process_stat(const std::string& pid);

}  // namespace muster
