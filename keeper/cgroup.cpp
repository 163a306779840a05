#include "keeper/cgroup.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::keeper {
namespace {

// Our own cgroup's directory; empty: cgroup v2 is not mounted.
std::string own_cgroup() {
  std::string mount, own, line;
  std::ifstream mounts("/proc/self/mountinfo");
  while (std::getline(mounts, line)) {
    // id parent dev root mountpoint options... - type source options
    std::istringstream fields(line);
    std::string skip, root, point;
    fields >> skip >> skip >> skip >> root >> point;
    if (line.find(" - cgroup2 ") != std::string::npos && root == "/") mount = point;
  }
  std::ifstream groups("/proc/self/cgroup");
  while (std::getline(groups, line)) {
    if (line.starts_with("0::")) own = line.substr(3);
  }
  if (mount.empty() || own.empty()) return "";
  return own == "/" ? mount : mount + own;
}

std::string name_of(uint64_t entry) {
  char name[32];
  std::snprintf(name, sizeof name, "%" PRIx64, entry);
  return name;
}

bool write_one(int dir, const std::string& path) {
  int fd = openat(dir, path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool written = write(fd, "1", 1) == 1;
  close(fd);
  return written;
}

}  // namespace

Cgroups::Cgroups(uint64_t keeper) {
  std::string own = own_cgroup();
  char name[40];
  std::snprintf(name, sizeof name, "/muster-%016" PRIx64, keeper);
  if (!own.empty()) path_ = own + name;
}

Cgroups::~Cgroups() {
  if (dir_ >= 0) close(dir_);
}

bool Cgroups::open() {
  if (path_.empty()) return false;
  dir_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return dir_ >= 0;
}

bool Cgroups::create() {
  if (path_.empty() || mkdir(path_.c_str(), 0755) < 0 || !open()) return false;
  if (faccessat(dir_, "cgroup.kill", W_OK, 0) == 0) return true;  // Linux 5.14
  remove();
  return false;
}

int Cgroups::add(uint64_t entry) {
  std::string name = name_of(entry);
  if (mkdirat(dir_, name.c_str(), 0755) < 0) return -1;
  int fd = openat(dir_, (name + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) unlinkat(dir_, name.c_str(), AT_REMOVEDIR);
  return fd;
}

void Cgroups::kill(uint64_t entry) {
  write_one(dir_, name_of(entry) + "/cgroup.kill");
}

bool Cgroups::remove_if_empty(uint64_t entry) {
  std::string name = name_of(entry);
  if (unlinkat(dir_, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
  // It has children of its own if a pod made some: they are empty of processes once it is.
  int fd = openat(dir_, (name + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  char text[256];
  ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0 || !std::string_view(text, static_cast<size_t>(size)).starts_with("populated 0")) {
    return false;
  }
  unlinkat(dir_, name.c_str(), AT_REMOVEDIR);  // it may have become empty since
  return true;
}

void Cgroups::kill_all() {
  write_one(dir_, "cgroup.kill");
  int list_fd = openat(dir_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* list = list_fd < 0 ? nullptr : fdopendir(list_fd);
  if (list == nullptr) return;
  while (dirent* entry = readdir(list)) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
      unlinkat(dir_, entry->d_name, AT_REMOVEDIR);
    }
  }
  closedir(list);
}

void Cgroups::remove() {
  rmdir(path_.c_str());
}

}  // namespace muster::keeper
