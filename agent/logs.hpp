// LogStore: the files that pods write to.
//
// DIR/<job uid>/<pod name>.<container>.stdout and .stderr: found by the job's uid and the pod's
// name alone, so they can be read when the job is long forgotten. They are removed when they are
// older than `keep`, and the oldest first while all together are larger than `max`; never those of
// a running pod. Files that stayed empty are the keeper's to use for other pods or to remove
// (keeper/outputs.hpp). A job's folder stays as long as its files would have, so that an empty log
// of a known job differs from an unknown one.
//
// sweep() walks in small steps: 10^6 files must not hold up a heartbeat.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <dirent.h>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace muster::agent {

struct LogChunk {
  bool found = false;
  std::string data;
  int64_t offset = 0;  // where `data` begins
  uint64_t size = 0;   // of the file
};

// At most `limit` bytes from `offset`; a negative offset counts lines from the end (-10: the last
// ten).
LogChunk read_log_file(const std::string& path, int64_t offset, size_t limit);

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

  // Makes the job's folder when needed; from here the files belong to a running pod.
  Result<Paths> open(const std::string& job_uid, const std::string& pod_name,
                     const std::string& container);
  // A pod that runs already (the agent was restarted).
  void adopt(const std::string& job_uid, const std::string& pod_name);
  void close(const std::string& job_uid, const std::string& pod_name);
  LogChunk read(const std::string& job_uid, const std::string& pod_name,
                const std::string& container, bool err, int64_t offset, size_t limit) const;

  // Looks at up to `entries` files. True: a pass over all of them is complete.
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
    size_t left = 0;          // files of it that stay
    std::vector<File> files;  // that may be removed
    uint64_t bytes = 0;       // of all that stay
    bool sorted = false;
    size_t oldest = 0;
  };

  Paths paths(const std::string& job_uid, const std::string& pod_name,
              const std::string& container) const;
  bool runs(const std::string& job_uid, const std::string& file) const;
  void begin_pass();
  void look_at(Limits limits, Millis wall_now, const char* name);
  void end_job(Limits limits, Millis wall_now);

  std::string dir_;
  std::set<std::string> made_;          // folders that are there
  std::multiset<std::string> running_;  // "<job uid>/<pod name>", once a running container
  std::unique_ptr<Pass> pass_;
};

}  // namespace muster::agent
