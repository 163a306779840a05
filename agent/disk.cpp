#include "agent/disk.hpp"

#include <algorithm>
#include <sys/statvfs.h>

namespace muster::agent {

core::node::Trouble disk_trouble(const std::string& path, uint64_t reserve_bytes) {
  struct statvfs info = {};
  if (reserve_bytes == 0 || statvfs(path.c_str(), &info) != 0) return {};
  const uint64_t size = uint64_t{info.f_blocks} * info.f_frsize;
  const uint64_t reserve = std::min(reserve_bytes, size / kReservePart);
  const std::string until = " is free on the file system of " + path +
                            " (--disk-reserve): no pods start until there is more";
  if (uint64_t{info.f_bavail} * info.f_frsize < reserve)
    return {"DiskPressure",
            "less than " + std::to_string((reserve + (1u << 20) - 1) >> 20) + " MiB" + until};
  if (info.f_files > kReserveFiles && info.f_favail < kReserveFiles)
    return {"DiskPressure", "hardly any inode" + until};
  return {};
}

}  // namespace muster::agent
