#include "agent/files/log_marks.hpp"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::agent {
namespace {

constexpr uint64_t kTimeBits = (uint64_t{1} << 48) - 1;

// The search for a line is on the agent's loop, so it must come to an end soon: a longer line
// counts as several, and if the last lines are further back, all of the output is given.
constexpr uint64_t kLineMax = 1 << 20, kSearchMax = 256 << 20;  // bytes

// Finds the beginnings of an output's lines, from the last one to the first, with their times.
class LinesBack {
 public:
  explicit LinesBack(const LogSource& source)
      : source_(source), end_(source.end), mark_(source.marks->first_reaching(source.end)) {
    step();
  }
  bool any() const { return any_; }
  uint64_t begin() const { return begin_; }
  Millis at() const { return at_; }
  // To the line before this one.
  void next() {
    end_ = begin_;
    step();
  }

 private:
  void step() {
    any_ = source_.fd >= 0 && end_ > source_.begin;
    if (!any_) return;
    begin_ = end_ - 1;  // its last byte, which may be its end of line
    while (begin_ > source_.begin && end_ - begin_ < kLineMax && byte(begin_ - 1) != '\n') --begin_;
    const LogMarks& marks = *source_.marks;
    while (mark_ > 0 && marks.at(mark_ - 1).offset >= end_) --mark_;
    at_ = mark_ < marks.size() ? marks.at(mark_).at : source_.modified_ms;
  }

  char byte(uint64_t at) {
    if (at < block_at_ || at >= block_at_ + block_.size()) {
      block_at_ = std::max(source_.begin, at + 1 - std::min<uint64_t>(at + 1, kBlock));
      block_.resize(at + 1 - block_at_);
      const ssize_t n =
          pread(source_.fd, block_.data(), block_.size(), static_cast<off_t>(block_at_));
      // It has shrunk: what is missing counts as ends of lines, which ends the search soon.
      const size_t got = n > 0 ? static_cast<size_t>(n) : 0;
      std::fill(block_.begin() + static_cast<ptrdiff_t>(got), block_.end(), '\n');
    }
    return block_[at - block_at_];
  }

  static constexpr uint64_t kBlock = 64 << 10;
  const LogSource source_;
  uint64_t begin_ = 0, end_;
  size_t mark_;  // the first one that reaches end_
  Millis at_ = 0;
  bool any_ = false;
  uint64_t block_at_ = 0;
  std::string block_;
};

}  // namespace

std::string mark_bytes(const std::vector<LogMark>& marks) {
  std::string bytes;
  for (const LogMark& mark : marks) {
    const uint64_t second =
        (static_cast<uint64_t>(mark.at) & kTimeBits) | (static_cast<uint64_t>(mark.run) << 48);
    for (const uint64_t number : {mark.offset, second})
      for (int shift = 0; shift < 64; shift += 8)
        bytes.push_back(static_cast<char>(number >> shift & 0xff));
  }
  return bytes;
}

LogMarks::LogMarks(const std::string& path)
    : fd_(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) {
  struct stat info {};
  if (fd_.get() >= 0 && fstat(fd_.get(), &info) == 0)
    size_ = static_cast<size_t>(info.st_size) / kBytes;
}

LogMark LogMarks::at(size_t index) const {
  if (index < block_at_ || index >= block_at_ + block_size_) {
    block_at_ = index / kBlock * kBlock;
    const ssize_t n =
        pread(fd_.get(), block_.data(), block_.size(), static_cast<off_t>(block_at_ * kBytes));
    block_size_ = n > 0 ? static_cast<size_t>(n) / kBytes : 0;
    if (index >= block_at_ + block_size_) return {};  // it has been removed and made again
  }
  const auto number = [&](size_t from) {
    uint64_t value = 0;
    for (size_t i = 8; i-- > 0;)
      value =
          value << 8 | static_cast<unsigned char>(block_[(index - block_at_) * kBytes + from + i]);
    return value;
  };
  const uint64_t second = number(8);
  return {number(0), static_cast<Millis>(second & kTimeBits), static_cast<uint16_t>(second >> 48)};
}

size_t LogMarks::first(const std::function<bool(const LogMark&)>& holds) const {
  size_t low = 0, high = size_;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (holds(at(middle)))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

size_t LogMarks::first_reaching(uint64_t offset) const {
  return first([offset](const LogMark& mark) { return mark.offset >= offset; });
}

std::optional<LogMark> LogMarks::last() const {
  return size_ == 0 ? std::nullopt : std::optional(at(size_ - 1));
}

LogSpan span_of(const LogMarks& marks, int32_t run) {
  if (run < 0) return {};
  const auto begin_of = [&](int32_t number) -> std::optional<uint64_t> {
    const size_t index = marks.first([number](const LogMark& m) { return m.run >= number; });
    return index < marks.size() ? std::optional(marks.at(index).offset) : std::nullopt;
  };
  return {run == 0 ? 0 : begin_of(run).value_or(0), begin_of(run + 1)};
}

uint64_t begin_since(const LogSource& source, Millis since) {
  if (source.fd < 0) return source.begin;
  const LogMarks& marks = *source.marks;
  const size_t index = marks.first([since](const LogMark& mark) { return mark.at >= since; });
  if (index == marks.size() && source.modified_ms < since) return source.end;
  // What ends beyond the mark before that one is not older.
  uint64_t at = index == 0 ? 0 : marks.at(index - 1).offset;
  if (at <= source.begin) return source.begin;
  at = std::min(at, source.end);
  std::array<char, 64 << 10> block;
  const uint64_t last = at - std::min(at, kLineMax);
  while (at > std::max(source.begin, last)) {
    const uint64_t from = std::max(source.begin, at - std::min<uint64_t>(at, block.size()));
    const ssize_t n = pread(source.fd, block.data(), at - from, static_cast<off_t>(from));
    if (n < static_cast<ssize_t>(at - from)) return at;
    const void* const end = memrchr(block.data(), '\n', at - from);
    if (end != nullptr)
      return from + static_cast<uint64_t>(static_cast<const char*>(end) - block.data()) + 1;
    at = from;
  }
  return at;
}

void begin_last(std::array<LogSource, 2>& sources, uint64_t lines) {
  std::array<LinesBack, 2> back{LinesBack(sources[0]), LinesBack(sources[1])};
  std::array<uint64_t, 2> begin{sources[0].end, sources[1].end};
  for (; lines > 0 && (back[0].any() || back[1].any()); --lines) {
    if (sources[0].end - begin[0] + sources[1].end - begin[1] > kSearchMax) return;
    // Of lines with the same time, those of the second come later.
    const size_t later = !back[0].any() || (back[1].any() && back[1].at() >= back[0].at()) ? 1 : 0;
    begin[later] = back[later].begin();
    back[later].next();
  }
  for (size_t i = 0; i < 2; ++i) sources[i].begin = std::max(sources[i].begin, begin[i]);
}

}  // namespace muster::agent
