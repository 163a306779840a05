// Cpus: the CPUs of this machine that processes have for themselves.
//
// Only the keeper gives them out, and it outlives no process: what a dead keeper's processes had is
// free once the next keeper has killed them, before it starts anything. So nothing needs to be
// stored, and an agent may come and go.
//
// Invariants: no CPU belongs to two processes; only CPUs that the keeper itself may run on are
// given out. Thread-safe.
#pragma once

#include "core/node/cpus.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::keeper {

class Cpus {
 public:
  // For the process with this entry in the spool, until give_back(). Empty: not that many are
  // free, or `count` is 0.
  core::node::CpuList take(uint64_t entry, uint32_t count);
  // Ignored if it has none.
  void give_back(uint64_t entry);

 private:
  std::mutex mutex_;                                   // guards what follows
  std::optional<std::vector<core::node::Cpu>> all_{};  // own_cpus(), once they are needed
  std::set<uint32_t> taken_;
  std::map<uint64_t, core::node::CpuList> by_entry_;
};

// Those that the calling thread may run on, with what is known of their places. `system`: where
// sysfs has cpu/ and node/.
std::vector<core::node::Cpu> own_cpus(const std::string& system = "/sys/devices/system");

// As sched_setaffinity() takes it; made before a child is, which may only make system calls.
class CpuMask {
 public:
  CpuMask() = default;
  explicit CpuMask(const core::node::CpuList& cpus);
  // In the child: binds the calling thread; does nothing if there are no CPUs. False, with errno:
  // it may not run on any of them.
  bool bind() const;

 private:
  std::vector<unsigned long> words_;
};

}  // namespace muster::keeper
