// Processes in benchmarks: the raw spawn rate of the machine, and daemons to measure and stop.
//
// The raw spawn rate is the divisor of muster-bench: each thread runs posix_spawn and wait4 of the
// same program, one process at a time, and records nothing.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace muster::bench {

double seconds_now();  // monotonic

// The build directory, where muster is; this program is in its subfolder bench.
std::string bin_dir_of_this();

// Runs a program (a null-terminated argv) to its end, as cheaply as the C library can.
void spawn_and_wait(char* const* argv);

// Spawns of this program per second.
double raw_spawns_per_s(int threads, double seconds, const std::string& program);

double median(std::vector<double> values);             // not empty
double percentile(std::vector<double> values, int n);  // likewise; 0 <= n < 100

// Runs a shell command to its end with its output discarded; returns its wall time in seconds. Ends
// this program if the command fails.
double command_seconds(const std::string& command);

// CPU time that the process has used so far, in seconds; 0 if it does not exist.
double cpu_seconds_of(pid_t pid);
// Bytes that the process has caused to be written to disk; 0 if it does not exist.
double disk_bytes_of(pid_t pid);

// A program running with its output in a file; stopped and reaped by the destructor.
class Daemon {
 public:
  // `environment`: NAME=VALUE, added to ours.
  Daemon(const std::vector<std::string>& command, const std::string& log_path,
         const std::vector<std::string>& environment = {});
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  bool running();
  double cpu_s() const;  // user and system time of this process alone
  double disk_bytes() const;
  double resident_mb() const;
  void end();   // SIGTERM, then SIGKILL after 10 s
  void kill();  // SIGKILL

 private:
  pid_t pid_;
};

// Reads `--flag N` pairs, with N > 0, and passes each to set(flag, N), which returns false for an
// unknown flag. Returns an exit code if the program should print its usage and exit: 0 for --help,
// else 2.
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
