// Ephemeral: the directory of a `muster run` or `muster dev` without --data-dir, or of a drill's
// scratch cluster. Unless it is kept, nothing in it outlives the command.
//
// By design the keeper outlives every other process, even a `muster run` that was killed. So a
// small watcher process removes the directory if the run ends without calling keep(), and a keeper
// whose directory is gone kills its pods.
#pragma once

#include "base/result.hpp"

#include <string>
#include <sys/types.h>

namespace muster::cli {

class Ephemeral {
 public:
  // Creates the directory under $TMPDIR (default /tmp), mode 0700. Forks, so call it before the
  // first thread. Also removes directories of runs that have been dead for a day, unless they were
  // given --keep.
  static Result<Ephemeral> make() { return make("muster-run-"); }
  // With another name prefix than that of runs.
  static Result<Ephemeral> make(const std::string& prefix);
  Ephemeral(Ephemeral&& other) noexcept;
  Ephemeral(const Ephemeral&) = delete;
  Ephemeral& operator=(const Ephemeral&) = delete;
  ~Ephemeral();

  const std::string& path() const { return path_; }
  // Keeps the directory from now on, whatever happens to this process: for a day, or for good.
  void keep(bool for_good);
  // Removes it now.
  void remove();

 private:
  Ephemeral(std::string path, int pipe, pid_t watcher)
      : path_(std::move(path)), pipe_(pipe), watcher_(watcher) {}

  std::string path_;
  int pipe_;  // to the watcher; -1: kept or removed
  pid_t watcher_;
};

}  // namespace muster::cli
