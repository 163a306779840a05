#include "keeper/files/pod_dirs.hpp"

#include "base/files/owned_path.hpp"
#include "keeper/kernel/proc.hpp"
#include "keeper/kernel/tell.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace muster::keeper {
namespace {

constexpr const char* kGone = ".gone-";
constexpr const char* kLeft = ".left-";
constexpr int kDirFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr mode_t kOurs = 0711, kTheirs = 0700;
constexpr size_t kStepEntries = 2'000;  // of a measurement
constexpr size_t kMeasuredAtOnce = 8;   // volumes
constexpr const char* kMemory = "/dev/shm";

Error scratch_error(const std::string& what, int error) {
  return {Errc::unavailable, what + ": " + std::strerror(error), {}};
}

// Calls `act` with the name and type of each entry; false: it cannot be read.
template <class Act>
bool for_entries(int dir, Act act) {
  const int fd = openat(dir, ".", kDirFlags);
  DIR* const list = fd < 0 ? nullptr : fdopendir(fd);
  if (list == nullptr) {
    if (fd >= 0) close(fd);
    return false;
  }
  while (const dirent* entry = readdir(list)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    act(name);
  }
  closedir(list);
  return true;
}

// Opens a directory, but no link and nothing on another file system. O_PATH: whatever its mode.
Fd open_dir(int parent, const std::string& name, int flags = O_RDONLY) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  return Fd(static_cast<int>(syscall(SYS_openat2, parent, name.c_str(), &how, sizeof how)));
}

// Lets us empty and move a directory. By its descriptor, because its name may become a link.
void make_writable(int parent, const std::string& name) {
  const Fd dir = open_dir(parent, name, O_PATH);
  if (dir) chmod(("/proc/self/fd/" + std::to_string(dir.get())).c_str(), kTheirs);
}

// Empties `top`. Each directory below it is first moved up into it, so that the depth does not
// matter. What cannot be removed stays.
void empty_dir(int top) {
  constexpr const char* kMoved = ".muster-gone-";
  uint64_t number = 0;
  std::vector<std::string> left = {"."};
  while (!left.empty()) {
    const std::string one = std::move(left.back());
    left.pop_back();
    make_writable(top, one);
    if (const Fd dir = open_dir(top, one); dir) {
      std::vector<std::string> names;
      for_entries(dir.get(), [&names](const std::string& entry) { names.push_back(entry); });
      for (const std::string& entry : names) {
        if (unlinkat(dir.get(), entry.c_str(), 0) == 0) continue;
        make_writable(dir.get(), entry);
        if (unlinkat(dir.get(), entry.c_str(), AT_REMOVEDIR) == 0) continue;
        if (one == ".") {
          left.push_back(entry);
          continue;
        }
        std::string moved = kMoved + std::to_string(++number);
        if (renameat(dir.get(), entry.c_str(), top, moved.c_str()) == 0)
          left.push_back(std::move(moved));
      }
    }
    if (one != ".") unlinkat(top, one.c_str(), AT_REMOVEDIR);
  }
}

// This thread's access to files is that of another user, without groups. System calls, since the C
// library would change all threads. Only root may.
class ActAs {
 public:
  ActAs(uid_t uid, gid_t gid) : acts_(geteuid() == 0 && uid != 0) {
    if (!acts_) return;
    syscall(SYS_setgroups, 0, nullptr);
    syscall(SYS_setfsgid, gid);
    syscall(SYS_setfsuid, uid);
    // It returns what was set before, and does not report a failure.
    failed_ = static_cast<uid_t>(syscall(SYS_setfsuid, -1)) != uid ||
              static_cast<gid_t>(syscall(SYS_setfsgid, -1)) != gid;
  }
  ~ActAs() {
    if (!acts_) return;
    syscall(SYS_setfsuid, 0);
    syscall(SYS_setfsgid, 0);
  }
  ActAs(const ActAs&) = delete;
  ActAs& operator=(const ActAs&) = delete;
  bool failed() const { return failed_; }

 private:
  const bool acts_;
  bool failed_ = false;
};

// A directory that is ours and that nobody else can write to.
Result<Fd> our_dir(int parent, const std::string& name, const std::string& shown) {
  if (mkdirat(parent, name.c_str(), kTheirs) != 0 && errno != EEXIST)
    return scratch_error("make " + shown, errno);
  Fd dir(openat(parent, name.c_str(), kDirFlags));
  if (dir.get() < 0) return scratch_error("open " + shown, errno);
  struct stat info {};
  if (fstat(dir.get(), &info) != 0 || info.st_uid != geteuid())
    return Error{Errc::unavailable, shown + ": it must belong to the keeper's user", {}};
  return dir;
}

// Where this keeper's directories in memory are: what an earlier one left, else a name that nobody
// can guess; empty: nowhere.
std::string memory_path_for(int work_fd) {
  struct statfs system {};
  struct stat info {};
  const Fd base(::open(kMemory, kDirFlags));
  if (!base || fstatfs(base.get(), &system) != 0 || system.f_type != TMPFS_MAGIC ||
      access(kMemory, W_OK | X_OK) != 0 || fstat(work_fd, &info) != 0)
    return "";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "muster-%llx-%llx-",
                static_cast<unsigned long long>(info.st_dev),
                static_cast<unsigned long long>(info.st_ino));
  const std::string prefix = text.data();
  std::string name;
  for_entries(base.get(), [&](const std::string& entry) {
    struct stat found {};
    if (entry.starts_with(prefix) &&
        fstatat(base.get(), entry.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(found.st_mode) && found.st_uid == geteuid())
      name = entry;
  });
  if (name.empty()) {
    std::snprintf(text.data(), text.size(), "%016llx",
                  static_cast<unsigned long long>(random_number()));
    name = prefix + text.data();
  }
  return std::string(kMemory) + "/" + name;
}

// The name of a path directly below kMemory.
std::string name_in_memory(const std::string& path) {
  return path.substr(std::strlen(kMemory) + 1);
}

}  // namespace

Result<std::unique_ptr<PodDirs>> PodDirs::open(int work_fd, bool shared) {
  const char* const setting = std::getenv(kScratchSetting);
  Fd base;
  std::string name = "scratch";
  if (setting != nullptr && *setting != '\0') {
    const std::string path = setting;
    if (path[0] != '/')
      return Error{
          Errc::unavailable, path + ": the scratch directory must be an absolute path", {}};
    mkdir(path.c_str(), 0755);
    base = Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat info {};
    if (base.get() < 0 || fstat(work_fd, &info) != 0) return scratch_error(path, errno);
    char number[32];
    std::snprintf(number, sizeof number, "%llx", static_cast<unsigned long long>(info.st_ino));
    name = number;
  } else if (shared) {
    base = Fd(openat(work_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::string work_dir = path_of_fd(work_fd);
    name = work_dir.substr(work_dir.rfind('/') + 1) + ".scratch";
  } else {
    base = Fd(openat(work_fd, ".", kDirFlags));
  }
  if (!base) return scratch_error("work-dir", errno);
  const std::string path = path_of_fd(base.get()) + "/" + name;
  auto dir = our_dir(base.get(), name, path);
  if (!dir) return dir.error();
  if (shared && !only_by(0, path))
    return Error{Errc::unavailable,
                 path +
                     ": all directories on the way to it must be root's, or others could replace "
                     "it; set " +
                     kScratchSetting + " to a directory for which that is so",
                 {}};
  return std::unique_ptr<PodDirs>(
      new PodDirs(std::move(*dir), path, memory_path_for(work_fd), shared));
}

PodDirs::PodDirs(Fd dir, std::string path, std::string memory_path, bool shared)
    : dir_(std::move(dir)),
      path_(std::move(path)),
      memory_path_(std::move(memory_path)),
      shared_(shared) {
  for (const bool in_memory : {false, true})
    with_root(in_memory, [this, in_memory](int root) {
      for_entries(root, [this, in_memory](const std::string& name) {
        if (name.starts_with(kGone)) discard(in_memory, name);
      });
    });
  std::thread([this] { work(); }).detach();
}

template <class Act>
void PodDirs::with_root(bool in_memory, Act act) {
  if (!in_memory) return act(dir_.get());
  if (memory_path_.empty()) return;
  const Fd root(::open(memory_path_.c_str(), kDirFlags));
  struct stat info {};
  if (root && fstat(root.get(), &info) == 0 && info.st_uid == geteuid()) act(root.get());
}

Status PodDirs::make(PodId pod, const core::node::Space& space, uid_t uid, gid_t gid) {
  if (!space.dirs.empty())
    if (Status made = make_in(dir_.get(), pod, false, space.dirs, uid, gid); !made) return made;
  if (space.memory_dirs.empty()) return Nothing{};
  if (memory_path_.empty())
    return Error{Errc::unavailable,
                 std::string(kMemory) + ": it must be a tmpfs that the keeper's user can write to",
                 {}};
  std::lock_guard lock(memory_mutex_);
  const Fd base(::open(kMemory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!base) return scratch_error(kMemory, errno);
  auto root = our_dir(base.get(), name_in_memory(memory_path_), memory_path_);
  if (!root) return root.error();
  return make_in(root->get(), pod, true, space.memory_dirs, uid, gid);
}

Status PodDirs::make_in(int root, PodId pod, bool in_memory,
                        const std::vector<core::node::SpaceDir>& dirs, uid_t uid, gid_t gid) {
  const std::string name = core::node::pod_dir_name(pod);
  const std::string shown = (in_memory ? memory_path_ : path_) + "/" + name;
  auto dir = our_dir(root, name, shown);
  if (!dir) return dir.error();
  if (shared_ && (fchmod(root, kOurs) != 0 || fchmod(dir->get(), kOurs) != 0))
    return scratch_error("chmod " + shown, errno);
  for (const core::node::SpaceDir& one : dirs) {
    if (mkdirat(dir->get(), one.name.c_str(), kTheirs) == 0) {
      if (shared_ && fchownat(dir->get(), one.name.c_str(), uid, gid, AT_SYMLINK_NOFOLLOW) != 0)
        return scratch_error("chown " + shown + "/" + one.name, errno);
    } else if (errno != EEXIST) {
      return scratch_error("make " + shown + "/" + one.name, errno);
    }
    if (one.limit_bytes == 0) continue;
    std::lock_guard lock(mutex_);
    limits_[{pod, one.name}] = {in_memory, one.limit_bytes};
  }
  return Nothing{};
}

void PodDirs::release(PodId pod) {
  {
    std::lock_guard lock(mutex_);
    std::erase_if(limits_, [pod](const auto& one) { return one.first.first == pod; });
    std::erase_if(full_, [pod](const Full& one) { return one.pod == pod; });
  }
  for (const bool in_memory : {false, true}) discard(in_memory, core::node::pod_dir_name(pod));
}

void PodDirs::keep(const std::set<PodId>& pods) {
  std::set<PodId> gone;
  for (const bool in_memory : {false, true})
    with_root(in_memory, [&](int root) {
      for_entries(root, [&](const std::string& name) {
        const auto pod = core::node::pod_of_dir(name);
        if (pod && !pods.contains(*pod)) gone.insert(*pod);
      });
    });
  for (const PodId pod : gone) release(pod);
}

// Gives it an unused name, and has the thread remove it.
void PodDirs::discard(bool in_memory, const std::string& name) {
  with_root(in_memory, [&](int root) {
    std::lock_guard lock(mutex_);
    std::string gone;
    do {
      gone = kGone + std::to_string(++gone_);
    } while (gone != name && faccessat(root, gone.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0);
    if (renameat(root, name.c_str(), root, gone.c_str()) != 0) return;  // there is none
    to_remove_.push_back({in_memory, std::move(gone)});
    news_.notify_one();
  });
}

std::vector<PodDirs::Full> PodDirs::take_full() {
  std::lock_guard lock(mutex_);
  return std::exchange(full_, {});
}

// Empties each volume as its user, and removes the rest as ourselves.
void PodDirs::remove(int root, const std::string& name) {
  make_writable(root, name);
  {
    const Fd pod = open_dir(root, name);
    if (!pod) {
      unlinkat(root, name.c_str(), 0);
      return;
    }
    std::vector<std::string> volumes;
    for_entries(pod.get(), [&volumes](const std::string& entry) { volumes.push_back(entry); });
    for (const std::string& volume : volumes) {
      const Fd dir = open_dir(pod.get(), volume, O_PATH);
      struct stat info {};
      if (dir && fstat(dir.get(), &info) == 0) {
        const ActAs user(info.st_uid, info.st_gid);
        if (!user.failed()) empty_dir(dir.get());
      }
      if (unlinkat(pod.get(), volume.c_str(), AT_REMOVEDIR) != 0)
        unlinkat(pod.get(), volume.c_str(), 0);
    }
  }
  if (unlinkat(root, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return;
  const int error = errno;
  std::string left;
  for (uint64_t number = 1; left.empty() && number != 0; ++number) {
    left = kLeft + std::to_string(number);
    if (faccessat(root, left.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) left.clear();
  }
  renameat(root, name.c_str(), root, left.c_str());
  tell("%s/%s: the pod's user may not remove what is in it, so it stays: %s",
       path_of_fd(root).c_str(), left.c_str(), std::strerror(error));
}

void PodDirs::leave() {
  if (!memory_path_.empty()) rmdir(memory_path_.c_str());  // fails while something is in it
}

void PodDirs::work() {
  const auto pause = std::chrono::milliseconds(kMeasureMs);
  auto begun = std::chrono::steady_clock::now();
  auto next = begun + pause;
  while (true) {
    std::vector<Gone> gone;
    {
      std::unique_lock lock(mutex_);
      if (!measures()) news_.wait_until(lock, next, [this] { return !to_remove_.empty(); });
      gone = std::exchange(to_remove_, {});
    }
    for (const auto& [in_memory, name] : gone)
      with_root(in_memory, [this, &name = name](int root) { remove(root, name); });
    const auto now = std::chrono::steady_clock::now();
    if (measures()) {
      measure_some();
      // A measurement that takes long is not repeated as often.
      if (!measures()) next = now + std::max<decltype(now - begun)>(pause, 10 * (now - begun));
    } else if (now >= next) {
      begun = now;
      next = now + pause;
      begin_measuring();
    }
  }
}

void PodDirs::begin_measuring() {
  std::lock_guard lock(mutex_);
  to_measure_ = limits_;
}

// One step of the volume whose turn it is.
void PodDirs::measure_some() {
  while (measuring_.size() < kMeasuredAtOnce && !to_measure_.empty()) {
    const auto first = to_measure_.extract(to_measure_.begin());
    with_root(first.mapped().in_memory, [&](int root) {
      const auto& [pod, volume] = first.key();
      const Fd dir = open_dir(root, core::node::pod_dir_name(pod));
      measuring_.push_back(
          {first.key(), first.mapped(), TreeSize(dir ? open_dir(dir.get(), volume) : Fd())});
    });
  }
  if (measuring_.empty()) return;
  Measuring one = std::move(measuring_.front());
  measuring_.pop_front();
  const bool done = one.size.step(kStepEntries);
  const uint64_t used = one.size.bytes();
  if (!done && used <= one.limit.bytes) {
    measuring_.push_back(std::move(one));
    return;
  }
  if (used <= one.limit.bytes) return;
  std::lock_guard lock(mutex_);
  if (limits_.contains(one.volume))
    full_.push_back({one.volume.first, one.volume.second, used, one.limit.bytes});
}

}  // namespace muster::keeper
