// Outputs: the files that processes write to.
//
// A file that stayed empty is renamed for the next process: creating and removing files is the most
// expensive part of starting a short process, more so because a file system may not reuse an inode
// number for minutes and has to search past all of those
// (docs/decisions/0009-empty-logs-used-again.md).
//
// Invariants: a spare file is empty and no process uses it; an existing file is never replaced.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace muster::keeper {

class Outputs {
 public:
  // Opens `path` for appending, creating it with mode 0600. -1: see errno. Any thread.
  int open(const std::string& path);
  // The process that wrote to `path` is gone, with all its descendants.
  void close(const std::string& path);
  // Removes spare files if no file was opened since the last call.
  void trim();
  // Removes all spare files.
  void remove_spares();

 private:
  bool take_spare_for(const std::string& path);
  void remove_spares_locked();

  std::mutex mutex_;  // guards all members
  std::unordered_map<std::string, size_t> users_;
  std::unordered_set<std::string> spares_;
  bool opened_ = false;  // since the last trim
};

}  // namespace muster::keeper
