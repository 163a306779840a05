#include "agent/files/log_times.hpp"

#include "base/files/whole_write.hpp"

#include <kj/io.h>

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace muster::agent {
namespace {

constexpr const char* kSuffix[] = {".stdout", ".stderr"};
constexpr auto kMarkBytes = static_cast<off_t>(LogMarks::kBytes);

}  // namespace

Millis modified_ms(const struct stat& info) {
  return info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1'000'000;
}

void LogTimes::begin(const std::string& output, uint16_t run, Millis wall_now) {
  Watched watched{.since = wall_now};
  if (run > 0) {
    load(output, watched);
    for (const bool err : {false, true}) {
      Stream& stream = err ? watched.err : watched.out;
      struct stat info {};
      if (stat((output + kSuffix[err]).c_str(), &info) != 0) info.st_size = 0;
      const Millis at = info.st_size > 0 ? std::min(modified_ms(info), wall_now) : wall_now;
      stream.last = {std::max(static_cast<uint64_t>(info.st_size), stream.last.offset),
                     std::max(at, stream.last.at), run};
      stream.unwritten.push_back(stream.last);
    }
    write(output, watched);
  }
  watched_[output] = std::move(watched);
}

// Its run is that of the last mark: an agent that knew of none wrote none.
void LogTimes::adopt(const std::string& output) {
  watched_[output] = {.unknown = true};
}

void LogTimes::end(const std::string& output) {
  const auto found = watched_.find(output);
  if (found == watched_.end()) return;
  Watched& watched = found->second;
  // The last mark is no better than the time of the last write, unless more was written since.
  if (std::max(watched.out.unwritten.size(), watched.err.unwritten.size()) > 1)
    write(output, watched);
  watched_.erase(found);
}

void LogTimes::look(Millis wall_now) {
  auto one = watched_.lower_bound(next_);
  for (size_t looks = 0; looks < kLooks && looks < watched_.size(); ++looks, ++one) {
    if (one == watched_.end()) one = watched_.begin();
    look_at(one->first, one->second, wall_now);
  }
  next_ = one == watched_.end() ? "" : one->first;
}

void LogTimes::look_at(const std::string& output, Watched& watched, Millis wall_now) {
  if (watched.unknown) load(output, watched);
  for (const bool err : {false, true}) {
    struct stat info {};
    if (stat((output + kSuffix[err]).c_str(), &info) != 0) continue;
    add(watched, err, static_cast<uint64_t>(info.st_size), modified_ms(info), wall_now);
  }
  if (watched.since + kFirstMs <= wall_now) write(output, watched);
}

void LogTimes::add(Watched& watched, bool err, uint64_t size, Millis at, Millis wall_now) {
  Stream& stream = err ? watched.err : watched.out;
  if (size <= stream.last.offset) return;
  stream.last = {size, std::max(stream.last.at, std::min(at, wall_now)), stream.last.run};
  stream.unwritten.push_back(stream.last);
}

void LogTimes::seen(const std::string& output, bool err, uint64_t size, Millis modified_ms,
                    Millis wall_now) {
  const auto found = watched_.find(output);
  if (found == watched_.end()) return;
  if (found->second.unknown) load(output, found->second);
  add(found->second, err, size, modified_ms, wall_now);
}

void LogTimes::flush(const std::string& output) {
  if (const auto found = watched_.find(output); found != watched_.end())
    write(output, found->second);
}

void LogTimes::load(const std::string& output, Watched& watched) {
  watched.unknown = false;
  for (const bool err : {false, true})
    if (const auto last = LogMarks(path_of(output + kSuffix[err])).last())
      (err ? watched.err : watched.out).last = *last;
}

void LogTimes::write(const std::string& output, Watched& watched) {
  for (const bool err : {false, true}) {
    Stream& stream = err ? watched.err : watched.out;
    if (stream.unwritten.empty()) continue;
    const std::string bytes = mark_bytes(stream.unwritten);
    stream.unwritten.clear();
    const kj::AutoCloseFd fd(::open(path_of(output + kSuffix[err]).c_str(),
                                    O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (fd.get() < 0) continue;
    // Over what a full disk or a crash left of a mark.
    struct stat info {};
    if (fstat(fd.get(), &info) == 0 && info.st_size % kMarkBytes != 0)
      std::ignore = ftruncate(fd.get(), info.st_size / kMarkBytes * kMarkBytes);
    std::ignore = write_whole(fd.get(), bytes);
  }
}

}  // namespace muster::agent
