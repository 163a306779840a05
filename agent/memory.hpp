// Memory: how much of the node's is left, and what process groups use.
//
// Read from /proc when asked. A pod's processes are in the groups that its containers' first
// processes lead; what left them (a daemon of its own session) is not found here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace muster::agent {

// MemAvailable of a text like /proc/meminfo, in bytes; nothing: it is not there.
std::optional<uint64_t> available_memory(const std::string& meminfo);
std::optional<uint64_t> available_memory();

// Resident bytes by process group, of all processes.
std::map<int, uint64_t> memory_by_group();

}  // namespace muster::agent
