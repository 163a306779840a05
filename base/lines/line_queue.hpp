// LineQueue: lines for a descriptor that may block, such as stderr, written by a thread of its own.
//
// write() never waits for the reader: a full pipe, a terminal stopped with Ctrl-S or a file on a
// disk that hangs only blocks the queue's thread. If the waiting lines exceed the limits, the
// oldest are dropped; in their place, and before the next line, stands one that says how many.
// Lines stay in order, each in one write(2) as long as the kernel takes it whole.
//
// This is not spdlog's async logger, because its queue bounds the number of lines but not their
// bytes, its thread pool waits at the end for the reader for however long that takes, it cannot be
// drained from a signal handler, and the keeper does not link spdlog.
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace muster {

class LineQueue {
 public:
  // The line, newline included, that stands in the place of this many dropped ones. Called by the
  // queue's thread.
  using Notice = std::function<std::string(uint64_t dropped)>;
  struct Limits {
    size_t lines = 8'192, bytes = 1u << 20;
  };
  static constexpr Millis kDrainMax = 1'000;

  // Throws std::system_error if there can be no further thread.
  LineQueue(Fd fd, Notice notice, Limits limits);
  LineQueue(Fd fd, Notice notice) : LineQueue(std::move(fd), std::move(notice), Limits{}) {}
  // Drains. What has not been written by then is written if the reader returns before the process
  // ends.
  ~LineQueue();
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;

  // `line`: with its newline.
  void write(std::string line);
  // Waits until all lines are written, but at most kDrainMax. Async-signal-safe.
  void drain() const noexcept;
  // How many lines were dropped, or could not be written.
  uint64_t dropped() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // with the thread, which may be blocked for longer than we live
};

// Writes all of it, however long that takes; false: only a part of it, or nothing.
bool write_line(int fd, std::string_view line);

}  // namespace muster
