#include "client/follow/pod_output.hpp"

#include "client/connect/objects.hpp"
#include "client/follow/log_streams.hpp"
#include "client/inputs/tasks.hpp"
#include "client/news/attempts.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <dirent.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::cli {
namespace {

constexpr size_t kChunk = 256 << 10;
constexpr Millis kPauseOfFiles = 100, kPauseOfApi = 250;
// An output file gets its name when something is first written to it (ADR 23).
constexpr uint32_t kGrown = IN_MODIFY | IN_MOVED_TO | IN_CREATE;

// "job-3-x2k4p" -> "3".
std::string index_text(const std::string& pod) {
  const size_t last = pod.rfind('-');
  const size_t before =
      last == 0 || last == std::string::npos ? std::string::npos : pod.rfind('-', last - 1);
  return before == std::string::npos ? pod : pod.substr(before + 1, last - before - 1);
}

// What the pods of a job are called: by the task of an array, else by the index, if they have one.
class PodLabels {
 public:
  explicit PodLabels(const Json& job)
      : indexed_(is_indexed(job)), tasks_(indexed_ ? tasks_of(job) : std::nullopt) {}

  bool indexed() const { return indexed_; }
  // Absent: it has none.
  std::optional<int64_t> index(const std::string& pod) const {
    if (!indexed_) return std::nullopt;
    int64_t index = 0;
    const std::string text = index_text(pod);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return index;
  }
  std::string label(int64_t index) const { return std::to_string(known_number(tasks_, index)); }
  std::string label(const std::string& pod) const {
    const auto one = index(pod);
    return one ? label(*one) : pod;
  }

 private:
  const bool indexed_;
  const std::optional<Tasks> tasks_;
};

std::string lead_of(const std::string& pod, bool prefixed, const PodLabels& labels) {
  return prefixed ? labels.label(pod) + " | " : "";
}

int64_t size_of(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0 ? st.st_size : 0;
}

// Reads at most kChunk bytes of a log from `offset`. An empty file may be reused for another pod:
// if `path` no longer names the opened file, the data belongs to that pod.
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
  FileOutput(std::string dir, const Json& job, OutputWishes wishes)
      : dir_(std::move(dir)),
        job_(text_at(job, {"metadata", "name"})),
        uid_(text_at(job, {"metadata", "uid"})),
        labels_(job),
        wishes_(std::move(wishes)),
        turns_(job) {
    printer_.set_files(wishes_.files);
    notify_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (notify_ >= 0 && inotify_add_watch(notify_, dir_.c_str(), kGrown | IN_CLOSE_WRITE) < 0) {
      close(notify_);
      notify_ = -1;
    }
    if (wishes_.files != nullptr) {
      take_over_files();
      return;
    }
    each_file([this](const std::string& name) {
      if (Printer::Stream* stream = stream_of(name)) stream->offset = size_of(path(name));
    });
  }
  ~FileOutput() override {
    if (notify_ >= 0) close(notify_);
  }

  bool wants_ended() const override { return wishes_.files != nullptr; }
  Millis pause_max() const override { return kPauseOfFiles; }

  void look(const Json& job, const std::vector<EndedAttempt>& ended, bool over) override {
    // The output files of pods that have ended have their names by now.
    if (!read_events()) each_file([this](const std::string& name) { take_in_turn(name); });
    if (wishes_.in_order) {
      turns_.advance(job, over, [this](uint32_t index) { show_rest(index); });
      if (const auto next = early_.find(static_cast<int64_t>(turns_.now())); next != early_.end())
        for (const std::string& name : next->second) take(name);
    }
    if (wishes_.files != nullptr)
      for (const EndedAttempt& one : ended) finish_file(one.pod);
    first_ = false;
    if (!over) return;
    for (auto& [name, stream] : streams_) printer_.finish(stream);
  }

 private:
  // Continues the files of an earlier run; those whose size differs from the log's are rewritten.
  void take_over_files() {
    std::vector<std::string> names;
    std::map<const PodFiles::File*, int64_t> sizes;
    each_file([&](const std::string& name) {
      Printer::Stream* const stream = stream_of(name);
      if (stream == nullptr) return;
      if (stream->file == nullptr) {
        stream->offset = size_of(path(name));
        return;
      }
      names.push_back(name);
      sizes[stream->file] += size_of(path(name));
    });
    // If attempts share a file, the newest comes last and owns it.
    std::sort(names.begin(), names.end(), [this](const auto& a, const auto& b) {
      return stream_of(a)->file->attempt < stream_of(b)->file->attempt;
    });
    std::set<std::string> rewritten;
    for (const std::string& name : names) {
      Printer::Stream* const stream = stream_of(name);
      PodFiles::File* const file = stream->file;
      if (!file->begun && wishes_.files->holds(*file, sizes[file])) wishes_.files->keep(*file);
      if (file->begun && wishes_.files->holds(*file, sizes[file]))
        stream->offset = size_of(path(name));
      else
        rewritten.insert(name);
    }
    for (const std::string& name : names)
      if (rewritten.contains(name)) take(name);
  }

  // The pod has ended: ensures that its file exists and has the last line. If the log was removed
  // since an earlier run, that run's file is left as it is.
  void finish_file(const std::string& pod) {
    for (const bool err : {false, true})
      if (PodFiles::File* const file = file_of(pod, err)) wishes_.files->begin(*file, !first_);
    for (auto at = streams_.lower_bound(pod + "."); at != streams_.end(); ++at) {
      if (!at->first.starts_with(pod + ".")) break;
      printer_.finish(at->second);
    }
  }

  static std::string pod_of(const std::string& name) {
    return name.substr(0, name.rfind('.', name.rfind('.') - 1));
  }

  // Null: the stream does not go to a file.
  PodFiles::File* file_of(const std::string& pod, bool err) {
    if (wishes_.files == nullptr || !wishes_.files->takes(err)) return nullptr;
    const std::pair key(pod, err && wishes_.files->apart());
    const auto known = files_.find(key);
    if (known != files_.end()) return &known->second;
    const auto index = labels_.index(pod);
    return &files_
                .emplace(key, wishes_.files->file_of(
                                  {.job = job_,
                                   .pod = pod,
                                   .node = wishes_.node ? wishes_.node() : "",
                                   .index = index,
                                   .attempt = index ? attempt_of_name(job_, uid_, *index, pod)
                                                    : std::nullopt,
                                   .task = index ? labels_.label(*index) : ""},
                                  err))
                .first->second;
  }

  // With in_order, output that comes before its turn waits in its log.
  void take_in_turn(const std::string& name) {
    const auto index =
        wishes_.in_order && stream_of(name) != nullptr ? labels_.index(pod_of(name)) : std::nullopt;
    if (index && static_cast<uint64_t>(*index) >= turns_.now()) early_[*index].insert(name);
    if (!index || static_cast<uint64_t>(*index) <= turns_.now()) take(name);
  }

  // The index has settled: show the rest of what its pods have printed.
  void show_rest(uint32_t index) {
    const auto early = early_.find(index);
    if (early == early_.end()) return;
    for (const std::string& name : early->second) {
      take(name);
      printer_.finish(*stream_of(name));
    }
    early_.erase(early);
  }

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
    if (err != wishes_.err.value_or(err)) return nullptr;
    const std::string pod = name.substr(0, container);
    PodFiles::File* const file = file_of(pod, err);
    const std::string lead = file ? "" : lead_of(pod, wishes_.prefixed, labels_);
    return &streams_.emplace(name, Printer::Stream{.lead = lead, .err = err, .file = file})
                .first->second;
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
    const int64_t until = size_of(path(name));  // the next poll gets what is written meanwhile
    while (stream->offset < until) {
      if (Printer::unread(*stream)) {
        stream->offset = until;
        return;
      }
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
    for (const std::string& name : grown_) take_in_turn(name);
    grown_.clear();
    return all;
  }

  // A file closed without having been written belongs to a pod that printed nothing; it gets no
  // stream.
  void handle(uint32_t mask, const std::string& name) {
    if ((mask & kGrown) != 0) grown_.insert(name);
    if ((mask & IN_CLOSE_WRITE) == 0) return;
    if (grown_.erase(name) > 0) take_in_turn(name);
    if (const auto known = streams_.find(name); known != streams_.end())
      printer_.finish(known->second);
  }

  const std::string dir_, job_, uid_;
  const PodLabels labels_;
  const OutputWishes wishes_;
  Turns turns_;
  std::map<std::pair<std::string, bool>, PodFiles::File> files_;  // by pod; stderr's own
  std::map<int64_t, std::set<std::string>> early_;                // names, by index
  bool first_ = true;                                             // look() has not been called yet
  int notify_ = -1;  // -1: no inotify available; read all files instead
  std::map<std::string, Printer::Stream> streams_;
  std::set<std::string> grown_;
};

class ApiOutput : public PodOutput {
 public:
  ApiOutput(ApiClient& client, std::string ns, const Json& job, OutputWishes wishes)
      : client_(client),
        ns_(std::move(ns)),
        job_(text_at(job, {"metadata", "name"})),
        labels_(job),
        wishes_(std::move(wishes)),
        turns_(job) {
    printer_.set_files(wishes_.files);
    for (const char* list : {"initContainers", "containers"}) {
      for (const Json& container : at(job, {"spec", "template", "spec", list}))
        containers_.push_back(text_at(container, {"name"}));
    }
  }

  bool wants_ended() const override { return true; }
  Millis pause_max() const override { return kPauseOfApi; }

  void look(const Json& job, const std::vector<EndedAttempt>& ended, bool over) override {
    for (const EndedAttempt& one : first_ ? newest(ended) : ended) {
      if (!wanted(one.index)) continue;
      if (wishes_.in_order && one.index && static_cast<uint64_t>(*one.index) > turns_.now())
        early_[*one.index].push_back(one);
      else
        show_ended(one);
    }
    if (wishes_.in_order) {
      turns_.advance(job, over, [this](uint32_t index) { show_early(index); });
      show_early(static_cast<int64_t>(turns_.now()));
    }
    const int64_t ready = number_at(job, {"status", "ready"});
    const bool few = ready <= (wishes_.as_log ? kListedMax : wishes_.live_max);
    if (!over && ready > 0 && (few || wishes_.in_order)) show_running();
    first_ = false;
    if (!over) return;
    for (const EndedAttempt& one : std::exchange(refused_, {})) show_ended(one);
    for (auto& [name, live] : live_) {
      for (auto& [key, stream] : live->streams) printer_.finish(stream);
    }
    live_.clear();
  }

 private:
  static constexpr int64_t kListedMax = 1'000;  // if more pods run, none is followed

  struct Pod {
    PodFiles::File file, err;  // `err` only if that is apart
    LogStreams streams;
  };

  bool wanted(const std::optional<int64_t>& index) const {
    return !wishes_.only || (index && wishes_.only->contains(static_cast<uint32_t>(*index)));
  }

  // A log that is followed begins with the existing output of only the newest attempt of each
  // index.
  std::vector<EndedAttempt> newest(const std::vector<EndedAttempt>& ended) const {
    if (!wishes_.as_log || !labels_.indexed()) return ended;
    std::map<int64_t, const EndedAttempt*> last;
    for (const EndedAttempt& one : ended) {
      if (!one.index) continue;
      const auto [at, fresh] = last.try_emplace(*one.index, &one);
      if (!fresh && at->second->attempt <= one.attempt) at->second = &one;
    }
    std::vector<EndedAttempt> out;
    for (const auto& [index, one] : last) out.push_back(*one);
    return out;
  }

  // Shows the attempts that ended before the turn of their index, which is now.
  void show_early(int64_t index) {
    const auto early = early_.find(index);
    if (early == early_.end()) return;
    for (const EndedAttempt& one : early->second) show_ended(one);
    early_.erase(early);
  }

  std::unique_ptr<Pod> new_pod(core::OutputPod pod) const {
    auto out = std::make_unique<Pod>();
    if (pod.index) pod.task = labels_.label(*pod.index);
    const PodFiles* const files = wishes_.files;
    if (files != nullptr && files->takes(false)) out->file = files->file_of(pod, false);
    if (files != nullptr && files->apart()) out->err = files->file_of(pod, true);
    std::string lead = lead_of(pod.pod, wishes_.prefixed, labels_);
    if (!lead.empty() && wishes_.as_log && pod.index && pod.attempt)
      lead = labels_.label(*pod.index) + "#" + std::to_string(*pod.attempt) + " | ";
    for (const std::string& container : containers_) {
      for (const bool err : {false, true}) {
        if (err != wishes_.err.value_or(err)) continue;
        const bool to_file = files != nullptr && files->takes(err);
        out->streams[{container, err}] = {.lead = to_file ? "" : lead,
                                          .err = err && !wishes_.as_log,
                                          .file = !to_file                ? nullptr
                                                  : err && files->apart() ? &out->err
                                                                          : &out->file};
      }
    }
    return out;
  }

  Status take(const std::string& path, Pod& pod, bool over) {
    return take_log(client_, path, pod.streams, printer_, first_ ? wishes_.tail : std::nullopt,
                    over);
  }

  void show_running() {
    std::string one_index;
    if (wishes_.in_order)
      one_index = "batch.kubernetes.io/job-completion-index=" + std::to_string(turns_.now());
    auto pods = pods_of(client_, ns_, job_, one_index, "status.phase=Running");
    if (!pods) return;
    for (const Json& pod : *pods) {
      const std::string name = text_at(pod, {"metadata", "name"});
      const auto index = index_of(pod);
      if (!wanted(index)) continue;
      auto known = live_.find(name);
      if (known == live_.end() && static_cast<int64_t>(live_.size()) >= wishes_.live_max) continue;
      if (known == live_.end())
        known = live_
                    .emplace(name, new_pod({.job = job_,
                                            .pod = name,
                                            .node = text_at(pod, {"spec", "nodeName"}),
                                            .index = index,
                                            .attempt = attempt_of(pod)}))
                    .first;
      // What cannot be read now is read at the next look, or when the pod has ended.
      (void)take(object_path(Kind::pod, ns_, name) + "/log?", *known->second, false);
    }
  }

  void show_ended(const EndedAttempt& one) {
    // By attempt, which finds the log even if the Pod is no longer kept.
    const std::string path = one.index && one.attempt
                                 ? own_path(ns_, job_, "log") +
                                       "?index=" + std::to_string(*one.index) +
                                       "&attempt=" + std::to_string(*one.attempt) + "&"
                                 : object_path(Kind::pod, ns_, one.pod) + "/log?";
    const auto known = live_.find(one.pod);
    std::unique_ptr<Pod> pod = known == live_.end() ? new_pod({.job = job_,
                                                               .pod = one.pod,
                                                               .node = one.node,
                                                               .index = one.index,
                                                               .attempt = one.attempt})
                                                    : std::move(known->second);
    if (wishes_.files != nullptr) {
      if (wishes_.files->takes(false)) wishes_.files->begin(pod->file, true);
      if (wishes_.files->apart()) wishes_.files->begin(pod->err, true);
    }
    if (known == live_.end() && nothing_seen_) {
      // Pods of one job are alike: if the last one printed nothing, first ask whether this log is
      // empty.
      auto all = client_.get(path + "limitBytes=1", "*/*");
      if (containers_.size() == 1 && all && all->ok() && all->body.empty()) {
        unread_.erase(one.pod);
        return;
      }
    }
    if (known != live_.end()) live_.erase(known);
    if (Status read = take(path, *pod, true); !read) {
      // Its node may come back before the job is over.
      unread_.insert_or_assign(one.pod, read.error());
      refused_.push_back(one);
      live_.insert_or_assign(one.pod, std::move(pod));
      return;
    }
    unread_.erase(one.pod);
    nothing_seen_ = true;
    for (auto& [key, stream] : pod->streams) {
      nothing_seen_ = nothing_seen_ && stream.offset == 0;
      printer_.finish(stream);
    }
  }

  ApiClient& client_;
  const std::string ns_, job_;
  const PodLabels labels_;
  const OutputWishes wishes_;
  Turns turns_;
  std::vector<std::string> containers_;
  std::map<std::string, std::unique_ptr<Pod>> live_;  // by name: those that were running at a poll
  std::map<int64_t, std::vector<EndedAttempt>> early_;  // by index: ended before its turn
  std::vector<EndedAttempt> refused_;                   // ended, but their node did not answer
  bool nothing_seen_ = true;                            // the last ended pod printed nothing
  bool first_ = true;
};

}  // namespace

Turns::Turns(const Json& job) : own_(own_indexes(job)), now_(own_.lowest()) {}

void Turns::advance(const Json& job, bool over, const std::function<void(uint32_t)>& close) {
  const core::IndexSet settled = settled_indexes(job);
  constexpr uint64_t kNone = uint64_t{1} << 32;
  for (; now_ < kNone && (over || settled.contains(static_cast<uint32_t>(now_)));
       now_ = own_.lowest(now_ + 1)) {
    close(static_cast<uint32_t>(now_));
  }
}

bool has_several_pods(const Json& job) {
  const int64_t one = is_indexed(job) ? number_at(job, {"spec", "completions"})
                                      : number_at(job, {"spec", "parallelism"}, 1);
  return one != 1 || number_at(job, {"spec", "completions"}, 1) != 1;
}

bool prefixed(Shown shown, const Json& job) {
  if (shown != Shown::automatic) return shown == Shown::tagged;
  return has_several_pods(job);
}

std::unique_ptr<PodOutput> output_of_files(const std::string& dir, const Json& job,
                                           OutputWishes wishes) {
  return std::make_unique<FileOutput>(dir, job, std::move(wishes));
}

std::unique_ptr<PodOutput> output_of_api(ApiClient& client, const std::string& ns, const Json& job,
                                         OutputWishes wishes) {
  return std::make_unique<ApiOutput>(client, ns, job, std::move(wishes));
}

}  // namespace muster::cli
