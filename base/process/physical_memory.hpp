// PhysicalMemory: how much memory this machine has.
#pragma once

#include <cstdint>
#include <unistd.h>

namespace muster {

inline uint64_t physical_memory_bytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace muster
