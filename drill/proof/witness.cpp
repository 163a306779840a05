#include "drill/proof/witness.hpp"

#include "base/fd.hpp"
#include "base/files/whole_write.hpp"
#include "drill/process/process.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <unistd.h>

namespace muster::cli::drill {
namespace {

constexpr int kBadWitness = 125;  // the attempt could not write down what it did

template <class T>
bool read_number(const std::string& word, T& into) {
  const auto done = std::from_chars(word.data(), word.data() + word.size(), into);
  return done.ec == std::errc{} && done.ptr == word.data() + word.size();
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// One append, durable when it returns.
bool append(const std::string& path, const std::string& text) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return false;
  return write_whole(fd.get(), text) && fsync(fd.get()) == 0;
}

void sleep_for(Millis span_ms) {
  const Millis until = boot_now() + span_ms;
  for (Millis now = boot_now(); now < until; now = boot_now())
    usleep(static_cast<useconds_t>(std::min<Millis>(until - now, 500) * 1000));
}

}  // namespace

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

std::string to_text(const WitnessLine& line) {
  std::ostringstream out;
  out << "1 " << (line.end ? "end " : "start ") << line.pod.index << ' ' << line.pod.attempt << ' '
      << line.uid << ' ' << line.node << ' ' << line.boot << ' ' << line.boot_ms << ' '
      << line.wall_ms << ' ' << line.pid << ' ';
  if (line.end)
    out << line.code;
  else
    out << line.ticks;
  out << '\n';
  return out.str();
}

std::optional<WitnessLine> parse_witness(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  if (words.size() != 11 || words[0] != "1" || (words[1] != "start" && words[1] != "end"))
    return std::nullopt;
  WitnessLine line;
  line.end = words[1] == "end";
  line.uid = words[4];
  line.node = words[5];
  line.boot = words[6];
  const bool good =
      read_number(words[2], line.pod.index) && read_number(words[3], line.pod.attempt) &&
      read_number(words[7], line.boot_ms) && read_number(words[8], line.wall_ms) &&
      read_number(words[9], line.pid) &&
      (line.end ? read_number(words[10], line.code) : read_number(words[10], line.ticks));
  return good ? std::optional(line) : std::nullopt;
}

Testimony parse_testimony(const std::vector<std::string>& files) {
  Testimony all;
  for (const std::string& text : files) {
    for (size_t from = 0; from < text.size();) {
      const size_t end = text.find('\n', from);
      if (end == std::string::npos) break;  // its writer died in the middle of the write
      if (auto line = parse_witness(std::string_view(text).substr(from, end - from)))
        all.lines.push_back(std::move(*line));
      else
        ++all.unreadable;
      from = end + 1;
    }
  }
  std::stable_sort(
      all.lines.begin(), all.lines.end(),
      [](const WitnessLine& a, const WitnessLine& b) { return a.boot_ms < b.boot_ms; });
  return all;
}

Result<Testimony> read_testimony(const std::string& dir) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(dir, error), end; !error && at != end;
       at.increment(error)) {
    std::ifstream file(at->path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file)
      return Error{Errc::unavailable, "cannot read the witness file " + at->path().string(), {}};
    files.push_back(text.str());
  }
  if (error) return Error{Errc::unavailable, "cannot read " + dir + ": " + error.message(), {}};
  return parse_testimony(files);
}

Testimony on_one_clock(Testimony testimony, const std::string& boot, Millis wall_ahead_ms) {
  for (WitnessLine& line : testimony.lines)
    if (line.boot != boot) line.boot_ms = line.wall_ms - wall_ahead_ms;
  std::stable_sort(
      testimony.lines.begin(), testimony.lines.end(),
      [](const WitnessLine& a, const WitnessLine& b) { return a.boot_ms < b.boot_ms; });
  return testimony;
}

std::vector<std::string> witness_command(const std::string& executable, const std::string& dir,
                                         const Canary& canary) {
  return {executable,
          "drill",
          "witness",
          dir,
          std::to_string(canary.indexes),
          std::to_string(canary.seed),
          std::to_string(canary.short_ms),
          std::to_string(canary.long_ms)};
}

int run_witness(const std::vector<std::string>& words) {
  Canary canary;
  WitnessLine line;
  if (words.size() != 5 || !read_number(words[1], canary.indexes) || canary.indexes == 0 ||
      !read_number(words[2], canary.seed) || !read_number(words[3], canary.short_ms) ||
      canary.short_ms < 1 || !read_number(words[4], canary.long_ms) ||
      !read_number(variable("JOB_COMPLETION_INDEX"), line.pod.index) ||
      !read_number(variable("MUSTER_ATTEMPT"), line.pod.attempt)) {
    std::cerr << "muster drill witness: runs only in the pods of a drill\n";
    return kBadWitness;
  }
  line.uid = variable("MUSTER_POD_UID");
  line.node = variable("MUSTER_NODE_NAME");
  line.boot = boot_id();
  line.pid = getpid();
  const auto self = facts_of(line.pid);
  line.ticks = self ? self->start_ticks : 0;
  const std::string path = words[0] + "/" + line.node;
  const auto note = [&] {
    line.boot_ms = boot_now();
    line.wall_ms = wall_now();
    if (append(path, to_text(line))) return true;
    std::cerr << "muster drill witness: cannot write " << path << ": " << std::strerror(errno)
              << "\n";
    return false;
  };
  const Work work = work_of(canary, line.pod);
  if (!note()) return kBadWitness;
  write_whole(STDOUT_FILENO, begin_text(line.pod, line.uid));
  sleep_for(work.span_ms);
  write_whole(STDOUT_FILENO, end_text(line.pod, work.code));
  line.end = true;
  line.code = work.code;
  if (!note()) return kBadWitness;
  return work.code;
}

}  // namespace muster::cli::drill
