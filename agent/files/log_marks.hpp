// LogMarks: when an output had grown how far, which gives each of its lines a time.
//
// Processes write to their outputs themselves, so nobody sees a line come. The agent looks at the
// size of each output that is being written several times a second (log_times.hpp), and where it
// has grown, appends a mark to a file next to it:
//
//   DIR/<job uid>/<pod name>.<container>.stdout-times   (.stderr-times)
//   file := mark*
//   mark := offset:u64 at_ms:u48 run:u16                little-endian, `run` in the highest bits
//
// The bytes before `offset` were written by `at_ms`, the time of the last write before the look. A
// line has the time of the first mark at or beyond its end; one beyond all marks has the time at
// which the file was last modified. `run` is the number of the container's process: the outputs of
// processes restarted in place follow each other in one file, and a mark with the offset at which a
// process begins is written before it starts.
//
// Invariants: offsets, times and runs never decrease. A file may end with a part of a mark, which
// is no mark.
#pragma once

#include "base/clock.hpp"

#include <kj/io.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace muster::agent {

struct LogMark {
  uint64_t offset = 0;
  Millis at = 0;
  uint16_t run = 0;
  bool operator==(const LogMark&) const = default;
};

std::string mark_bytes(const std::vector<LogMark>& marks);

class LogMarks {
 public:
  static constexpr size_t kBytes = 16;  // of a mark
  // No file is the same as an empty one.
  explicit LogMarks(const std::string& path);
  size_t size() const { return size_; }
  LogMark at(size_t index) const;
  // The first mark for which this holds, size() if none; it holds for all that follow.
  size_t first(const std::function<bool(const LogMark&)>& holds) const;
  size_t first_reaching(uint64_t offset) const;
  std::optional<LogMark> last() const;

 private:
  static constexpr size_t kBlock = 256;  // marks read at once
  kj::AutoCloseFd fd_;
  size_t size_ = 0;
  mutable size_t block_at_ = 0, block_size_ = 0;  // the marks in block_
  mutable std::array<char, kBytes * kBlock> block_{};
};

// The part of an output that one process wrote, or all.
struct LogSpan {
  uint64_t begin = 0;
  std::optional<uint64_t> end{};  // absent: more may follow
};
constexpr int32_t kAllRuns = -1;
LogSpan span_of(const LogMarks& marks, int32_t run);

// An output, to search for lines. fd -1: there is none.
struct LogSource {
  int fd = -1;
  uint64_t begin = 0, end = 0;  // where to search
  Millis modified_ms = 0;
  const LogMarks* marks = nullptr;
};
// Where the first line begins that is not older than `since`.
uint64_t begin_since(const LogSource& source, Millis since);
// Moves the beginnings to where the last `lines` lines of both together begin, by their times.
void begin_last(std::array<LogSource, 2>& sources, uint64_t lines);

}  // namespace muster::agent
