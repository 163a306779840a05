// SelfUsage: what this process uses, for its metrics.
#pragma once

#include "base/clock.hpp"
#include "base/process/exposition.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

double own_resident_bytes();  // 0: not known
double own_cpu_seconds();     // of all its threads, in user and kernel mode
int64_t own_open_files();     // -1: not known

// Adds these. `who`: "the agent". `started_ms`: when it started, on the wall clock.
void tell_own_usage(Exposition& out, const std::string& who, Millis started_ms);
// Adds the size of the disk with `path` and its free space, unless they are not known, as
// PREFIX_disk_bytes and PREFIX_disk_free_bytes. `what`: "the work-dir".
void tell_disk(Exposition& out, const std::string& prefix, const std::string& path,
               const std::string& what);

}  // namespace muster
