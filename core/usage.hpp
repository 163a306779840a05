// Usage: what processes have used, as the kernel counted it (getrusage(2), cgroup v2).
#pragma once

#include <algorithm>
#include <cstdint>

namespace muster::core {

struct Usage {
  uint64_t user_us = 0;     // CPU time in user mode
  uint64_t system_us = 0;   // CPU time in the kernel
  uint64_t peak_bytes = 0;  // largest memory; 0: not known

  bool operator==(const Usage&) const = default;
  bool known() const { return *this != Usage{}; }
  uint64_t cpu_us() const { return user_us + system_us; }
  // Adds what others have used: CPU times add up, of peaks the largest counts.
  void add(const Usage& other) {
    user_us += other.user_us;
    system_us += other.system_us;
    peak_bytes = std::max(peak_bytes, other.peak_bytes);
  }
  // The later of two states of one count.
  Usage later(const Usage& other) const {
    return {std::max(user_us, other.user_us), std::max(system_us, other.system_us),
            std::max(peak_bytes, other.peak_bytes)};
  }
};

}  // namespace muster::core
