// LogStore: the files that pods write to.
//
// DIR/<job uid>/<pod name>.<container>.stdout and .stderr: the job's uid and the pod's name are
// enough to find them, so they can be read long after the job is forgotten. A file is removed when
// it is older than `keep_ms`, or when it is the oldest and all together exceed `max_bytes`, but
// never while its pod runs. The keeper reuses or removes files that stayed empty
// (keeper/files/outputs.hpp). A job's folder is kept as long as its files would be, to tell an
// empty log of a known job from an unknown one. The folders belong to the agent. Where pods run as
// their owners, the files belong to the owners: the agent may remove but not read them, and has the
// keeper open them.
//
// sweep() works in small steps: a million files must not delay a heartbeat.
#pragma once

#include "agent/files/log_marks.hpp"
#include "agent/files/log_times.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

#include <kj/io.h>

#include <cstdint>
#include <dirent.h>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace muster::agent {

// Identifies a log of a pod.
struct LogName {
  std::string job_uid, pod_name, container;
  bool err = false;  // stderr, else stdout
};

struct LogChunk {
  bool found = false;
  bool denied = false;  // it exists, but we may not open it
  std::string data;
  int64_t offset = 0;  // of `data` in the file
  uint64_t size = 0;   // of the file
  Millis modified_ms = 0;
  // If asked for: those that give the lines in `data` their times.
  std::vector<LogMark> marks{};
  bool over = false;  // the process that was asked for has been followed by another
};

// Where to begin to read an output that is not wanted from its beginning.
struct LogSearch {
  LogName name;  // `err` is ignored
  int32_t run = kAllRuns;
  std::optional<uint64_t> last_lines{};
  Millis since = 0;
};
struct LogBegins {
  uint64_t out = 0, err = 0;
};

// Reads at most `limit` bytes from `offset`; a negative offset counts lines from the end (-10: the
// last ten).
LogChunk read_log_file(const std::string& path, int64_t offset, size_t limit);
LogChunk read_log_file(int fd, int64_t offset, size_t limit);

class LogStore {
 public:
  struct Limits {
    Millis keep_ms = 0;
    uint64_t max_bytes = 0;
  };
  struct Paths {
    std::string out, err;
  };

  explicit LogStore(std::string dir) : dir_(std::move(dir)) {}

  // What exists may have been removed by others: open() makes it again.
  void look_again();
  // Makes the job's folder if needed. Until close() the files belong to a running pod.
  Result<Paths> open(const std::string& job_uid, const std::string& pod_name,
                     const std::string& container);
  // For a pod that was running before the agent was restarted.
  void adopt(const std::string& job_uid, const std::string& pod_name);
  void close(const std::string& job_uid, const std::string& pod_name);
  // Whether a container has written a file.
  bool exists(const std::string& job_uid, const std::string& pod_name,
              const std::string& container) const;
  std::string folder(const std::string& job_uid) const { return dir_ + "/" + job_uid; }
  LogChunk read(const LogName& name, int64_t offset, size_t limit) const;
  // Likewise, from a file that was opened for us; null: there is none.
  LogChunk read(const LogName& name, const kj::AutoCloseFd& opened, int64_t offset,
                size_t limit) const;

  // Ends the chunk where the output of this process does, and adds the marks for its data if
  // `times`. Shortens the data if too many belong to it.
  void finish(const LogName& name, int32_t run, bool times, LogChunk& chunk, Millis wall_now);
  // For reading; null: there is none. `denied`: there is one, but we may not open it.
  kj::AutoCloseFd open_to_read(const LogName& name, bool& denied) const;
  LogBegins find(const LogSearch& search, const kj::AutoCloseFd& out, const kj::AutoCloseFd& err,
                 Millis wall_now);
  LogTimes& times() { return times_; }
  std::string output(const std::string& job_uid, const std::string& pod_name,
                     const std::string& container) const {
    return dir_ + "/" + job_uid + "/" + pod_name + "." + container;
  }

  // Looks at up to `entries` files. True: a pass over all files is complete.
  bool sweep(Limits limits, Millis wall_now, size_t entries);

 private:
  struct CloseDir {
    void operator()(DIR* dir) const { closedir(dir); }
  };
  struct File {
    Millis modified_ms;
    uint64_t size;
    size_t job;  // index into jobs
    std::string name;
    bool operator<(const File& other) const { return modified_ms < other.modified_ms; }
  };
  struct Pass {  // of a sweep
    std::vector<std::string> jobs;
    size_t job = 0;  // the one being read
    std::unique_ptr<DIR, CloseDir> open;
    size_t left = 0;          // files of that job to keep
    std::vector<File> files;  // candidates for removal, of all jobs
    uint64_t bytes = 0;       // of all files kept so far
    bool sorted = false;
    size_t oldest = 0;
  };

  Paths paths(const std::string& job_uid, const std::string& pod_name,
              const std::string& container) const;
  bool knows(const std::string& job_uid) const;
  bool runs(const std::string& job_uid, const std::string& file) const;
  void begin_pass();
  void look_at(Limits limits, Millis wall_now, const char* name);
  void end_job(Limits limits, Millis wall_now);

  std::string dir_;
  std::set<std::string> made_;          // folders known to exist, until look_again()
  std::multiset<std::string> running_;  // "<job uid>/<pod name>", once per running container
  std::unique_ptr<Pass> pass_;
  LogTimes times_;
};

}  // namespace muster::agent
