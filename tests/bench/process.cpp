#include "tests/bench/process.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

extern char** environ;

namespace muster::bench {

namespace {

constexpr double kPatience = 10;  // seconds between SIGTERM and SIGKILL

// CPU time of another process; 0 if it cannot be read.
double cpu_clock_s(pid_t pid) {
  clockid_t clock;
  timespec t;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

double seconds_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::string bin_dir_of_this() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path().string();
}

void spawn_and_wait(char* const* argv) {
  pid_t pid;
  const int failed = posix_spawn(&pid, argv[0], nullptr, nullptr, argv, environ);
  MUSTER_CHECK(failed == 0, argv[0], strerror(failed));
  int status;
  MUSTER_CHECK(wait4(pid, &status, 0, nullptr) == pid && status == 0, status);
}

double raw_spawns_per_s(int threads, double seconds, const std::string& program) {
  std::atomic<uint64_t> spawned{0};
  std::vector<std::thread> workers;
  double begin = seconds_now(), until = begin + seconds;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&spawned, &program, until] {
      std::string path = program;
      char* const arguments[] = {path.data(), nullptr};
      while (seconds_now() < until) {
        spawn_and_wait(arguments);
        ++spawned;
      }
    });
  }
  for (auto& worker : workers) worker.join();
  return static_cast<double>(spawned) / (seconds_now() - begin);
}

double percentile(std::vector<double> values, int n) {
  std::sort(values.begin(), values.end());
  return values[values.size() * static_cast<size_t>(n) / 100];
}

double median(std::vector<double> values) {
  return percentile(std::move(values), 50);
}

double command_seconds(const std::string& command) {
  const double begin = seconds_now();
  const int status = std::system(("exec >/dev/null 2>&1; " + command).c_str());
  const double seconds = seconds_now() - begin;
  MUSTER_CHECK(status == 0, command, status);
  return seconds;
}

Daemon::Daemon(const std::vector<std::string>& command, const std::string& log_path,
               const std::vector<std::string>& environment) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  std::vector<char*> arguments;
  for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> variables;
  for (const auto& variable : environment) variables.push_back(const_cast<char*>(variable.c_str()));
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(nullptr);
  int failed =
      posix_spawn(&pid_, arguments[0], &files, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&files);
  MUSTER_CHECK(failed == 0, command[0], strerror(failed));
}

Daemon::~Daemon() {
  end();
}

bool Daemon::running() {
  if (pid_ == 0) return false;
  if (waitpid(pid_, nullptr, WNOHANG) == 0) return true;
  pid_ = 0;
  return false;
}

double Daemon::resident_mb() const {
  std::ifstream in("/proc/" + std::to_string(pid_) + "/statm");
  double pages = 0, resident = 0;
  in >> pages >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

double cpu_seconds_of(pid_t pid) {
  return pid == 0 ? 0 : cpu_clock_s(pid);
}

double disk_bytes_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/io");
  std::string key;
  double value = 0;
  while (in >> key >> value)
    if (key == "write_bytes:") return value;
  return 0;
}

double Daemon::disk_bytes() const {
  return disk_bytes_of(pid_);
}

double Daemon::cpu_s() const {
  return cpu_seconds_of(pid_);
}

void Daemon::kill() {
  if (!running()) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

void Daemon::end() {
  if (!running()) return;
  ::kill(pid_, SIGTERM);
  double until = seconds_now() + kPatience;
  while (running() && seconds_now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

}  // namespace muster::bench
