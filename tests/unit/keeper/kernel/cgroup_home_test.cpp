#include "keeper/kernel/cgroup_home.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace muster::keeper {
namespace {

TEST(P18CgroupHome, FindsOurOwnCgroup) {
  const std::string unified = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
  const std::string hybrid =
      "30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
      "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  const std::string part = "30 24 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
  struct Row {
    std::string mounts, membership, own;
  };
  for (const Row& row : std::vector<Row>{
           {unified, "0::/system.slice/muster.service\n",
            "/sys/fs/cgroup/system.slice/muster.service"},
           {unified, "0::/\n", "/sys/fs/cgroup"},
           {hybrid, "4:memory:/user\n0::/user.slice\n", "/sys/fs/cgroup/unified/user.slice"},
           {hybrid, "4:memory:/user\n", ""},  // not in the unified hierarchy
           {part, "0::/docker/abc\n", ""},    // our path is outside this mount
           {"", "0::/\n", ""},
       }) {
    std::istringstream mounts(row.mounts), membership(row.membership);
    EXPECT_EQ(own_cgroup(mounts, membership), row.own) << row.mounts << row.membership;
  }
}

}  // namespace
}  // namespace muster::keeper
