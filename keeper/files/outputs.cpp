#include "keeper/files/outputs.hpp"

#include "keeper/kernel/proc.hpp"
#include "keeper/kernel/tell.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::keeper {
namespace {

constexpr size_t kFilesMax = 1024;  // in the pool
constexpr size_t kNameBytes = 512;  // of a record in `names`; longer paths are opened directly
constexpr int kOpenFlags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY;
constexpr mode_t kMode = 0600;
constexpr uint64_t kParentNs = 1'000'000'000;  // between two checks of a directory

std::string text(size_t number) {
  return std::to_string(number);
}

bool write_all(int fd, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t n = write(fd, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

// Whether a dead process left its file empty and unchanged, so that another can use it.
bool is_like_new(const struct stat& info) {
  static const uid_t ours = geteuid();
  return S_ISREG(info.st_mode) && info.st_size == 0 && info.st_blocks == 0 && info.st_nlink == 1 &&
         (info.st_mode & 07777) == kMode && info.st_uid == ours;
}

// Whether trying again later may help.
bool may_pass(int error) {
  return error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE || error == EIO;
}

}  // namespace

Outputs::Outputs(int dir_fd) {
  if (mkdirat(dir_fd, "outputs", 0700) < 0 && errno != EEXIST) return;
  dir_ = openat(dir_fd, "outputs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dir_ < 0) return;
  names_ = openat(dir_, "names", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kMode);
  if (names_ < 0) return;
  files_.resize(kFilesMax);
  recover();
  for (size_t file = kFilesMax; file-- > 0;)
    if (!files_[file].exists) spares_.push_back(file);
}

Outputs::~Outputs() {
  for (const File& file : files_)
    if (file.fd >= 0) ::close(file.fd);
  for (int fd : {names_, dir_})
    if (fd >= 0) ::close(fd);
}

// Gives the files of a dead keeper their names; removes the empty ones.
void Outputs::recover() {
  const int list_fd = openat(dir_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* list = list_fd < 0 ? nullptr : fdopendir(list_fd);
  if (list == nullptr) return;
  std::vector<size_t> found;
  while (const dirent* entry = readdir(list)) {
    const std::string name = entry->d_name;
    const size_t number = std::strtoull(name.c_str(), nullptr, 10);
    if (name == text(number) && number < kFilesMax) found.push_back(number);
  }
  closedir(list);
  for (size_t file : found) {
    files_[file].exists = true;
    struct stat info {};
    char path[kNameBytes] = {};
    const bool written =
        fstatat(dir_, text(file).c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_size > 0 &&
        pread(names_, path, sizeof path - 1, static_cast<off_t>(file * kNameBytes)) > 0 &&
        path[0] == '/';
    if (written && !move_to(file, path) && may_pass(errno))
      unnamed_.emplace_back(file, path);
    else
      discard(file);
  }
}

// Whether a file may get this path later: a path that can't be opened must fail now.
bool Outputs::can_be_named(const std::string& path) {
  if (path.size() >= kNameBytes || path[0] != '/') return false;
  const auto parent = std::string_view(path).substr(0, path.rfind('/') + 1);
  const uint64_t now = boot_ns();
  if (parent == parent_ && now < parent_seen_ns_ + kParentNs) return true;
  parent_ = parent;
  if (access(parent_.c_str(), W_OK | X_OK) < 0) {
    parent_.clear();
    return false;
  }
  parent_seen_ns_ = now;
  return true;
}

// A file for a process, if there is one; close() gives it back.
std::optional<size_t> Outputs::take() {
  if (spares_.empty()) return std::nullopt;
  const size_t file = spares_.back();
  spares_.pop_back();
  return file;
}

// Opens the file and records whose it is.
bool Outputs::hand_out(size_t file, const std::string& path) {
  File& f = files_[file];
  if (f.fd < 0) f.fd = openat(dir_, text(file).c_str(), kOpenFlags, kMode);
  if (f.fd < 0) return false;
  f.exists = true;
  fcntl(f.fd, F_SETFL, O_APPEND);  // its last process may have changed the flags
  return pwrite(names_, path.c_str(), path.size() + 1, static_cast<off_t>(file * kNameBytes)) ==
         static_cast<ssize_t>(path.size() + 1);
}

Outputs::Opened Outputs::open(const std::string& path, bool fresh) {
  {
    std::lock_guard lock(mutex_);
    opened_ = true;
    Use& use = uses_[path];
    if (++use.processes == 1 && fresh && can_be_named(path)) use.file = take();
    if (use.file && use.processes == 1 && !hand_out(*use.file, path)) {
      put_back(*use.file);
      use.file.reset();
    }
    if (use.file) return {files_[*use.file].fd, true};
  }
  const int fd = ::open(path.c_str(), kOpenFlags, kMode);
  if (fd < 0) {
    const int error = errno;
    close(path);
    errno = error;
  }
  return {fd, false};
}

void Outputs::name(const std::string& path) {
  std::lock_guard lock(mutex_);
  auto use = uses_.find(path);
  if (use == uses_.end() || !use->second.file) return;
  const size_t file = *use->second.file;
  if (!rename_to(file, path)) return;  // close() will copy it
  put_back(file);
  use->second.file.reset();
}

void Outputs::reuse(std::vector<std::string>& paths) {
  std::lock_guard lock(mutex_);
  std::erase_if(paths, [this](const std::string& path) {
    const auto use = uses_.find(path);
    if (use == uses_.end() || use->second.processes > 1) return false;
    const std::optional<size_t> file = use->second.file;
    struct stat info {};
    if (!file || fstat(files_[*file].fd, &info) != 0 || !is_like_new(info)) return false;
    uses_.erase(use);
    spares_.push_back(*file);
    return true;
  });
}

void Outputs::close(const std::string& path) {
  std::lock_guard lock(mutex_);
  auto use = uses_.find(path);
  if (use == uses_.end() || --use->second.processes > 0) return;
  const std::optional<size_t> file = use->second.file;
  uses_.erase(use);
  if (!file) return recycle(path);
  struct stat info {};
  const bool known = fstat(files_[*file].fd, &info) == 0;
  if (known && is_like_new(info)) return spares_.push_back(*file);
  if (known && info.st_size > 0 && !move_to(*file, path)) {
    const int error = errno;
    tell("output of %s: %s%s", path.c_str(), std::strerror(error),
         may_pass(error) ? "; trying again" : "");
    if (may_pass(error)) {
      unnamed_.emplace_back(*file, path);
      return;
    }
  }
  put_back(*file);
}

bool Outputs::rename_to(size_t file, const std::string& path) {
  const std::string from = text(file);
  if (renameat2(dir_, from.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) {
    files_[file].exists = false;
    return true;
  }
  if (errno != EINVAL) return false;
  // The file system can't rename without replacing.
  if (linkat(dir_, from.c_str(), AT_FDCWD, path.c_str(), 0) < 0) return false;
  unlinkat(dir_, from.c_str(), 0);
  files_[file].exists = false;
  return true;
}

bool Outputs::move_to(size_t file, const std::string& path) {
  return rename_to(file, path) || copy_to(file, path);
}

// For a path that exists, or is on another file system.
bool Outputs::copy_to(size_t file, const std::string& path) {
  const int in = openat(dir_, text(file).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  const int out = in < 0 ? -1 : ::open(path.c_str(), kOpenFlags, kMode);
  struct stat before {};
  bool done = out >= 0 && fstat(out, &before) == 0;
  std::array<char, 65536> bytes;
  while (done) {
    const ssize_t n = read(in, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) break;
    done = n > 0 && write_all(out, bytes.data(), static_cast<size_t>(n));
  }
  const int error = errno;
  // Leave nothing rather than a part: the copy is tried again.
  if (!done && out >= 0 && ftruncate(out, before.st_size) < 0) tell_errno("output");
  for (int fd : {in, out})
    if (fd >= 0) ::close(fd);
  errno = error;
  return done;
}

// The file is no longer in use, but can't be reused as it is.
void Outputs::put_back(size_t file) {
  discard(file);
  spares_.insert(spares_.begin(), file);
}

void Outputs::discard(size_t file) {
  File& f = files_[file];
  if (f.fd >= 0) ::close(std::exchange(f.fd, -1));
  if (std::exchange(f.exists, false)) unlinkat(dir_, text(file).c_str(), 0);
}

// The file has its name; if it is empty, the pool takes it back.
void Outputs::recycle(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size != 0) return;
  auto spare = std::find_if(spares_.rbegin(), spares_.rend(),
                            [this](size_t file) { return !files_[file].exists; });
  if (spare == spares_.rend() || !is_like_new(info) ||
      renameat(AT_FDCWD, path.c_str(), dir_, text(*spare).c_str()) < 0) {
    unlink(path.c_str());
    return;
  }
  files_[*spare].exists = true;
}

void Outputs::trim() {
  std::lock_guard lock(mutex_);
  std::erase_if(unnamed_, [this](const Path& one) {
    if (!move_to(one.first, one.second) && may_pass(errno)) return false;
    put_back(one.first);
    return true;
  });
  if (!opened_) remove_spares_locked();
  opened_ = false;
}

void Outputs::remove_spares() {
  std::lock_guard lock(mutex_);
  remove_spares_locked();
}

void Outputs::remove_spares_locked() {
  for (size_t file : spares_) discard(file);
}

}  // namespace muster::keeper
