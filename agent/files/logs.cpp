#include "agent/files/logs.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::agent {

namespace {

constexpr size_t kBlock = 64 << 10;
constexpr size_t kMarksMax = 4096;  // in a chunk

// The offset of the last `lines` lines. An unterminated last line counts.
int64_t start_of_lines(int fd, int64_t size, int64_t lines) {
  std::string block(kBlock, 0);
  int64_t found = 0;
  for (int64_t end = size; end > 0;) {
    int64_t begin = std::max<int64_t>(0, end - static_cast<int64_t>(kBlock));
    ssize_t n = pread(fd, block.data(), static_cast<size_t>(end - begin), begin);
    if (n != end - begin) return size;  // the file has shrunk
    for (int64_t at = end - 1; at >= begin; --at) {
      if (block[static_cast<size_t>(at - begin)] != '\n' || at == size - 1) continue;
      if (++found == lines) return at + 1;
    }
    end = begin;
  }
  return 0;
}

// Names come from the wire and become parts of paths.
bool is_file_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

LogChunk read_log_file(int fd, int64_t offset, size_t limit) {
  LogChunk chunk;
  struct stat st {};
  if (fstat(fd, &st) != 0) return chunk;
  chunk.found = true;
  chunk.size = static_cast<uint64_t>(st.st_size);
  chunk.modified_ms = modified_ms(st);
  chunk.offset = offset >= 0 ? offset : start_of_lines(fd, st.st_size, -offset);
  if (chunk.offset >= st.st_size) return chunk;
  chunk.data.resize(std::min(limit, static_cast<size_t>(st.st_size - chunk.offset)));
  ssize_t n = pread(fd, chunk.data.data(), chunk.data.size(), chunk.offset);
  chunk.data.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return chunk;
}

LogChunk read_log_file(const std::string& path, int64_t offset, size_t limit) {
  const kj::AutoCloseFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return {.denied = errno == EACCES};
  LogChunk chunk = read_log_file(fd.get(), offset, limit);
  // If the keeper gave an empty file to another pod while we had it open, this is that pod's data.
  struct stat opened {
  }, now{};
  if (fstat(fd.get(), &opened) != 0 || stat(path.c_str(), &now) != 0 ||
      now.st_ino != opened.st_ino || now.st_dev != opened.st_dev)
    return {};
  return chunk;
}

LogStore::Paths LogStore::paths(const std::string& job_uid, const std::string& pod_name,
                                const std::string& container) const {
  const std::string base = output(job_uid, pod_name, container);
  return {base + ".stdout", base + ".stderr"};
}

void LogStore::look_again() {
  made_.clear();
}

Result<LogStore::Paths> LogStore::open(const std::string& job_uid, const std::string& pod_name,
                                       const std::string& container) {
  if (!is_file_name(job_uid) || !is_file_name(pod_name) || !is_file_name(container)) {
    return Error{Errc::invalid,
                 "cannot be used as the name of a log file: " + job_uid + ", " + pod_name};
  }
  if (!made_.contains(job_uid)) {
    std::string folder = dir_ + "/" + job_uid;
    if (mkdir(dir_.c_str(), 0700) != 0 && errno != EEXIST) {
      return Error{Errc::unavailable, "cannot make " + dir_ + ": " + std::strerror(errno)};
    }
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      return Error{Errc::unavailable, "cannot make " + folder + ": " + std::strerror(errno)};
    }
    made_.insert(job_uid);
  }
  running_.insert(job_uid + "/" + pod_name);
  return paths(job_uid, pod_name, container);
}

void LogStore::adopt(const std::string& job_uid, const std::string& pod_name) {
  running_.insert(job_uid + "/" + pod_name);
}

void LogStore::close(const std::string& job_uid, const std::string& pod_name) {
  if (auto one = running_.find(job_uid + "/" + pod_name); one != running_.end())
    running_.erase(one);
}

bool LogStore::exists(const std::string& job_uid, const std::string& pod_name,
                      const std::string& container) const {
  const Paths both = paths(job_uid, pod_name, container);
  return access(both.out.c_str(), F_OK) == 0 || access(both.err.c_str(), F_OK) == 0;
}

// Whether a missing log of the job was empty.
bool LogStore::knows(const std::string& job_uid) const {
  return access((dir_ + "/" + job_uid).c_str(), F_OK) == 0;
}

LogChunk LogStore::read(const LogName& name, int64_t offset, size_t limit) const {
  if (!is_file_name(name.job_uid) || !is_file_name(name.pod_name) || !is_file_name(name.container))
    return {};
  Paths both = paths(name.job_uid, name.pod_name, name.container);
  LogChunk chunk = read_log_file(name.err ? both.err : both.out, offset, limit);
  chunk.found = chunk.found || knows(name.job_uid);
  return chunk;
}

LogChunk LogStore::read(const LogName& name, const kj::AutoCloseFd& opened, int64_t offset,
                        size_t limit) const {
  if (opened.get() >= 0) return read_log_file(opened.get(), offset, limit);
  return {.found = knows(name.job_uid)};
}

void LogStore::finish(const LogName& name, int32_t run, bool times, LogChunk& chunk,
                      Millis wall_now) {
  if (!chunk.found || (!times && run < 0)) return;
  const std::string base = output(name.job_uid, name.pod_name, name.container);
  if (chunk.modified_ms > 0) times_.seen(base, name.err, chunk.size, chunk.modified_ms, wall_now);
  times_.flush(base);
  const LogMarks marks(LogTimes::path_of(base + (name.err ? ".stderr" : ".stdout")));
  if (const LogSpan span = span_of(marks, run); span.end) {
    chunk.over = true;
    chunk.size = std::min(chunk.size, *span.end);
    const auto from = static_cast<uint64_t>(chunk.offset);
    chunk.data.resize(
        std::min<uint64_t>(chunk.data.size(), chunk.size - std::min(chunk.size, from)));
  }
  if (!times || chunk.data.empty()) return;
  const auto end = static_cast<uint64_t>(chunk.offset) + chunk.data.size();
  const size_t first = marks.first_reaching(static_cast<uint64_t>(chunk.offset) + 1);
  for (size_t i = first; i < marks.size() && chunk.marks.size() < kMarksMax; ++i) {
    const LogMark mark = marks.at(i);
    if (chunk.marks.empty() || mark.offset > chunk.marks.back().offset) chunk.marks.push_back(mark);
    if (mark.offset >= end) return;
  }
  if (chunk.marks.size() == kMarksMax)
    chunk.data.resize(chunk.marks.back().offset - static_cast<uint64_t>(chunk.offset));
  else
    chunk.marks.push_back({end, std::min(chunk.modified_ms, wall_now), 0});
}

kj::AutoCloseFd LogStore::open_to_read(const LogName& name, bool& denied) const {
  denied = false;
  if (!is_file_name(name.job_uid) || !is_file_name(name.pod_name) || !is_file_name(name.container))
    return {};
  const Paths both = paths(name.job_uid, name.pod_name, name.container);
  kj::AutoCloseFd fd(
      ::open((name.err ? both.err : both.out).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  denied = fd.get() < 0 && errno == EACCES;
  return fd.get() < 0 ? kj::AutoCloseFd() : kj::mv(fd);
}

LogBegins LogStore::find(const LogSearch& search, const kj::AutoCloseFd& out,
                         const kj::AutoCloseFd& err, Millis wall_now) {
  const LogName& name = search.name;
  const std::string base = output(name.job_uid, name.pod_name, name.container);
  std::array<LogSource, 2> sources;
  const std::array<int, 2> fds{out.get(), err.get()};
  for (size_t i = 0; i < 2; ++i) {
    struct stat st {};
    if (fds[i] < 0 || fstat(fds[i], &st) != 0) continue;
    sources[i] = {fds[i], 0, static_cast<uint64_t>(st.st_size), modified_ms(st)};
    times_.seen(base, i == 1, sources[i].end, sources[i].modified_ms, wall_now);
  }
  times_.flush(base);
  const LogMarks out_marks(LogTimes::path_of(base + ".stdout")),
      err_marks(LogTimes::path_of(base + ".stderr"));
  sources[0].marks = &out_marks;
  sources[1].marks = &err_marks;
  for (LogSource& source : sources) {
    const LogSpan span = span_of(*source.marks, search.run);
    source.begin = span.begin;
    source.end = std::max(source.begin, std::min(source.end, span.end.value_or(source.end)));
  }
  std::array<LogSource, 2> last = sources;
  if (search.last_lines) begin_last(last, *search.last_lines);
  std::array<uint64_t, 2> begins{};
  for (size_t i = 0; i < 2; ++i)
    begins[i] =
        std::max(last[i].begin, search.since > 0 ? begin_since(sources[i], search.since) : 0);
  return {begins[0], begins[1]};
}

bool LogStore::runs(const std::string& job_uid, const std::string& file) const {
  size_t stream = file.rfind('.');
  size_t container =
      stream == 0 || stream == std::string::npos ? std::string::npos : file.rfind('.', stream - 1);
  return container != std::string::npos &&
         running_.contains(job_uid + "/" + file.substr(0, container));
}

void LogStore::begin_pass() {
  pass_ = std::make_unique<Pass>();
  std::unique_ptr<DIR, CloseDir> dir(opendir(dir_.c_str()));
  if (dir == nullptr) return;  // no pod ever ran
  while (dirent* entry = readdir(dir.get())) {
    if (entry->d_name[0] != '.') pass_->jobs.emplace_back(entry->d_name);
  }
}

void LogStore::look_at(Limits limits, Millis wall_now, const char* name) {
  const std::string& job = pass_->jobs[pass_->job];
  std::string path = dir_ + "/" + job + "/" + name;
  struct stat st {};
  if (stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return;
  bool running = runs(job, name);
  // Empty files are removed at once: those that a dead keeper left, and spares, which a keeper can
  // do without.
  if (!running && (st.st_size == 0 || modified_ms(st) + limits.keep_ms <= wall_now)) {
    unlink(path.c_str());
    return;
  }
  ++pass_->left;
  pass_->bytes += static_cast<uint64_t>(st.st_size);
  if (!running)
    pass_->files.push_back({modified_ms(st), static_cast<uint64_t>(st.st_size), pass_->job, name});
}

void LogStore::end_job(Limits limits, Millis wall_now) {
  const std::string& job = pass_->jobs[pass_->job];
  std::string folder = dir_ + "/" + job;
  struct stat st {};
  bool used =
      running_.lower_bound(job + "/") != running_.lower_bound(job + "0");  // '0' follows '/'
  if (pass_->left == 0 && !used && stat(folder.c_str(), &st) == 0 &&
      modified_ms(st) + limits.keep_ms <= wall_now && rmdir(folder.c_str()) == 0) {
    made_.erase(job);
  }
  pass_->open.reset();
  pass_->left = 0;
  ++pass_->job;
}

bool LogStore::sweep(Limits limits, Millis wall_now, size_t entries) {
  if (pass_ == nullptr) begin_pass();
  for (; entries > 0; --entries) {
    Pass& pass = *pass_;
    if (pass.job < pass.jobs.size()) {
      if (pass.open == nullptr)
        pass.open.reset(opendir((dir_ + "/" + pass.jobs[pass.job]).c_str()));
      dirent* entry = pass.open == nullptr ? nullptr : readdir(pass.open.get());
      if (entry == nullptr) {
        end_job(limits, wall_now);
      } else if (entry->d_name[0] != '.') {
        look_at(limits, wall_now, entry->d_name);
      }
      continue;
    }
    if (pass.bytes > limits.max_bytes && !pass.sorted) {
      std::sort(pass.files.begin(), pass.files.end());
      pass.sorted = true;
    }
    if (pass.bytes <= limits.max_bytes || pass.oldest == pass.files.size()) {
      pass_.reset();
      return true;
    }
    const File& file = pass.files[pass.oldest++];
    const std::string& job = pass.jobs[file.job];
    if (runs(job, file.name)) continue;  // started after look_at()
    unlink((dir_ + "/" + job + "/" + file.name).c_str());
    pass.bytes -= file.size;
  }
  return false;
}

}  // namespace muster::agent
