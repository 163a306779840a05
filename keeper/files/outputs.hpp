// Outputs: the files that processes write to.
//
// A process starts with a file from a pool in the keeper's directory. The file gets its name once
// the process has lived for a while, or has ended and written something; a file that stayed empty
// is reused. So a short process that writes nothing, as most do, costs no file and no rename, which
// were the most expensive part of its start (docs/decisions/0009-empty-logs-used-again.md).
//
// outputs/names has a record for each file of the pool: the path that its process was given, ended
// by a zero. It is written before the file is handed out, so the successor of a dead keeper can
// name what was written.
//
// Invariants: a file in the pool that is not empty belongs to the path in its record; an existing
// file is never replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace muster::keeper {

class Outputs {
 public:
  // `dir_fd`: the keeper's directory. Names the files that a dead keeper left there, so none of its
  // processes may be left to write to them.
  explicit Outputs(int dir_fd);
  ~Outputs();
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;

  struct Opened {
    int fd = -1;          // -1: see errno
    bool pooled = false;  // the descriptor is ours and stays open
  };
  // Opens the output for `path`, for appending; mode 0600. `fresh`: no process had this path
  // before, so no file should be there yet. Any thread.
  Opened open(const std::string& path, bool fresh);
  // The process that writes to `path` has lived for a while: names the file now, if possible.
  void name(const std::string& path);
  // The process that wrote to `path` is gone, with all its descendants. On return, the file has its
  // name, or was empty and is gone; if it can't be named yet, trim() tries again.
  void close(const std::string& path);
  // The same, for files that can be reused at once, because they have no name and are empty.
  // Removes their paths from `paths`; for the others, call close(). Any thread.
  void reuse(std::vector<std::string>& paths);
  // Removes unused files if none was opened since the last call.
  void trim();
  // Removes all unused files.
  void remove_spares();

 private:
  struct File {
    int fd = -1;          // -1: not open
    bool exists = false;  // in the pool's directory
  };
  struct Use {
    size_t processes = 0;
    std::optional<size_t> file;  // of the pool; absent: it has its name
  };
  using Path = std::pair<size_t, std::string>;

  void recover();
  bool can_be_named(const std::string& path);
  std::optional<size_t> take();
  bool hand_out(size_t file, const std::string& path);
  bool rename_to(size_t file, const std::string& path);
  bool move_to(size_t file, const std::string& path);
  bool copy_to(size_t file, const std::string& path);
  void put_back(size_t file);
  void discard(size_t file);
  void recycle(const std::string& path);
  void remove_spares_locked();

  int dir_ = -1, names_ = -1;  // -1: no pool
  std::mutex mutex_;           // guards what follows
  std::vector<File> files_;
  std::vector<size_t> spares_;  // the last one is taken next
  std::unordered_map<std::string, Use> uses_;
  std::vector<Path> unnamed_;    // could not be moved to their paths
  bool opened_ = false;          // since the last trim
  std::string parent_;           // the last directory found writable
  uint64_t parent_seen_ns_ = 0;  // when it was
};

}  // namespace muster::keeper
