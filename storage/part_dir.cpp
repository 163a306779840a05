#include "storage/part_dir.hpp"

#include "base/files/owned_path.hpp"
#include "base/files/private_files.hpp"
#include "base/log.hpp"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace muster::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".part";
constexpr const char* kLock = "/being-made";  // of its maker; the directory's own is the journal's
constexpr const char* kBegun = "backups-begun";  // in the data-dir: a path on each line

std::mutex begun_mutex;  // of the file

Error part_error(const std::string& what) {
  return {Errc::unavailable, what + ": " + std::strerror(errno)};
}

Status sync_path(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return part_error("can't open " + path);
  if (fsync(fd.get()) != 0) return part_error("can't sync " + path);
  return Nothing{};
}

bool within(const std::string& path, const std::string& dir) {
  return (path + "/").starts_with(dir.ends_with('/') ? dir : dir + "/");
}

// Whether others may make and rename entries of this directory, ours included.
bool open_to_others(const struct stat& dir) {
  if (dir.st_uid != 0 && dir.st_uid != geteuid()) return true;
  return (dir.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (dir.st_mode & S_ISVTX) == 0;
}

// Removes the directory unless somebody is making it: then its maker holds the lock.
bool remove_abandoned(const std::string& part) {
  const Fd fd(open(part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info = {};
  if (!fd || fstat(fd.get(), &info) != 0 || info.st_uid != geteuid())
    return true;  // nothing of ours
  const Fd lock(openat(fd.get(), kLock + 1, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (lock && flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return false;
  std::error_code ignored;
  fs::remove_all(part, ignored);
  return true;
}

// Rewrites the list of what was begun: removes what is abandoned, `done`, and adds `begun`.
void note_begun(const std::string& data_dir, const std::string& begun, const std::string& done) {
  if (data_dir.empty()) return;
  const std::lock_guard lock(begun_mutex);
  const auto dir = open_private_dir(data_dir, "data-dir");
  if (!dir) return log::warn("{}", dir.error().message);
  const auto found = read_private_file(dir->get(), kBegun);
  std::istringstream lines(found.value_or(""));
  std::string kept, line;
  while (std::getline(lines, line))
    if (line != done && line != begun && line.ends_with(kSuffix) &&
        backup_place(line, data_dir).ok() && !remove_abandoned(line))
      kept += line + "\n";
  if (!begun.empty() && begun.find('\n') == std::string::npos) kept += begun + "\n";
  if (kept.empty()) {
    unlinkat(dir->get(), kBegun, 0);
  } else if (kept != found) {
    if (Status written = replace_private_file(dir->get(), kBegun, kept); !written)
      log::warn("{}; a killed backup would leave {}", written.error().message, begun);
  }
}

}  // namespace

std::optional<std::string> resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), free);
  return real ? std::optional<std::string>(real.get()) : std::nullopt;
}

Result<std::string> backup_place(const std::string& dir, const std::string& data_dir) {
  std::error_code error;
  fs::path wanted = fs::absolute(dir, error).lexically_normal();
  if (error) return part_error("can't find " + dir);
  if (!wanted.has_filename()) wanted = wanted.parent_path();
  const auto parent = resolved(wanted.parent_path());
  if (!parent) return part_error("can't use " + wanted.parent_path().string());
  const std::string place = (*parent == "/" ? "" : *parent) + "/" + wanted.filename().string();
  if (const auto data = resolved(data_dir); data && within(place, *data))
    return invalid(place + " is in the data-dir " + *data +
                   ", with which it would be lost: choose another directory");
  struct stat info = {};
  if (stat(parent->c_str(), &info) != 0) return part_error("can't use " + *parent);
  if (!only_by(geteuid(), *parent) || open_to_others(info))
    return invalid(
        place +
        ": another user may replace a directory on the way to it, and a backup holds the cluster's "
        "keys. Choose one whose parents belong to root or the coordinator's user and are writable "
        "by nobody else");
  return place;
}

PartDir::PartDir(const std::string& dir, const std::string& data_dir, Fd lock)
    : dir_(dir), path_(dir + std::string(kSuffix)), data_dir_(data_dir), lock_(std::move(lock)) {}

PartDir::PartDir(PartDir&& other) noexcept
    : dir_(std::exchange(other.dir_, "")),
      path_(std::exchange(other.path_, "")),
      data_dir_(std::exchange(other.data_dir_, "")),
      lock_(std::move(other.lock_)) {}

PartDir::~PartDir() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  note_begun(data_dir_, "", path_);
}

Result<PartDir> PartDir::make(const std::string& dir, const std::string& data_dir) {
  const std::string path = dir + std::string(kSuffix);
  struct stat info = {};
  if (lstat(dir.c_str(), &info) == 0)
    return Error{Errc::conflict, dir + " already exists: choose a new directory"};
  if (!remove_abandoned(path))
    return Error{Errc::conflict, path + " is being made by another process"};
  note_begun(data_dir, path, "");
  if (mkdir(path.c_str(), 0700) != 0) return part_error("can't make " + path);
  Fd lock(open((path + kLock).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!lock || flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return part_error("can't lock " + path);
  return PartDir(dir, data_dir, std::move(lock));
}

Status PartDir::finish() {
  unlink((path_ + kLock).c_str());
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(path_, error)) {
    const mode_t mode = entry.is_directory() ? 0700 : 0600;
    if (chmod(entry.path().c_str(), mode) != 0)
      return part_error("cannot make " + entry.path().string() + " private");
    if (Status synced = sync_path(entry.path()); !synced.ok()) return synced;
  }
  if (error) return Error{Errc::unavailable, "can't list " + path_ + ": " + error.message()};
  if (Status synced = sync_path(path_); !synced.ok()) return synced;
  if (rename(path_.c_str(), dir_.c_str()) != 0) return part_error("can't rename it to " + dir_);
  note_begun(data_dir_, "", std::exchange(path_, ""));
  const std::string parent = fs::path(dir_).parent_path();
  return sync_path(parent.empty() ? "." : parent);
}

void remove_interrupted_backups(const std::string& data_dir) {
  note_begun(data_dir, "", "");
}

}  // namespace muster::storage
