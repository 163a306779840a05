// Processes of a benchmark: the raw limit of the machine, and daemons that are measured and ended.
//
// The raw limit is what performance.md divides by: as many threads as cores, each posix_spawn and
// wait4 of /bin/true with one in flight, nothing recorded.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace muster::bench {

double seconds_now();  // monotonic

// Spawns a second.
double raw_spawns_per_s(int threads, double seconds);

// A program running with its output in a file; killed and reaped with the object.
class Daemon {
 public:
  Daemon(const std::vector<std::string>& command, const std::string& log_path);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  bool running();
  double cpu_s() const;  // of this process alone, user and system
  double resident_mb() const;
  void end();  // SIGTERM, and SIGKILL after a while

 private:
  pid_t pid_;
};

}  // namespace muster::bench
