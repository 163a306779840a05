// Watermark: the highest synced commit number, in its own file beside the database.
//
//   file = slot slot                     commit N is in slot N % 2, so a torn write leaves the
//                                        previous number
//   slot = "commit " d20 " " h16 "\n"    d20: the number, 20 decimal digits
//                                        h16: FNV-1a 64 of what precedes it, in hex
//
// A database that silently lost the end of its log has fewer commits than this says. A noted number
// survives the death of the process at once, and power loss after at most about a second (a
// separate thread syncs the file, so no commit waits for it). An unreadable slot counts as absent,
// so a damaged file never blocks opening a sound journal. A number is noted only if the file still
// has its name: one that was deleted or replaced belongs to a directory that nobody will open
// again.
#pragma once

#include "base/result.hpp"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace muster::storage {

class Watermark {
 public:
  // The number in the file; nullopt: no file, or nothing readable in it.
  static std::optional<uint64_t> read(const std::string& path);

  // Opens the file, creating it if needed. `unavailable` with the system's reason. `each_second`:
  // called by the thread that syncs; may be null.
  static Result<std::unique_ptr<Watermark>> open(
      const std::string& path, std::function<void(const Watermark&)> each_second = nullptr);

  ~Watermark();
  Watermark(const Watermark&) = delete;
  Watermark& operator=(const Watermark&) = delete;

  // Called by the journal's one writer before commit() returns.
  Status note(uint64_t commit);
  // The error for a file of a journal that is no longer where it was.
  static Error gone(const std::string& path);
  // `unavailable`: the file was deleted or replaced. Any thread.
  Status there() const;

 private:
  Watermark(int fd, std::string path, std::function<void(const Watermark&)> each_second);
  void sync_loop();

  const int fd_;
  const std::string path_;
  const std::function<void(const Watermark&)> each_second_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool dirty_ = false;    // under mutex_: written, not synced
  bool closing_ = false;  // under mutex_
  std::thread syncer_;    // last: uses the members above
};

}  // namespace muster::storage
