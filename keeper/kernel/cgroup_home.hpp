// CgroupHome: the cgroup below which a keeper creates the cgroups of its processes.
//
// The kernel gives controllers (memory, cpu) only to children of a cgroup that holds no processes
// itself ("no internal processes", Documentation/admin-guide/cgroup-v2.rst). So before a cgroup can
// be a home with limits, our own processes move into a leaf below it, HOME/muster-agent. Which are
// ours depends on who owns the cgroup: in a delegated one (systemd's Delegate=) all of them, in any
// other only the keeper and the agent that started it.
//
// Invariants: a process that is not ours is never moved, and a limit set on the cgroup that we were
// started in is never escaped.
#pragma once

#include <istream>
#include <string>
#include <vector>

namespace muster::keeper {

struct CgroupHome {
  std::string path;
  bool delegated = false;  // all processes in it are ours
};

// The candidates, best first; none without cgroup v2. Either the delegated cgroup that we are in,
// or our own, followed by its parent if systemd is not running and ours has no limits.
std::vector<CgroupHome> cgroup_homes();

// Turns on the controllers `memory` and `cpu` for the children of a home, as far as available.
// Empty if at least one is on, else the reason.
std::string enable_controllers(const CgroupHome& home);

// The path of our own cgroup, from a mount table and a membership in the format of
// /proc/self/mountinfo and /proc/self/cgroup; empty if cgroup v2 is not mounted.
std::string own_cgroup(std::istream& mounts, std::istream& membership);

}  // namespace muster::keeper
