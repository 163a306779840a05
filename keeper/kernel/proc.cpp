#include "keeper/kernel/proc.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <functional>
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

std::string digits_of(const Token& token, char between) {
  char bytes[64];
  std::snprintf(bytes, sizeof bytes, "%016llx%c%llx", static_cast<unsigned long long>(token.keeper),
                between, static_cast<unsigned long long>(token.entry));
  return bytes;
}

Token parse_token(const char* text, char between) {
  Token token;
  char* end = nullptr;
  token.keeper = std::strtoull(text, &end, 16);
  if (*end == between) token.entry = std::strtoull(end + 1, nullptr, 16);
  return token;
}

}  // namespace

std::string Token::text() const {
  return kTokenName + digits_of(*this, '-');
}

std::string Token::session_text() const {
  return kSessionName + digits_of(*this, '_') + "=1";
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

bool read_tokens(int pid, std::vector<Token>& tokens) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/environ", pid);
  const std::string bytes = read_file(path, kEnvironMax);
  std::vector<Token> processes;
  tokens.clear();
  for (size_t at = 0; at < bytes.size(); at += std::strlen(bytes.c_str() + at) + 1) {
    const char* const variable = bytes.c_str() + at;
    if (std::strncmp(variable, kTokenName, sizeof kTokenName - 1) == 0)
      processes.push_back(parse_token(variable + sizeof kTokenName - 1, '-'));
    else if (std::strncmp(variable, kSessionName, sizeof kSessionName - 1) == 0)
      tokens.push_back(parse_token(variable + sizeof kSessionName - 1, '_'));
  }
  std::ranges::sort(tokens, std::ranges::greater(), &Token::entry);
  tokens.insert(tokens.end(), processes.begin(), processes.end());
  return !bytes.empty();
}

std::optional<uid_t> user_of(int pid) {
  constexpr const char* kUid = "\nUid:";
  const std::string path = "/proc/" + std::to_string(pid) + "/status";
  const std::string status = read_file(path.c_str(), 4096);
  const size_t at = status.find(kUid);
  if (at == std::string::npos) return std::nullopt;
  return static_cast<uid_t>(std::strtoul(status.c_str() + at + std::strlen(kUid), nullptr, 10));
}

// As long as the kernel lets it be: 15 bytes.
std::string unborn_name(uint64_t keeper) {
  char name[16];
  std::snprintf(name, sizeof name, "m%014llx",
                static_cast<unsigned long long>(keeper & 0xffffffffffffff));
  return name;
}

bool is_unborn_of(int pid, const std::vector<uint64_t>& keepers) {
  const std::string comm = read_file(("/proc/" + std::to_string(pid) + "/comm").c_str(), 64);
  return std::ranges::any_of(
      keepers, [&comm](uint64_t keeper) { return comm == unborn_name(keeper) + "\n"; });
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

namespace {

const std::string& path_of_adopted() {
  static const std::string path =
      "/proc/self/task/" + std::to_string(getpid()) + "/children";  // main's thread id is the pid
  return path;
}

}  // namespace

bool none_adopted() {
  static const int fd = open(path_of_adopted().c_str(), O_RDONLY | O_CLOEXEC);
  char byte = 0;
  return fd >= 0 && pread(fd, &byte, 1, 0) == 0;
}

std::vector<int> adopted_pids() {
  std::vector<int> pids;
  std::string bytes = read_file(path_of_adopted().c_str(), SIZE_MAX);
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

std::string path_of_fd(int fd) {
  char path[PATH_MAX];
  const ssize_t length =
      readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "";
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
