#include "keeper/kernel/cgroup.hpp"

#include "keeper/protocol.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sstream>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace muster::keeper {
namespace {

constexpr uint64_t kCpuPeriodUs = 100'000;

bool write_to(int dir, const std::string& path, std::string_view value) {
  int fd = openat(dir, path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool written = write(fd, value.data(), value.size()) == static_cast<ssize_t>(value.size());
  close(fd);
  return written;
}

std::string read_from(int dir, const std::string& path) {
  int fd = openat(dir, path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  char text[1024];
  ssize_t size = read(fd, text, sizeof text);
  close(fd);
  return {text, static_cast<size_t>(size > 0 ? size : 0)};
}

// For example "populated 0\nfrozen 0\n". A removed cgroup can't be read and counts as empty.
std::string_view events_of(const Cgroup& group, char (&text)[256]) {
  ssize_t size = pread(group.events, text, sizeof text, 0);
  return size > 0 ? std::string_view(text, static_cast<size_t>(size)) : "populated 0";
}

void remove_below(int dir, const std::string& name) {
  if (unlinkat(dir, name.c_str(), AT_REMOVEDIR) == 0) return;
  int list_fd = openat(dir, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* list = list_fd < 0 ? nullptr : fdopendir(list_fd);
  if (list == nullptr) return;
  while (dirent* entry = readdir(list)) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') remove_below(list_fd, entry->d_name);
  }
  closedir(list);
  unlinkat(dir, name.c_str(), AT_REMOVEDIR);
}

}  // namespace

Cgroup::~Cgroup() {
  for (int fd : {dir, procs, events, kill}) {
    if (fd >= 0) close(fd);
  }
}

Cgroups::Cgroups(uint64_t keeper) : homes_(cgroup_homes()) {
  char name[40];
  std::snprintf(name, sizeof name, "/muster-%016" PRIx64, keeper);
  name_ = name;
}

Cgroups::~Cgroups() {
  pool_.clear();
  if (dir_ >= 0) close(dir_);
}

bool Cgroups::open() {
  for (const CgroupHome& home : homes_) {
    path_ = home.path + name_;
    dir_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_ >= 0) return true;
  }
  return false;
}

bool Cgroups::create(size_t most) {
  most_ = most;
  why_ = "cgroup v2 is not mounted";
  // Prefer a home with controllers; one without still shows what is left of a pod.
  std::vector<CgroupHome> with, without;
  for (const CgroupHome& home : homes_) {
    std::string why = with.empty() ? enable_controllers(home) : "";
    (why.empty() ? with : without).push_back(home);
    if (!why.empty() && without.size() == 1) why_ = why;
  }
  with.insert(with.end(), without.begin(), without.end());
  for (const CgroupHome& home : with) {
    if (make_below(home.path + name_)) return true;
  }
  return false;
}

bool Cgroups::make_below(const std::string& path) {
  if (mkdir(path.c_str(), 0755) < 0) {
    why_ = path + ": " + std::strerror(errno);
    return false;
  }
  path_ = path;
  dir_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir_ >= 0 && faccessat(dir_, "cgroup.kill", W_OK, 0) == 0) {
    can_ = kCanCgroup;
    if (write_to(dir_, "cgroup.subtree_control", "+memory")) can_ |= kCanLimitMemory;
    if (write_to(dir_, "cgroup.subtree_control", "+cpu")) can_ |= kCanLimitCpu;
    return true;
  }
  why_ = path + "/cgroup.kill: " + std::strerror(errno) + " (Linux 5.14 or newer has it)";
  if (dir_ >= 0) close(dir_);
  dir_ = -1;
  remove();
  return false;
}

bool Cgroups::set(const std::string& name, const char* file, const std::string& value) const {
  return write_to(dir_, name + "/" + file, value);
}

std::unique_ptr<Cgroup> Cgroups::make(const Limits& limits) {
  auto group = std::make_unique<Cgroup>();
  group->limited = limits.any();
  {
    std::lock_guard lock(mutex_);
    group->name = (group->limited ? "l" : "p") + std::to_string(++last_);
  }
  if (mkdirat(dir_, group->name.c_str(), 0755) < 0) return nullptr;
  auto file = [this, &group](const char* name, int flags) {
    return openat(dir_, (group->name + "/" + name).c_str(), flags | O_CLOEXEC);
  };
  group->dir = openat(dir_, group->name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  group->procs = file("cgroup.procs", O_WRONLY);
  group->events = file("cgroup.events", O_RDONLY);
  group->kill = file("cgroup.kill", O_WRONLY);
  if (group->dir < 0 || group->procs < 0 || group->events < 0 || group->kill < 0) {
    unlinkat(dir_, group->name.c_str(), AT_REMOVEDIR);
    return nullptr;
  }
  if (limits.memory_bytes > 0) {
    set(group->name, "memory.max", std::to_string(limits.memory_bytes));
    set(group->name, "memory.swap.max", "0");   // else it would swap instead
    set(group->name, "memory.oom.group", "1");  // kill the whole container or nothing
  }
  if (limits.cpu_millis > 0) {
    set(group->name, "cpu.max",
        std::to_string(limits.cpu_millis * kCpuPeriodUs / 1000) + " " +
            std::to_string(kCpuPeriodUs));
  }
  if (!limits.cpus.empty()) set(group->name, "cpuset.cpus", limits.cpus);
  if (limits.nice != 0) set(group->name, "cpu.weight.nice", std::to_string(limits.nice));
  return group;
}

// The controller is turned on once it is needed: it makes all cgroups dearer.
bool Cgroups::sets_cpus() {
  std::call_once(cpus_asked_, [this] {
    write_to(dir_, "../cgroup.subtree_control", "+cpuset");
    sets_cpus_ = write_to(dir_, "cgroup.subtree_control", "+cpuset");
  });
  return sets_cpus_;
}

std::unique_ptr<Cgroup> Cgroups::take(Limits limits) {
  // A limit that can't be enforced needs no separate cgroup.
  if ((can_ & kCanLimitMemory) == 0) limits.memory_bytes = 0;
  if ((can_ & kCanLimitCpu) == 0) limits.cpu_millis = 0, limits.nice = 0;
  if (!limits.cpus.empty() && !sets_cpus()) limits.cpus.clear();
  std::unique_ptr<Cgroup> group;
  {
    std::lock_guard lock(mutex_);
    if (out_ >= most_) return nullptr;
    ++out_;
    if (!limits.any() && !pool_.empty()) {
      group = std::move(pool_.back());
      pool_.pop_back();
    }
  }
  if (group == nullptr) group = make(limits);
  if (group == nullptr) {
    std::lock_guard lock(mutex_);
    --out_;
  }
  return group;
}

void Cgroups::recycle(std::unique_ptr<Cgroup> group) {
  struct stat info {};
  char text[256];
  // Reuse it only if it is as good as new: no leftovers of the pod, such as nested cgroups, and
  // never killed, because the kernel may apply an old kill to a process started in it later.
  bool as_new = !group->limited && !group->killed &&
                events_of(*group, text).starts_with("populated 0\nfrozen 0\n") &&
                fstatat(dir_, group->name.c_str(), &info, 0) == 0 && info.st_nlink <= 2;
  std::lock_guard lock(mutex_);
  --out_;
  if (as_new) {
    pool_.push_back(std::move(group));
  } else {
    remove_below(dir_, group->name);
  }
}

bool Cgroups::is_empty(const Cgroup& group) {
  char text[256];
  return events_of(group, text).starts_with("populated 0");
}

void Cgroups::kill(Cgroup& group) {
  group.killed = true;
  if (write(group.kill, "1", 1) < 0) errno = 0;  // it was removed, so it is empty
}

bool Cgroups::out_of_memory(const Cgroup& group) const {
  if (!group.limited) return false;
  std::istringstream events(read_from(dir_, group.name + "/memory.events"));
  std::string name;
  for (uint64_t count = 0; events >> name >> count;) {
    if (name == "oom_kill" && count > 0) return true;
  }
  return false;
}

void Cgroups::measure(const Cgroup& group, core::Usage& used) const {
  if (!group.limited) return;  // of the pool
  std::istringstream peak(read_from(dir_, group.name + "/memory.peak"));
  if (uint64_t bytes = 0; peak >> bytes && bytes > 0) used.peak_bytes = bytes;
  std::istringstream times(read_from(dir_, group.name + "/cpu.stat"));
  std::string name;
  for (uint64_t us = 0; times >> name >> us;) {
    if (name == "user_usec") used.user_us = us;
    if (name == "system_usec") used.system_us = us;
  }
}

void Cgroups::kill_all() {
  write_to(dir_, "cgroup.kill", "1");
  int list_fd = openat(dir_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* list = list_fd < 0 ? nullptr : fdopendir(list_fd);
  if (list == nullptr) return;
  while (dirent* entry = readdir(list)) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') remove_below(list_fd, entry->d_name);
  }
  closedir(list);
}

void Cgroups::remove() {
  rmdir(path_.c_str());
}

}  // namespace muster::keeper
