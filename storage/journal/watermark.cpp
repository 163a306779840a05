#include "storage/journal/watermark.hpp"

#include "base/bytes.hpp"
#include "base/files/whole_write.hpp"
#include "base/log.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace muster::storage {
namespace {

constexpr size_t kSlotBytes = 45;  // "commit " + 20 + " " + 16 + "\n"
constexpr auto kSyncEvery = std::chrono::seconds(1);

std::string slot_text(uint64_t commit) {
  char head[32];
  snprintf(head, sizeof head, "commit %020llu", static_cast<unsigned long long>(commit));
  char slot[64];
  snprintf(slot, sizeof slot, "%s %016llx\n", head, static_cast<unsigned long long>(fnv1a(head)));
  return slot;
}

std::optional<uint64_t> parse_slot(std::string_view slot) {
  if (slot.size() != kSlotBytes || slot.substr(0, 7) != "commit ") return std::nullopt;
  uint64_t commit = 0;
  for (char c : slot.substr(7, 20)) {
    if (c < '0' || c > '9') return std::nullopt;
    commit = commit * 10 + static_cast<uint64_t>(c - '0');
  }
  if (slot_text(commit) != slot) return std::nullopt;
  return commit;
}

std::string reason(const std::string& path, const char* doing) {
  return std::string("can't ") + doing + " " + path + ": " + strerror(errno);
}

}  // namespace

std::optional<uint64_t> Watermark::read(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  char bytes[2 * kSlotBytes];
  ssize_t n = pread(fd, bytes, sizeof bytes, 0);
  close(fd);
  std::optional<uint64_t> highest;
  for (size_t at = 0; n > 0 && at + kSlotBytes <= static_cast<size_t>(n); at += kSlotBytes) {
    auto commit = parse_slot({bytes + at, kSlotBytes});
    if (commit) highest = std::max(highest.value_or(0), *commit);
  }
  return highest;
}

Result<std::unique_ptr<Watermark>> Watermark::open(
    const std::string& path, std::function<void(const Watermark&)> each_second) {
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return Error{Errc::unavailable, reason(path, "open")};
  return std::unique_ptr<Watermark>(new Watermark(fd, path, std::move(each_second)));
}

Watermark::Watermark(int fd, std::string path, std::function<void(const Watermark&)> each_second)
    : fd_(fd),
      path_(std::move(path)),
      each_second_(std::move(each_second)),
      syncer_([this] { sync_loop(); }) {}

Watermark::~Watermark() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  syncer_.join();
  close(fd_);
}

Error Watermark::gone(const std::string& path) {
  return {Errc::unavailable, path +
                                 " was deleted or replaced while it was in use, so nothing written "
                                 "there would be kept; `muster restore` makes a data-dir from a "
                                 "backup"};
}

Status Watermark::there() const {
  struct stat own = {};
  struct stat named = {};
  if (fstat(fd_, &own) == 0 && stat(path_.c_str(), &named) == 0 && own.st_dev == named.st_dev &&
      own.st_ino == named.st_ino)
    return Nothing{};
  return gone(path_);
}

Status Watermark::note(uint64_t commit) {
  if (Status s = there(); !s) return s;
  std::string slot = slot_text(commit);
  if (!write_whole_at(fd_, slot, static_cast<off_t>(commit % 2 * kSlotBytes)))
    return Error{Errc::unavailable, reason(path_, "write")};
  std::lock_guard lock(mutex_);
  if (!dirty_) {
    dirty_ = true;
    changed_.notify_one();
  }
  return Nothing{};
}

void Watermark::sync_loop() {
  std::unique_lock lock(mutex_);
  while (!closing_ || dirty_) {
    const auto due = [this] { return dirty_ || closing_; };
    if (each_second_)
      changed_.wait_for(lock, kSyncEvery, due);
    else
      changed_.wait(lock, due);
    const bool dirty = std::exchange(dirty_, false);
    lock.unlock();
    if (each_second_) each_second_(*this);
    if (dirty && fdatasync(fd_) != 0) log::warn("{}", reason(path_, "sync"));
    lock.lock();
    if (!dirty) continue;
    changed_.wait_for(lock, kSyncEvery, [this] { return closing_; });
  }
}

}  // namespace muster::storage
