// UsableCpus: the CPUs that this process may run on.
#pragma once

#include <cstdint>
#include <vector>

namespace muster {

// The kernel's numbers of those that the calling thread may run on, ascending: in an allocation of
// Slurm or a container, these are fewer than the machine has. Empty: not known.
std::vector<uint32_t> usable_cpus();

// How many these are; 1 if that is not known.
uint32_t usable_cpu_count();

}  // namespace muster
