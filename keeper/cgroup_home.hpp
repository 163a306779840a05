// CgroupHome: the cgroup below which a keeper makes those of its processes.
//
// The kernel gives controllers (memory, cpu) only to children of a cgroup that holds no processes
// itself ("no internal processes", Documentation/admin-guide/cgroup-v2.rst). So before a cgroup can
// be a home with limits, our own processes move into a leaf below it, HOME/muster-agent. That is
// for whoever the cgroup was given to: everything in a delegated one (systemd's Delegate=) is ours
// to move; in another one only the keeper and the agent that started it are.
//
// Always holds: a process that is not ours is never moved, and a limit set on the cgroup that we
// were started in is never escaped.
#pragma once

#include <istream>
#include <string>
#include <vector>

namespace muster::keeper {

struct CgroupHome {
  std::string path;
  bool delegated = false;  // all processes in it are ours
};

// Where cgroups of ours may be, the best first; none without cgroup v2. A delegated cgroup that we
// are in, else our own one; and the one above, where no systemd manages it and ours has no limits.
std::vector<CgroupHome> cgroup_homes();

// Turns on the controllers `memory` and `cpu` for the children of a home, as far as they can be
// had. Empty when at least one is on, else the reason.
std::string enable_controllers(const CgroupHome& home);

// For a mount table and a membership as in /proc/self/mountinfo and /proc/self/cgroup: the path of
// our own cgroup; empty where cgroup v2 is not mounted.
std::string own_cgroup(std::istream& mounts, std::istream& membership);

}  // namespace muster::keeper
