// A disk is short of space below the reserve, but never for more than a twentieth of it.
#include "agent/disk.hpp"

#include <gtest/gtest.h>

#include <sys/statvfs.h>

namespace muster::agent {
namespace {

TEST(Disk, P11EnoughSpaceOrUnknownDiskIsNoTrouble) {
  struct statvfs info = {};
  ASSERT_EQ(statvfs("/", &info), 0);
  const uint64_t size = uint64_t{info.f_blocks} * info.f_frsize;
  const uint64_t free = uint64_t{info.f_bavail} * info.f_frsize;
  EXPECT_FALSE(disk_trouble("/", 0));
  EXPECT_FALSE(disk_trouble("/no/such/path", 1)) << "it may be on a disk that comes back";
  if (free > size / kReservePart) {
    EXPECT_FALSE(disk_trouble("/", size)) << "a reserve larger than the disk";
  }
  const core::node::Trouble trouble = disk_trouble("/proc", 1);  // no blocks at all
  EXPECT_FALSE(trouble) << trouble.message;
}

}  // namespace
}  // namespace muster::agent
