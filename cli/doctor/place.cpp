#include "cli/doctor/place.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

namespace muster::cli::doctor {
namespace {

constexpr uint64_t kFilesMin = 100, kFewFiles = 1'000;  // inodes
constexpr uint64_t kNearlyFull = 20;                    // warn below this part of the disk
constexpr uint64_t kTmpMin = 64u << 20;

bool is_remote(std::string_view type) {
  for (const std::string_view one : {"nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs",
                                     "ceph", "9p", "fuse.sshfs", "glusterfs", "afs", "orangefs"})
    if (type == one) return true;
  return false;
}

bool is_memory(std::string_view type) {
  return type == "tmpfs" || type == "ramfs";
}

std::string octal(mode_t mode) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode));
  return text.data();
}

void judge_space(const PlaceFacts& facts, const PlaceUse& use, Findings& out) {
  const std::string check = use.check + " space";
  const std::string found =
      size_text(facts.free_bytes) + " of " + size_text(facts.bytes) + " free on " + facts.path;
  if (facts.free_bytes < use.reserve_bytes || facts.free_bytes == 0)
    out.problem(check, found, use.reserve_says + "; make room there");
  else if (facts.free_bytes < std::min(facts.bytes / kNearlyFull, use.reserve_bytes * 10))
    out.warn(check, found,
             "make room there before less than " + size_text(use.reserve_bytes) +
                 " is left: then " + use.reserve_says);
  else
    out.ok(check, found);
  if (facts.files < kFilesMin) return;
  const std::string inodes = std::to_string(facts.free_files) + " of " +
                             std::to_string(facts.files) + " inodes free on " + facts.path;
  const char* const advice = "remove files from that file system";
  if (facts.free_files < kFilesMin)
    out.problem(use.check + " inodes", inodes, advice);
  else if (facts.free_files < kFewFiles)
    out.warn(use.check + " inodes", inodes, advice);
  else
    out.ok(use.check + " inodes", inodes);
}

void judge_sync(const PlaceFacts& facts, const PlaceUse& use, Findings& out) {
  const std::string check = use.check + " sync";
  if (!facts.sync_us) {
    out.unknown(check, facts.no_sync, "run this as root or as the directory's owner");
    return;
  }
  const std::string found = "a synced write takes " + micros_text(*facts.sync_us);
  if (*facts.sync_us > kSlowSyncUs)
    out.warn(check, found, use.slow + "; use a faster local disk");
  else
    out.ok(check, found);
}

// Whether it can be judged at all.
bool judge_there(const PlaceFacts& facts, const PlaceUse& use, Findings& out) {
  if (!facts.not_seen.empty())
    out.unknown(use.check, facts.path + ": " + facts.not_seen, "run this as root");
  else if (!facts.there)
    out.problem(use.check, facts.path + " does not exist", use.missing);
  else if (!facts.directory)
    out.problem(use.check, facts.path + " is not a directory", "name a directory");
  else
    return true;
  return false;
}

}  // namespace

void judge_private_place(const PlaceFacts& facts, const PlaceUse& use, Findings& out) {
  if (facts.path.empty()) return;
  if (!judge_there(facts, use, out)) return;
  const std::string owner =
      facts.owner_name.empty() ? "uid " + std::to_string(facts.owner) : facts.owner_name;
  const std::string found =
      facts.path + ", of " + owner + ", mode " + octal(facts.mode) + ", on " + facts.type;
  if (facts.read_only)
    out.problem(use.check, found + ", mounted read-only", "mount it writable");
  else if (is_remote(facts.type))
    out.warn(use.check, found,
             "move it to a local disk: network file systems cannot be relied on for locks, syncs "
             "and inode numbers");
  else if ((facts.mode & 022) != 0)
    out.problem(use.check, found + ": others may write to it", "chmod go-w " + facts.path);
  else if (is_memory(facts.type))
    out.warn(use.check, found, "move it to a disk: " + use.keeps + " is gone after a reboot");
  else
    out.ok(use.check, found);
  judge_space(facts, use, out);
  judge_sync(facts, use, out);
}

void judge_tmp(const PlaceFacts& facts, Findings& out) {
  const std::string check = facts.path;
  if (!facts.not_seen.empty()) {
    out.unknown(check, facts.not_seen, "run this as root");
  } else if (!facts.there || !facts.directory) {
    out.problem(check, "there is no such directory", "mkdir -m 1777 " + facts.path).breaks_pods =
        true;
  } else if (facts.read_only) {
    out.problem(check, "mounted read-only", "mount it writable").breaks_pods = true;
  } else if ((facts.mode & 01777) != 01777) {
    out.problem(check, "its mode is " + octal(facts.mode) + ": not everybody's programs can use it",
                "chmod 1777 " + facts.path)
        .breaks_pods = true;
  } else if (facts.noexec) {
    out.warn(check, "mounted noexec: programs and scripts that pods put there do not start",
             "remount it without noexec, or give each pod a /tmp of its own (muster agent "
             "--private-tmp)")
        .breaks_pods = true;
  } else if (facts.free_bytes < kTmpMin && facts.bytes > 0) {
    out.warn(check, size_text(facts.free_bytes) + " of " + size_text(facts.bytes) + " free",
             "make room there: programs that write temporary files fail")
        .breaks_pods = true;
  } else {
    out.ok(check, "mode " + octal(facts.mode) + ", " + size_text(facts.free_bytes) + " free");
  }
}

}  // namespace muster::cli::doctor
