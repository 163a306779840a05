#include "coordinator/threads/descriptors.hpp"

#include <algorithm>
#include <sys/resource.h>

namespace muster::coordinator {

namespace {

constexpr size_t kReserve = 384;         // RocksDB keeps up to 256 files open
constexpr size_t kApiMax = 4096;         // connections; watches are the costly ones
constexpr size_t kManyFiles = 1u << 20;  // if there is no limit

}  // namespace

Descriptors Descriptors::of(size_t limit) {
  const size_t rest = limit - std::min(kReserve, limit / 2);
  const size_t api = std::min(kApiMax, rest / 2);
  return {api, rest - api};
}

Descriptors Descriptors::of_process() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return of(kManyFiles);
  return of(limit.rlim_cur);
}

}  // namespace muster::coordinator
