// SelfUsage: what this process uses, for its metrics.
#pragma once

#include <cstdint>

namespace muster {

double own_resident_bytes();  // 0: not known
double own_cpu_seconds();     // of all its threads, in user and kernel mode
int64_t own_open_files();     // -1: not known

}  // namespace muster
