#include "cli/client/pod_output.hpp"

#include "cli/client/attempts.hpp"
#include "cli/client/objects.hpp"
#include "cli/output/text.hpp"

#include <array>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <iostream>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::cli {
namespace {

constexpr size_t kChunk = 256 << 10;
constexpr size_t kPartBytes = 1 << 20;  // a longer line is split
constexpr size_t kWriteAt = 1 << 20;    // bytes buffered before they are written
constexpr Millis kPauseOfFiles = 100, kPauseOfApi = 250;
// An output gets its name once something is written to it (ADR 23).
constexpr uint32_t kGrown = IN_MODIFY | IN_MOVED_TO | IN_CREATE;

// "job-3-x2k4p" -> "3".
std::string index_text(const std::string& pod) {
  const size_t last = pod.rfind('-');
  const size_t before =
      last == 0 || last == std::string::npos ? std::string::npos : pod.rfind('-', last - 1);
  return before == std::string::npos ? pod : pod.substr(before + 1, last - before - 1);
}

std::string lead_of(const std::string& pod, bool prefixed, bool indexed) {
  if (!prefixed) return "";
  return (indexed ? index_text(pod) : pod) + " | ";
}

bool is_indexed(const Json& job) {
  return text_at(job, {"spec", "completionMode"}) == "Indexed";
}

int64_t size_of(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0 ? st.st_size : 0;
}

// At most kChunk bytes of a log from `offset`. An empty file may be taken away and given to another
// pod: if `path` no longer names the opened file, the data is that pod's.
std::string read_log(const std::string& path, int64_t offset) {
  const int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return "";
  std::string data(kChunk, '\0');
  const ssize_t size = pread(fd, data.data(), data.size(), offset);
  struct stat opened {
  }, named{};
  const bool same = fstat(fd, &opened) == 0 && lstat(path.c_str(), &named) == 0 &&
                    opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
  close(fd);
  data.resize(size > 0 && same ? static_cast<size_t>(size) : 0);
  return data;
}

// The files of an agent's log store: "POD.CONTAINER.stdout" and ".stderr" in one folder.
class FileOutput : public PodOutput {
 public:
  FileOutput(std::string dir, bool indexed, bool prefixed)
      : dir_(std::move(dir)), indexed_(indexed), prefixed_(prefixed) {
    notify_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (notify_ >= 0 && inotify_add_watch(notify_, dir_.c_str(), kGrown | IN_CLOSE_WRITE) < 0) {
      close(notify_);
      notify_ = -1;
    }
    each_file([this](const std::string& name) {
      if (Printer::Stream* stream = stream_of(name)) stream->offset = size_of(path(name));
    });
  }
  ~FileOutput() override {
    if (notify_ >= 0) close(notify_);
  }

  bool wants_ended() const override { return false; }
  Millis pause_max() const override { return kPauseOfFiles; }

  void look(const Json&, const std::vector<EndedAttempt>&, bool over) override {
    if (!read_events()) each_file([this](const std::string& name) { take(name); });
    if (!over) return;
    for (auto& [name, stream] : streams_) printer_.finish(stream);
  }

 private:
  std::string path(const std::string& name) const { return dir_ + "/" + name; }

  Printer::Stream* stream_of(const std::string& name) {
    const auto known = streams_.find(name);
    if (known != streams_.end()) return &known->second;
    const size_t kind = name.rfind('.');
    const size_t container =
        kind == 0 || kind == std::string::npos ? std::string::npos : name.rfind('.', kind - 1);
    if (container == std::string::npos) return nullptr;
    const bool err = name.substr(kind) == ".stderr";
    if (!err && name.substr(kind) != ".stdout") return nullptr;
    const std::string lead = lead_of(name.substr(0, container), prefixed_, indexed_);
    return &streams_.emplace(name, Printer::Stream{.lead = lead, .err = err}).first->second;
  }

  void each_file(const std::function<void(const std::string&)>& visit) {
    DIR* dir = opendir(dir_.c_str());
    if (dir == nullptr) return;
    std::vector<std::string> names;
    while (const dirent* entry = readdir(dir)) {
      if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    }
    closedir(dir);
    for (const std::string& name : names) visit(name);
  }

  void take(const std::string& name) {
    Printer::Stream* stream = stream_of(name);
    if (stream == nullptr) return;
    const int64_t until = size_of(path(name));  // what is written meanwhile is for the next poll
    while (stream->offset < until) {
      const std::string data = read_log(path(name), stream->offset);
      if (data.empty()) return;
      printer_.take(*stream, data);
    }
  }

  // False: events may have been lost, so all files must be read.
  bool read_events() {
    if (notify_ < 0) return false;
    bool all = true;
    alignas(inotify_event) std::array<char, 64 << 10> buffer;
    ssize_t size;
    while ((size = read(notify_, buffer.data(), buffer.size())) > 0) {
      for (const char* at = buffer.data(); at < buffer.data() + size;) {
        const auto* event = reinterpret_cast<const inotify_event*>(at);
        at += sizeof *event + event->len;
        if ((event->mask & IN_Q_OVERFLOW) != 0) all = false;
        if (event->len > 0) handle(event->mask, event->name);
      }
    }
    for (const std::string& name : grown_) take(name);
    grown_.clear();
    return all;
  }

  // A file closed without having been written belongs to a pod that printed nothing; it gets no
  // stream.
  void handle(uint32_t mask, const std::string& name) {
    if ((mask & kGrown) != 0) grown_.insert(name);
    if ((mask & IN_CLOSE_WRITE) == 0) return;
    if (grown_.erase(name) > 0) take(name);
    if (const auto known = streams_.find(name); known != streams_.end())
      printer_.finish(known->second);
  }

  const std::string dir_;
  const bool indexed_, prefixed_;
  int notify_ = -1;  // -1: no inotify available; read all files instead
  std::map<std::string, Printer::Stream> streams_;
  std::set<std::string> grown_;
};

class ApiOutput : public PodOutput {
 public:
  ApiOutput(ApiClient& client, std::string ns, const Json& job, bool prefixed)
      : client_(client),
        ns_(std::move(ns)),
        job_(text_at(job, {"metadata", "name"})),
        indexed_(is_indexed(job)),
        prefixed_(prefixed) {
    for (const char* list : {"initContainers", "containers"}) {
      for (const Json& container : at(job, {"spec", "template", "spec", list}))
        containers_.push_back(text_at(container, {"name"}));
    }
  }

  bool wants_ended() const override { return true; }
  Millis pause_max() const override { return kPauseOfApi; }

  void look(const Json& job, const std::vector<EndedAttempt>& ended, bool over) override {
    for (const EndedAttempt& one : ended) show_ended(one);
    const int64_t ready = number_at(job, {"status", "ready"});
    if (!over && ready > 0 && ready <= kLiveMax) show_running();
    if (!over) return;
    for (auto& [name, streams] : live_) {
      for (auto& [key, stream] : streams) printer_.finish(stream);
    }
    live_.clear();
  }

 private:
  static constexpr int64_t kLiveMax = 16;  // running pods whose output is shown live

  using Streams = std::map<std::pair<std::string, bool>, Printer::Stream>;

  Streams new_streams(const std::string& pod) const {
    Streams streams;
    for (const std::string& container : containers_) {
      for (const bool err : {false, true})
        streams[{container, err}] = {.lead = lead_of(pod, prefixed_, indexed_), .err = err};
    }
    return streams;
  }

  // Reads each stream from its offset.
  void take(const std::string& path, Streams& streams) {
    for (auto& [key, stream] : streams) {
      const auto& [container, err] = key;
      // What cannot be read, because its node is unreachable, is read by the next poll or stays in
      // the log.
      (void)client_.stream(
          path + "container=" + url_encoded(container) + "&stream=" + (err ? "Stderr" : "Stdout") +
              (stream.offset > 0 ? "&offset=" + std::to_string(stream.offset) : ""),
          "*/*", [&, &stream = stream](std::string_view part) {
            printer_.take(stream, part);
            return true;
          });
    }
  }

  void show_running() {
    auto pods = pods_of(client_, ns_, job_, "", "status.phase=Running");
    if (!pods) return;
    for (const Json& pod : *pods) {
      const std::string name = text_at(pod, {"metadata", "name"});
      const auto known = live_.try_emplace(name, new_streams(name)).first;
      take(object_path(Kind::pod, ns_, name) + "/log?", known->second);
    }
  }

  void show_ended(const EndedAttempt& one) {
    // By attempt, which also finds the log when the Pod is no longer kept.
    const std::string path = one.index && one.attempt
                                 ? own_path(ns_, job_, "log") +
                                       "?index=" + std::to_string(*one.index) +
                                       "&attempt=" + std::to_string(*one.attempt) + "&"
                                 : object_path(Kind::pod, ns_, one.pod) + "/log?";
    const auto known = live_.find(one.pod);
    if (known == live_.end() && nothing_seen_) {
      // Pods of one job are alike: if the last one printed nothing, first ask whether this log is
      // empty.
      auto all = client_.get(path + "limitBytes=1", "*/*");
      if (containers_.size() == 1 && all && all->ok() && all->body.empty()) return;
    }
    Streams streams = known == live_.end() ? new_streams(one.pod) : std::move(known->second);
    if (known != live_.end()) live_.erase(known);
    take(path, streams);
    nothing_seen_ = true;
    for (auto& [key, stream] : streams) {
      nothing_seen_ = nothing_seen_ && stream.offset == 0;
      printer_.finish(stream);
    }
  }

  ApiClient& client_;
  const std::string ns_, job_;
  const bool indexed_, prefixed_;
  std::vector<std::string> containers_;
  std::map<std::string, Streams> live_;  // by pod: those that were running at a poll
  bool nothing_seen_ = true;             // the last ended pod printed nothing
};

}  // namespace

void Printer::take(Stream& stream, std::string_view data) {
  std::string& to = stream.err ? err_ : out_;
  stream.offset += static_cast<int64_t>(data.size());
  if (stream.lead.empty()) {
    to += data;
  } else {
    for (size_t from = 0; from < data.size();) {
      const size_t end = data.find('\n', from);
      stream.partial += data.substr(from, end == std::string_view::npos ? end : end - from);
      if (end == std::string_view::npos && stream.partial.size() < kPartBytes) break;
      to += stream.lead + stream.partial + "\n";
      stream.partial.clear();
      if (end == std::string_view::npos) break;
      from = end + 1;
    }
  }
  if (out_.size() + err_.size() > kWriteAt) flush({});
}

void Printer::finish(Stream& stream) {
  if (stream.partial.empty()) return;
  (stream.err ? err_ : out_) += stream.lead + stream.partial + "\n";
  stream.partial.clear();
}

void Printer::flush(const std::function<void()>& first) {
  if (out_.empty() && err_.empty()) return;
  if (first) first();
  std::cout.write(out_.data(), static_cast<std::streamsize>(out_.size())).flush();
  std::cerr.write(err_.data(), static_cast<std::streamsize>(err_.size())).flush();
  out_.clear();
  err_.clear();
}

bool prefixed(RunOptions::Shown shown, const Json& job) {
  if (shown != RunOptions::Shown::automatic) return shown == RunOptions::Shown::prefixed;
  const int64_t one = is_indexed(job) ? number_at(job, {"spec", "completions"})
                                      : number_at(job, {"spec", "parallelism"});
  return one != 1 || number_at(job, {"spec", "completions"}, 1) != 1;
}

std::unique_ptr<PodOutput> output_of_files(const std::string& dir, const Json& job, bool prefixed) {
  return std::make_unique<FileOutput>(dir, is_indexed(job), prefixed);
}

std::unique_ptr<PodOutput> output_of_api(ApiClient& client, const std::string& ns, const Json& job,
                                         bool prefixed) {
  return std::make_unique<ApiOutput>(client, ns, job, prefixed);
}

}  // namespace muster::cli
