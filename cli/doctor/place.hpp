// Place: a directory that muster or its pods write to, and the disk below it.
#pragma once

#include "cli/doctor/finding.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>

namespace muster::cli::doctor {

struct PlaceFacts {
  std::string path;  // empty: not configured
  bool there = false;
  std::string not_seen{};  // why it could not be looked at; empty: it could
  bool directory = true;
  uid_t owner = 0;
  std::string owner_name{};  // empty: no such user
  mode_t mode = 0700;        // permissions, with the sticky bit
  std::string type{};        // of its file system, as the mount table has it: "ext4"
  bool read_only = false, noexec = false, nosuid = false;
  uint64_t bytes = 0, free_bytes = 0;  // free: for users other than root
  uint64_t files = 0, free_files = 0;  // inodes; 0 files: not counted
  std::optional<uint64_t> sync_us{};   // median time of a small write with fsync
  std::string no_sync{};               // why that was not measured
};

// What is asked of a data-dir or a work-dir.
struct PlaceUse {
  std::string check;         // "data-dir"
  std::string keeps;         // what is lost if it is on a memory disk
  std::string missing;       // what to do if it is not there
  std::string slow;          // what a slow sync costs; follows its time
  uint64_t reserve_bytes;    // with less free space, it does not work any more
  std::string reserve_says;  // what happens then
};

constexpr uint64_t kSlowSyncUs = 50'000;

// A directory that only its owner may enter.
void judge_private_place(const PlaceFacts& facts, const PlaceUse& use, Findings& out);
// /tmp
void judge_tmp(const PlaceFacts& facts, Findings& out);

}  // namespace muster::cli::doctor
