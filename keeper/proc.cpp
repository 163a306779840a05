#include "keeper/proc.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace muster::keeper {
namespace {

constexpr size_t kEnvironMax =
    1u << 20;  // the token comes first, unless a shell has sorted its environment

std::string read_file(const char* path, size_t max) {
  std::string bytes;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return bytes;
  char part[4096];
  for (ssize_t n; bytes.size() < max && (n = read(fd, part, sizeof part)) > 0;) {
    bytes.append(part, static_cast<size_t>(n));
  }
  close(fd);
  return bytes;
}

}  // namespace

std::string Token::text() const {
  char bytes[64];
  std::snprintf(bytes, sizeof bytes, "%s%016llx-%llx", kTokenName,
                static_cast<unsigned long long>(keeper), static_cast<unsigned long long>(entry));
  return bytes;
}

bool read_stat(int pid, ProcStat& stat) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  std::string line = read_file(path, 4096);
  size_t name_end = line.rfind(')');  // the name may contain spaces and parentheses
  if (name_end == std::string::npos) return false;
  unsigned long long ticks = 0;
  int fields =
      std::sscanf(line.c_str() + name_end + 1,
                  " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d"
                  " %llu",
                  &stat.state, &stat.ppid, &stat.pgrp, &stat.session, &ticks);
  stat.start_ticks = ticks;
  return fields == 5;
}

bool read_token(int pid, Token& token) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/environ", pid);
  std::string bytes = read_file(path, kEnvironMax);
  constexpr size_t kNameSize = sizeof kTokenName - 1;
  for (size_t at = 0; at < bytes.size();) {
    const char* variable = bytes.c_str() + at;
    if (std::strncmp(variable, kTokenName, kNameSize) == 0) {
      char* dash = nullptr;
      token.keeper = std::strtoull(variable + kNameSize, &dash, 16);
      if (*dash == '-') token.entry = std::strtoull(dash + 1, nullptr, 16);
      return true;
    }
    at += std::strlen(variable) + 1;
  }
  return !bytes.empty();
}

std::vector<int> all_pids() {
  std::vector<int> pids;
  DIR* dir = opendir("/proc");
  if (dir == nullptr) return pids;
  while (dirent* entry = readdir(dir)) {
    int pid = std::atoi(entry->d_name);
    if (pid > 0) pids.push_back(pid);
  }
  closedir(dir);
  return pids;
}

std::vector<int> adopted_pids() {
  static const std::string path =
      "/proc/self/task/" + std::to_string(getpid()) + "/children";  // main's thread id is the pid
  std::vector<int> pids;
  std::string bytes = read_file(path.c_str(), SIZE_MAX);
  const char* end = bytes.data() + bytes.size();
  for (const char* at = bytes.data(); at < end; ++at) {
    int pid = 0;
    auto [next, error] = std::from_chars(at, end, pid);
    if (error == std::errc{} && pid > 0) pids.push_back(pid);
    at = std::max(at, next);
  }
  return pids;
}

void kill_process(int pid, uint64_t start_ticks) {
  int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return;
  ProcStat stat;  // read after the open, so that a match proves whose descriptor it is
  if (read_stat(pid, stat) && stat.start_ticks == start_ticks) {
    syscall(SYS_pidfd_send_signal, fd, SIGKILL, nullptr, 0);
  }
  close(fd);
}

std::string boot_id() {
  std::string id = read_file("/proc/sys/kernel/random/boot_id", 64);
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

uint64_t random_number() {
  uint64_t number = 0;
  while (number == 0) {
    if (getrandom(&number, sizeof number, 0) != sizeof number) number = 0;
  }
  return number;
}

uint64_t boot_ns() {
  timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace muster::keeper
