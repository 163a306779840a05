// Memory: how much memory the node has left, and how much each process group uses.
//
// Read from /proc on each call. A pod's processes are in the groups led by its containers' first
// processes; a process that has left them (a daemon in its own session) is not counted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace muster::agent {

// MemAvailable, in bytes, from a text in the format of /proc/meminfo; nullopt if it is missing.
std::optional<uint64_t> available_memory(const std::string& meminfo);
std::optional<uint64_t> available_memory();

// Resident bytes of all processes, by process group.
std::map<int, uint64_t> memory_by_group();

}  // namespace muster::agent
