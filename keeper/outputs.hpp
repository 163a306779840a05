// Outputs: the files that processes write to.
//
// A file that stayed empty is not removed and another one made, but renamed to be the next
// process's: making and removing files is the dearest part of starting a short process, the more so
// as a file system may not use a file's number again for minutes and looks for another one among
// all of those (docs/decisions/0009-empty-logs-used-again.md).
//
// Always holds: a file is spare only while nobody has it open by us, and it is empty; what is at a
// path already is never replaced.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace muster::keeper {

class Outputs {
 public:
  // Opens `path` to append to, made 0600 when it is not there. -1: errno tells. Any thread.
  int open(const std::string& path);
  // The process that wrote to `path` is gone, with all that it left.
  void close(const std::string& path);
  // Removes spare files if no file was opened since the last call: nobody seems to need them.
  void trim();
  // Removes all spare files.
  void remove_spares();

 private:
  bool take_spare_for(const std::string& path);
  void remove_spares_locked();

  std::mutex mutex_;  // of all
  std::unordered_map<std::string, size_t> users_;
  std::unordered_set<std::string> spares_;
  bool opened_ = false;  // since the last trim
};

}  // namespace muster::keeper
