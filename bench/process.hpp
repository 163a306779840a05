// Processes of a benchmark: the raw limit of the machine, and daemons that are measured and ended.
//
// The raw limit is what performance.md divides by: as many threads as cores, each posix_spawn and
// wait4 of /bin/true with one in flight, nothing recorded.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
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

// Reads `--flag N` pairs, each N above 0, by handing them to set(flag, N), which tells whether it
// knows the flag. The exit code when the program is to end with its usage: 0 for --help, 2.
template <class Set>
std::optional<int> read_numbers(int argc, char** argv, Set set) {
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--help") return 0;
    const long n = i + 1 < argc ? std::strtol(argv[i + 1], nullptr, 10) : 0;
    if (n <= 0 || !set(flag, n)) return 2;
  }
  return std::nullopt;
}

}  // namespace muster::bench
