#include "keeper/files/tree_size.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace muster::keeper {
namespace {

constexpr uint64_t kBlock = 512;            // st_blocks counts these
constexpr size_t kEntriesMax = 10'000'000;  // visited in one tree
constexpr size_t kWaitingMax = 1'000'000;   // names kept

}  // namespace

TreeSize::TreeSize(Fd root) {
  if (root) enter(std::move(root));
}

// Makes it the current directory.
bool TreeSize::enter(Fd dir) {
  struct stat info {};
  if (fstat(dir.get(), &info) != 0) return false;
  DIR* const list = fdopendir(dir.get());
  if (list == nullptr) return false;
  dir.release();
  reading_.reset(list);
  listed_ = false;
  path_.push_back({info.st_dev, info.st_ino, {}});
  return true;
}

// Back to the parent.
bool TreeSize::leave() {
  path_.pop_back();
  if (path_.empty()) return false;
  Fd up(openat(dirfd(reading_.get()), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info {};
  const Level& level = path_.back();
  if (!up || fstat(up.get(), &info) != 0 || info.st_dev != level.device ||
      info.st_ino != level.inode)
    return false;  // it was moved
  DIR* const list = fdopendir(up.get());
  if (list == nullptr) return false;
  up.release();
  reading_.reset(list);
  listed_ = true;
  return true;
}

// Enters the next directory that has not been visited. False: there is none.
bool TreeSize::next_dir() {
  while (!path_.back().left.empty()) {
    const std::string name = std::move(path_.back().left.back());
    path_.back().left.pop_back();
    --waiting_;
    Fd dir(openat(dirfd(reading_.get()), name.c_str(),
                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!dir || fstat(dir.get(), &info) != 0 || info.st_dev != path_.front().device) continue;
    if (enter(std::move(dir))) return true;
  }
  return false;
}

bool TreeSize::step(size_t entries) {
  for (size_t visited = 0; visited < entries; ++visited) {
    if (path_.empty() || entries_ >= kEntriesMax) return true;
    if (listed_) {
      if (!next_dir() && !leave()) {
        path_.clear();
        return true;
      }
      continue;
    }
    const dirent* const entry = readdir(reading_.get());
    if (entry == nullptr) {
      listed_ = true;
      continue;
    }
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    ++entries_;
    struct stat info {};
    if (fstatat(dirfd(reading_.get()), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    bytes_ += static_cast<uint64_t>(info.st_blocks) * kBlock;
    if (!S_ISDIR(info.st_mode) || waiting_ >= kWaitingMax) continue;
    path_.back().left.push_back(name);
    ++waiting_;
  }
  return path_.empty();
}

}  // namespace muster::keeper
