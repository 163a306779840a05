#include "keeper/outputs.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::keeper {
namespace {

constexpr size_t kSparesMax = 1024;

}  // namespace

// Call it with the lock held, so that no other thread tries a spare that is already renamed.
bool Outputs::take_spare_for(const std::string& path) {
  while (!spares_.empty()) {
    auto spare = spares_.begin();
    if (renameat2(AT_FDCWD, spare->c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) {
      spares_.erase(spare);
      return true;
    }
    if (errno != ENOENT) return false;  // `path` exists, or this rename is not possible
    if (access(spare->c_str(), F_OK) == 0) return false;  // the directory of `path` is missing
    spares_.erase(spare);                                 // the spare was removed
  }
  return false;
}

int Outputs::open(const std::string& path) {
  {
    std::lock_guard lock(mutex_);
    opened_ = true;
    ++users_[path];
    if (spares_.erase(path) == 0) take_spare_for(path);
  }
  int fd =
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
  if (fd < 0) {
    int error = errno;
    close(path);
    errno = error;
  }
  return fd;
}

void Outputs::close(const std::string& path) {
  std::lock_guard lock(mutex_);
  auto users = users_.find(path);
  if (users == users_.end() || --users->second > 0) return;
  users_.erase(users);
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size != 0) return;
  if (spares_.size() < kSparesMax) {
    spares_.insert(path);
  } else {
    unlink(path.c_str());
  }
}

void Outputs::trim() {
  std::lock_guard lock(mutex_);
  if (!opened_) remove_spares_locked();
  opened_ = false;
}

void Outputs::remove_spares() {
  std::lock_guard lock(mutex_);
  remove_spares_locked();
}

void Outputs::remove_spares_locked() {
  for (const std::string& path : spares_) unlink(path.c_str());
  spares_.clear();
}

}  // namespace muster::keeper
