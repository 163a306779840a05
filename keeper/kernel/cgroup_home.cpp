#include "keeper/kernel/cgroup_home.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <string_view>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace muster::keeper {
namespace {

constexpr std::string_view kLeaf = "/muster-agent";
constexpr int kMoves = 20;  // rounds, because a process may fork while it is moved

// Whether systemd has marked the cgroup as delegated.
bool is_delegated(const std::string& path) {
  char value = 0;
  for (const char* mark : {"trusted.delegate", "user.delegate"}) {
    if (getxattr(path.c_str(), mark, &value, 1) == 1 && value == '1') return true;
  }
  return false;
}

// Returns 0 or the errno.
int write_file(const std::string& path, std::string_view text) {
  int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  ssize_t written = write(fd, text.data(), text.size());
  int error = written == static_cast<ssize_t>(text.size()) ? 0 : errno;
  close(fd);
  return error;
}

std::vector<std::string> words_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> words;
  for (std::string word; file >> word;) words.push_back(word);
  return words;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  for (const std::string& each : words) {
    if (each == word) return true;
  }
  return false;
}

std::string above(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

bool systemd_manages() {
  return access("/run/systemd/system", F_OK) == 0;
}

// Whether the cgroup itself has no limit of memory, CPU time or processes.
bool unlimited(const std::string& path) {
  for (const char* file : {"/memory.max", "/memory.high", "/cpu.max", "/pids.max"}) {
    std::vector<std::string> words = words_of(path + file);
    if (!words.empty() && words.front() != "max") return false;
  }
  return true;
}

// Moves the processes of the home into its leaf. Empty, or why one stays.
std::string clear_out(const CgroupHome& home) {
  const std::string leaf = home.path + std::string(kLeaf);
  const std::vector<std::string> ours = {std::to_string(getpid()), std::to_string(getppid())};
  for (int round = 0; round < kMoves; ++round) {
    std::vector<std::string> pids = words_of(home.path + "/cgroup.procs");
    if (pids.empty()) return "";
    for (const std::string& pid : pids) {
      // 0: a process outside our PID namespace.
      if (pid == "0" || (!home.delegated && !has(ours, pid)))
        return "other processes are in the cgroup " + home.path;
    }
    if (mkdir(leaf.c_str(), 0755) < 0 && errno != EEXIST) return leaf + ": " + std::strerror(errno);
    for (const std::string& pid : pids) {
      int error = write_file(leaf + "/cgroup.procs", pid);
      if (error != 0 && error != ESRCH) return leaf + "/cgroup.procs: " + std::strerror(error);
    }
  }
  return "processes keep appearing in the cgroup " + home.path;
}

}  // namespace

std::string own_cgroup(std::istream& mounts, std::istream& membership) {
  std::string mount, own, line;
  while (std::getline(mounts, line)) {
    // id parent dev root mountpoint options... - type source options
    std::istringstream fields(line);
    std::string skip, root, point;
    fields >> skip >> skip >> skip >> root >> point;
    if (line.find(" - cgroup2 ") != std::string::npos && root == "/") mount = point;
  }
  while (std::getline(membership, line)) {
    if (line.starts_with("0::")) own = line.substr(3);
  }
  if (mount.empty() || own.empty()) return "";
  return own == "/" ? mount : mount + own;
}

std::vector<CgroupHome> cgroup_homes() {
  std::ifstream mounts("/proc/self/mountinfo"), membership("/proc/self/cgroup");
  std::string own = own_cgroup(mounts, membership);
  if (own.empty()) return {};
  if (own.ends_with(kLeaf)) own = above(own);  // the leaf of an earlier keeper
  for (std::string path = own; path.size() > 1; path = above(path)) {
    if (is_delegated(path)) return {{path, true}};
  }
  std::vector<CgroupHome> homes = {{own, false}};
  const bool below_another = access((above(own) + "/cgroup.procs").c_str(), F_OK) == 0;
  if (below_another && !systemd_manages() && unlimited(own)) homes.push_back({above(own), false});
  return homes;
}

std::string enable_controllers(const CgroupHome& home) {
  const std::vector<std::string> there = words_of(home.path + "/cgroup.controllers");
  const std::string control = home.path + "/cgroup.subtree_control";
  std::string why = "the cgroup " + home.path + " has no memory and cpu controllers";
  bool any = false, cleared = false;
  for (const char* controller : {"memory", "cpu"}) {
    if (!has(there, controller)) continue;
    const std::string order = std::string("+") + controller;
    int error = has(words_of(control), controller) ? 0 : write_file(control, order);
    if (error == EBUSY && !cleared) {
      if (std::string stays = clear_out(home); !stays.empty()) return stays;
      cleared = true;
      error = write_file(control, order);
    }
    if (error == 0) {
      any = true;
    } else {
      why = control + ": " + std::strerror(error);
    }
  }
  return any ? "" : why;
}

}  // namespace muster::keeper
