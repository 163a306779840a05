// Ephemeral: the directory of a `muster run` without --data-dir, and the promise that nothing of it
// outlives the run.
//
// The keeper outlives everybody by design, also a `muster run` that was killed. So a small process
// of its own watches: when the run ends without having said how, it removes the directory, and a
// keeper whose directory is gone ends its pods.
#pragma once

#include "base/result.hpp"

#include <string>
#include <sys/types.h>

namespace muster::cli {

class Ephemeral {
 public:
  // Makes the directory under $TMPDIR (else /tmp), 0700. Forks: to be called before the first
  // thread. Those of runs that are dead for a day, kept for a look at what failed, are removed.
  static Result<Ephemeral> make();
  Ephemeral(Ephemeral&& other) noexcept;
  Ephemeral(const Ephemeral&) = delete;
  Ephemeral& operator=(const Ephemeral&) = delete;
  ~Ephemeral();

  const std::string& path() const { return path_; }
  // From here the directory stays, whatever becomes of this process: for a day, or for good.
  void keep(bool for_good);
  // Removes it now.
  void remove();

 private:
  Ephemeral(std::string path, int pipe, pid_t watcher)
      : path_(std::move(path)), pipe_(pipe), watcher_(watcher) {}

  std::string path_;
  int pipe_;  // to the watcher; -1: dismissed
  pid_t watcher_;
};

}  // namespace muster::cli
