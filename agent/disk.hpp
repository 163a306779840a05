// Disk: whether the node has the space that pods need to start: for their outputs and the records
// of their ends.
#pragma once

#include "core/node/pulse.hpp"

#include <cstdint>
#include <string>

namespace muster::agent {

// A small disk, or a large reserve: never keep more than this part of the disk free.
constexpr uint64_t kReservePart = 20;
constexpr uint64_t kReserveFiles = 100;  // inodes, if the file system counts them

// DiskPressure if the file system of this path has less free space for us than `reserve_bytes`, or
// than its kReservePart-th part if that is less, or hardly any inodes. 0 bytes: no reserve.
core::node::Trouble disk_trouble(const std::string& path, uint64_t reserve_bytes);

}  // namespace muster::agent
