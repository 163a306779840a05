#include "keeper/files/pod_dirs.hpp"

#include "keeper/kernel/proc.hpp"

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
constexpr int kDirFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr mode_t kOurs = 0711, kTheirs = 0700;
constexpr size_t kEntriesMax = 10'000'000;  // that one measurement visits
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

// Removes a directory of `root`. Each directory in it is first moved up into `root`, where nobody
// else can change its name, so that the depth does not matter.
void remove_tree(int root, const std::string& name) {
  std::vector<std::string> left = {name};
  uint64_t number = 0;
  while (!left.empty()) {
    const std::string one = std::move(left.back());
    left.pop_back();
    make_writable(root, one);
    if (const Fd dir = open_dir(root, one); dir) {
      std::vector<std::string> names;
      for_entries(dir.get(), [&names](const std::string& entry) { names.push_back(entry); });
      for (const std::string& entry : names) {
        if (unlinkat(dir.get(), entry.c_str(), 0) == 0) continue;
        make_writable(dir.get(), entry);
        std::string moved = name + "-" + std::to_string(++number);
        if (unlinkat(dir.get(), entry.c_str(), AT_REMOVEDIR) != 0 &&
            renameat(dir.get(), entry.c_str(), root, moved.c_str()) == 0)
          left.push_back(std::move(moved));
      }
    }
    if (unlinkat(root, one.c_str(), AT_REMOVEDIR) != 0 && unlinkat(root, one.c_str(), 0) != 0 &&
        errno != ENOENT)
      std::fprintf(stderr, "muster-keeper: cannot remove %s: %s\n", one.c_str(),
                   std::strerror(errno));
  }
}

// Opens a directory below `root`, part by part: a path may be longer than the kernel accepts.
Fd open_below(int root, const std::string& path) {
  Fd at = open_dir(root, ".");
  for (size_t from = 0; from < path.size() && at;) {
    const size_t slash = std::min(path.find('/', from), path.size());
    at = open_dir(at.get(), path.substr(from, slash - from));
    from = slash + 1;
  }
  return at;
}

// The bytes that a directory's files take on the disk, up to about `most`.
uint64_t used_by(int root, const std::string& name, uint64_t most) {
  uint64_t bytes = 0;
  size_t entries = 0;
  std::vector<std::string> left = {name};
  while (!left.empty() && bytes <= most && entries < kEntriesMax) {
    const std::string one = std::move(left.back());
    left.pop_back();
    const Fd dir = open_below(root, one);
    if (!dir) continue;
    for_entries(dir.get(), [&](const std::string& entry) {
      ++entries;
      struct stat info {};
      if (fstatat(dir.get(), entry.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
      bytes += static_cast<uint64_t>(info.st_blocks) * 512;
      if (S_ISDIR(info.st_mode)) left.push_back(one + "/" + entry);
    });
  }
  return bytes;
}

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

// Where this keeper's directories in memory are; empty: nowhere.
std::string memory_path_for(int work_fd) {
  struct statfs system {};
  struct stat info {};
  if (statfs(kMemory, &system) != 0 || system.f_type != TMPFS_MAGIC ||
      access(kMemory, W_OK | X_OK) != 0 || fstat(work_fd, &info) != 0)
    return "";
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "%s/muster-%llx-%llx", kMemory,
                static_cast<unsigned long long>(info.st_dev),
                static_cast<unsigned long long>(info.st_ino));
  return name.data();
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
  } else {
    base = Fd(openat(work_fd, ".", kDirFlags));
    if (!base) return scratch_error("work-dir", errno);
  }
  const std::string path = path_of_fd(base.get()) + "/" + name;
  auto dir = our_dir(base.get(), name, path);
  if (!dir) return dir.error();
  const bool inside = setting == nullptr || *setting == '\0';
  return std::unique_ptr<PodDirs>(new PodDirs(std::move(*dir), path, memory_path_for(work_fd),
                                              shared, shared && inside ? std::move(base) : Fd()));
}

PodDirs::PodDirs(Fd dir, std::string path, std::string memory_path, bool shared, Fd work_dir)
    : dir_(std::move(dir)),
      path_(std::move(path)),
      memory_path_(std::move(memory_path)),
      shared_(shared),
      work_dir_(std::move(work_dir)) {
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
  struct stat info {};
  if (!space.dirs.empty()) {
    if (work_dir_ && (fstat(work_dir_.get(), &info) != 0 ||
                      fchmod(work_dir_.get(), (info.st_mode & 07777) | 0011) != 0))
      return scratch_error("work-dir", errno);
    if (Status made = make_in(dir_.get(), pod, false, space.dirs, uid, gid); !made) return made;
  }
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

void PodDirs::work() {
  auto next = std::chrono::steady_clock::now() + std::chrono::milliseconds(kMeasureMs);
  while (true) {
    std::vector<Gone> remove;
    {
      std::unique_lock lock(mutex_);
      news_.wait_until(lock, next, [this] { return !to_remove_.empty(); });
      remove = std::exchange(to_remove_, {});
    }
    for (const auto& [in_memory, name] : remove) {
      with_root(in_memory, [&name = name](int root) { remove_tree(root, name); });
      if (!in_memory) continue;
      std::lock_guard lock(memory_mutex_);
      rmdir(memory_path_.c_str());  // fails while others are in it
    }
    if (std::chrono::steady_clock::now() < next) continue;
    measure();
    next = std::chrono::steady_clock::now() + std::chrono::milliseconds(kMeasureMs);
  }
}

void PodDirs::measure() {
  std::map<std::pair<PodId, std::string>, Limit> limits;
  {
    std::lock_guard lock(mutex_);
    limits = limits_;
  }
  for (const auto& [volume, limit] : limits) {
    const std::string name = core::node::pod_dir_name(volume.first) + "/" + volume.second;
    uint64_t used = 0;
    with_root(limit.in_memory,
              [&, most = limit.bytes](int root) { used = used_by(root, name, most); });
    if (used <= limit.bytes) continue;
    std::lock_guard lock(mutex_);
    if (limits_.contains(volume)) full_.push_back({volume.first, volume.second, used, limit.bytes});
  }
}

}  // namespace muster::keeper
