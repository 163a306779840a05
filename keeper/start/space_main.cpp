#include "keeper/start/space_main.hpp"

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/exec_exit.hpp"
#include "base/fd.hpp"
#include "base/files/whole_write.hpp"
#include "keeper/start/search_path.hpp"
#include "keeper/start/terminal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <map>
#include <sched.h>
#include <stdexcept>
#include <string_view>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace muster::keeper {
namespace {

using core::Volume;
using core::VolumeKind;
using core::node::SpaceMount;

constexpr int kJoinPatienceMs = 10'000;
constexpr size_t kWhyMax = 500;          // bytes of a report
constexpr size_t kSecretMax = 1u << 20;  // bytes of one file
constexpr size_t kCoveredMax = 2'000;    // entries of a directory that is rebuilt
constexpr mode_t kFileMode = 0644;
constexpr const char* kStage = "/proc";  // a directory that every machine has
constexpr const char* kTmpDirs[] = {"/tmp", "/var/tmp"};

// What failed, as a readable message.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void cannot(const std::string& what, int error = errno) {
  throw Failure(what + ": " + std::strerror(error));
}

// ---- system calls that not every C library has

int open_tree_at(int fd, bool clone) {
  const unsigned flags =
      OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | (clone ? OPEN_TREE_CLONE | AT_RECURSIVE : 0u);
  return static_cast<int>(syscall(SYS_open_tree, fd, "", flags));
}

int attach(int tree, int target) {
  constexpr unsigned kFlags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
  return static_cast<int>(syscall(SYS_move_mount, tree, "", target, "", kFlags));
}

int restrict_mount(int tree, bool read_only, bool recursive = true) {
  struct mount_attr attributes {};
  attributes.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (read_only ? MOUNT_ATTR_RDONLY : 0u);
  return static_cast<int>(syscall(SYS_mount_setattr, tree, "",
                                  AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0), &attributes,
                                  sizeof attributes));
}

int open_in(int dir, const std::string& path, int flags, uint64_t resolve, mode_t mode = 0) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = resolve;
  return static_cast<int>(syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how));
}

// A tmpfs that is mounted nowhere yet.
Fd new_tmpfs(uint64_t limit_bytes, const char* mode) {
  const Fd context(static_cast<int>(syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC)));
  auto set = [&context](const char* key, const std::string& value) {
    return syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_STRING, key, value.c_str(), 0) == 0;
  };
  if (!context || !set("mode", mode) ||
      (limit_bytes != 0 && !set("size", std::to_string(limit_bytes))) ||
      syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    cannot("tmpfs");
  Fd made(static_cast<int>(
      syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)));
  if (!made) cannot("tmpfs");
  return made;
}

// ---- namespaces

void write_proc(const char* path, const std::string& text) {
  const Fd file(open(path, O_WRONLY | O_CLOEXEC));
  if (!file || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    cannot(path);
}

void own_namespaces() {
  const std::string uid = std::to_string(geteuid()), gid = std::to_string(getegid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) cannot("a mount namespace for its volumes");
  write_proc("/proc/self/setgroups", "deny");
  write_proc("/proc/self/uid_map", uid + " " + uid + " 1");
  write_proc("/proc/self/gid_map", gid + " " + gid + " 1");
  if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) cannot("the mount namespace");
}

std::pair<dev_t, ino_t> program_of(const std::string& pid) {
  struct stat info {};
  return stat(("/proc/" + pid + "/exe").c_str(), &info) == 0 ? std::pair(info.st_dev, info.st_ino)
                                                             : std::pair<dev_t, ino_t>{};
}

// The container's process may not have reached its command yet. Until then its program is the
// keeper's executable or, right after it has become its user, one that we may not see.
void join(int pid) {
  const std::string number = std::to_string(pid);
  const auto ours = program_of("self");
  const Millis until = boot_now() + kJoinPatienceMs;
  for (auto found = program_of(number);
       (found == ours || found == std::pair<dev_t, ino_t>{}) && boot_now() < until;
       found = program_of(number)) {
    if (kill(pid, 0) != 0 && errno == ESRCH) throw Failure("its container does not run");
    usleep(2'000);
  }
  const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process || setns(process.get(), CLONE_NEWUSER | CLONE_NEWNS) != 0)
    cannot("joining the container's namespaces");
}

// ---- sources

Fd open_sub_path(Fd from, const SpaceMount& one) {
  const std::string& path = one.mount.sub_path;
  if (path.empty()) return from;
  for (size_t end = 0; one.volume.kind == VolumeKind::empty_dir && end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end), above = part.substr(0, part.rfind('/') + 1);
    const Fd parent(open_in(from.get(), above.empty() ? "." : above, O_PATH | O_DIRECTORY,
                            RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS));
    if (!parent) break;
    mkdirat(parent.get(), part.substr(above.size()).c_str(), 0755);
  }
  const bool own = one.volume.kind == VolumeKind::empty_dir;
  Fd found(open_in(from.get(), path, O_PATH, RESOLVE_BENEATH | (own ? RESOLVE_NO_SYMLINKS : 0u)));
  if (!found) cannot("subPath " + path);
  return found;
}

void make_dirs(const std::string& path, mode_t mode) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    mkdir(path.substr(0, end).c_str(), mode);
    if (end == std::string::npos) return;
  }
}

Fd open_host_path(const Volume& volume) {
  const std::string what = "hostPath " + volume.path;
  if (volume.type == "DirectoryOrCreate") make_dirs(volume.path, 0755);
  if (volume.type == "FileOrCreate")
    Fd(open(volume.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, kFileMode));
  Fd found(open(volume.path.c_str(), O_PATH | O_CLOEXEC));
  struct stat info {};
  if (!found || fstat(found.get(), &info) != 0) cannot(what);
  const bool dir = S_ISDIR(info.st_mode), file = S_ISREG(info.st_mode);
  if (volume.type.starts_with("Directory") && !dir) throw Failure(what + ": it is not a directory");
  if (volume.type.starts_with("File") && !file) throw Failure(what + ": it is not a file");
  if (volume.type == "Socket" && !S_ISSOCK(info.st_mode))
    throw Failure(what + ": it is not a socket");
  return found;
}

std::string read_secret(int dir, const std::string& key, bool& missing) {
  const Fd file(openat(dir, key.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  missing = !file && (errno == ENOENT || errno == ENOTDIR);
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) return std::strerror(errno);
  if (!S_ISREG(info.st_mode)) return "it is not a regular file";
  if (info.st_uid != geteuid()) return "it must belong to the user that the pod runs as";
  if ((info.st_mode & 077) != 0) return "others can read or change it; chmod 600 it";
  if (info.st_size > static_cast<off_t>(kSecretMax)) return "it is longer than 1 MiB";
  return "";
}

// Makes a file in a tmpfs that nobody else can see yet.
void put_file(int root, const std::string& path, const std::string& text, mode_t mode) {
  for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
    mkdirat(root, path.substr(0, slash).c_str(), 0755);
  const Fd file(openat(root, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file || !write_whole(file.get(), text) || fchmod(file.get(), mode) != 0)
    cannot("file " + path);
}

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  DIR* const list = opendir(path.c_str());
  if (list == nullptr) return names;
  while (const dirent* entry = readdir(list))
    if (entry->d_name[0] != '.' || (entry->d_name[1] != '\0' && entry->d_name[1] != '.'))
      names.emplace_back(entry->d_name);
  closedir(list);
  return names;
}

Fd files_of_secret(const SpaceMount& one) {
  const Volume& volume = one.volume;
  const std::string what = "secret " + volume.secret;
  const auto mode = static_cast<mode_t>(volume.default_mode.value_or(kFileMode));
  Fd made = new_tmpfs(0, "0700");
  const Fd dir(open(one.source.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir && !(volume.optional && errno == ENOENT)) cannot(what + ": " + one.source);
  std::vector<core::VolumeItem> items = volume.items;
  if (items.empty() && dir)
    for (const std::string& name : names_in(one.source)) items.push_back({name, name});
  for (const core::VolumeItem& item : dir ? items : std::vector<core::VolumeItem>()) {
    bool missing = false;
    const std::string why = read_secret(dir.get(), item.key, missing);
    if (missing && volume.optional) continue;
    if (!why.empty()) throw Failure(what + ": " + one.source + "/" + item.key + ": " + why);
    const Fd file(openat(dir.get(), item.key.c_str(), O_RDONLY | O_CLOEXEC));
    std::string text(kSecretMax + 1, '\0');
    const ssize_t size = read(file.get(), text.data(), text.size());
    if (size < 0) cannot(what + ": " + one.source + "/" + item.key);
    text.resize(static_cast<size_t>(size));
    put_file(made.get(), item.path, text, item.mode ? static_cast<mode_t>(*item.mode) : mode);
    explicit_bzero(text.data(), text.size());
  }
  return made;
}

// Each mount of such files is a separate copy, from which a subPath is taken.
bool in_memory_files(const SpaceMount& one) {
  return one.volume.kind == VolumeKind::secret || one.volume.kind == VolumeKind::config_map;
}

Fd files_of_config_map(const SpaceMount& one) {
  Fd made = new_tmpfs(0, "0700");
  for (const core::node::SpaceFile& file : one.files)
    put_file(made.get(), file.path, file.text, static_cast<mode_t>(file.mode));
  return made;
}

// ---- targets

bool is_dir(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
}

// A tree to be mounted that is mounted nowhere yet.
struct Tree {
  Fd mount{};
  bool dir = true;  // otherwise a file
};

class Mounter {
 public:
  explicit Mounter(const SpacePlan& plan) : plan_(plan) {}

  void run() {
    own_namespaces();
    const auto& mounts = plan_.space.mounts;
    std::vector<Tree> trees;  // opened before any mount hides their sources
    for (const SpaceMount& one : mounts) trees.push_back(tree_of(one));
    if (plan_.space.private_tmp) mount_tmp();
    for (size_t i = 0; i < mounts.size(); ++i) put(mounts[i], std::move(trees[i]));
    for (const Fd& cover : covers_) restrict_mount(cover.get(), true, false);
  }

 private:
  // None: it is made in memory.
  Fd source_of(const SpaceMount& one) {
    if (one.volume.kind == VolumeKind::host_path)
      return open_sub_path(open_host_path(one.volume), one);
    if (one.volume.kind != VolumeKind::empty_dir || one.source.empty()) return Fd();
    Fd dir(open(one.source.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!dir) cannot("volume " + one.volume.name + ": " + one.source);
    return open_sub_path(std::move(dir), one);
  }

  Fd clone_of(int source, bool read_only, const std::string& what) {
    Fd tree(open_tree_at(source, true));
    if (!tree || restrict_mount(tree.get(), read_only) != 0) cannot(what);
    return tree;
  }

  static bool is_read_only(const SpaceMount& one) {
    return one.mount.read_only || in_memory_files(one);
  }

  // Each subPath of an in-memory volume is a separate volume.
  static std::string memory_key(const SpaceMount& one) {
    return one.volume.name + "/" + one.mount.sub_path;
  }

  // Without a mount if an in-memory volume is mounted a second time.
  Tree tree_of(const SpaceMount& one) {
    const std::string what = "mountPath " + one.mount.mount_path + ": volume " + one.volume.name;
    if (const Fd source = source_of(one); source)
      return {clone_of(source.get(), is_read_only(one), what), is_dir(source.get())};
    Tree tree;
    if (in_memory_files(one)) {
      const bool secret = one.volume.kind == VolumeKind::secret;
      tree.mount = secret ? files_of_secret(one) : files_of_config_map(one);
      if (!one.mount.sub_path.empty()) tree = part_of(std::move(tree.mount), one);
    } else if (in_memory_.emplace(memory_key(one), one.mount.mount_path).second) {
      tree.mount = new_tmpfs(one.limit_bytes, "0700");
    } else {
      return tree;
    }
    if (restrict_mount(tree.mount.get(), is_read_only(one)) != 0) cannot(what);
    return tree;
  }

  void put(const SpaceMount& one, Tree tree) {
    const std::string what = "mountPath " + one.mount.mount_path;
    if (!tree.mount) {
      const Fd first(open(in_memory_.at(memory_key(one)).c_str(), O_PATH | O_CLOEXEC));
      tree.mount = clone_of(first.get(), is_read_only(one), what);
    }
    const Fd target = target_at(one.mount.mount_path, tree.dir);
    if (is_dir(target.get()) != tree.dir)
      throw Failure(what + ": one is a directory and the other is a file");
    if (attach(tree.mount.get(), target.get()) != 0) cannot(what);
  }

  // Parts of a tree can only be cloned while it is mounted, so it is mounted for a moment.
  static Tree part_of(Fd made, const SpaceMount& one) {
    const std::string what = "subPath " + one.mount.sub_path;
    const Fd place(open(kStage, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!place || attach(made.get(), place.get()) != 0) cannot(what);
    const Fd part(open_in(made.get(), one.mount.sub_path, O_PATH, RESOLVE_BENEATH));
    if (!part) cannot(what);
    Tree tree{Fd(open_tree_at(part.get(), true)), is_dir(part.get())};
    if (!tree.mount || umount2(kStage, MNT_DETACH) != 0) cannot(what);
    return tree;
  }

  // Root would make directories in / permanently.
  bool may_make_in(const std::string& dir) const {
    return dir != "/" || geteuid() != 0 || new_root_;
  }

  static void make(const std::string& path, bool dir) {
    const std::string above = path.substr(0, path.rfind('/'));
    if (dir || !above.empty()) make_dirs(dir ? path : above, 0755);
    if (!dir) Fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, kFileMode));
  }

  // Opens a directory or file; makes it, empty, if it is missing and the user may.
  Fd target_at(const std::string& path, bool dir) {
    for (int tries = 0;; ++tries) {
      if (Fd found(open(path.c_str(), O_PATH | O_CLOEXEC)); found) return found;
      if (errno != ENOENT) cannot("mountPath " + path);
      if (tries > 0 || may_make_in(nearest(path))) make(path, dir);
      if (Fd found(open(path.c_str(), O_PATH | O_CLOEXEC)); found) return found;
      if (tries > 0) cannot("mountPath " + path);
      cover(nearest(path));
    }
  }

  // The deepest existing directory above a missing path.
  static std::string nearest(const std::string& path) {
    std::string at = path;
    do at.resize(at.rfind('/'));
    while (!at.empty() && access(at.c_str(), F_OK) != 0);
    return at.empty() ? "/" : at;
  }

  // Rebuilds a directory in which we may not make anything, as a tmpfs with all its entries.
  void cover(const std::string& dir) {
    const std::string what = "a place for mountPath in " + dir;
    const std::string prefix = dir == "/" ? "/" : dir + "/";
    const std::vector<std::string> names = names_in(dir);
    if (names.empty() || names.size() > kCoveredMax)
      throw Failure(what + ": it cannot be made, and the directory cannot be rebuilt: it has " +
                    std::to_string(names.size()) + " entries");
    std::vector<std::pair<std::string, Fd>> kept;
    for (const std::string& name : names) {
      const Fd found(open((prefix + name).c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      if (!found) continue;
      struct stat info {};
      fstat(found.get(), &info);
      kept.emplace_back(name, S_ISLNK(info.st_mode) ? Fd() : Fd(open_tree_at(found.get(), true)));
    }
    std::map<std::string, std::string> links;
    for (const auto& [name, tree] : kept) {
      std::array<char, 4096> to{};
      if (!tree && readlink((prefix + name).c_str(), to.data(), to.size() - 1) > 0)
        links[name] = to.data();
    }
    Fd made = new_tmpfs(0, "0755");
    // A root cannot be covered, only replaced.
    const bool root = dir == "/";
    const Fd at(open(root ? kStage : dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!at || attach(made.get(), at.get()) != 0) cannot(what);
    for (const auto& [name, tree] : kept) {
      if (!tree) {
        if (const auto link = links.find(name); link != links.end())
          if (symlinkat(link->second.c_str(), made.get(), name.c_str()) != 0) cannot(what);
        continue;
      }
      if (is_dir(tree.get()))
        mkdirat(made.get(), name.c_str(), 0755);
      else
        Fd(openat(made.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode));
      const Fd place(openat(made.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      if (!place || attach(tree.get(), place.get()) != 0) cannot(what + ": " + name);
    }
    if (root && (fchdir(made.get()) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 ||
                 umount2(".", MNT_DETACH) != 0 || chdir("/") != 0))
      cannot(what);
    new_root_ = new_root_ || root;
    covers_.push_back(std::move(made));
  }

  // The work-dir may be below /tmp. It stays visible, and with it the pod's directories and those
  // of MPI jobs.
  void mount_tmp() {
    std::vector<std::pair<std::string, Fd>> visible;
    for (const std::string& path : {plan_.work_dir, plan_.space.pod_dir})
      for (const char* tmp : kTmpDirs)
        if (path.starts_with(std::string(tmp) + "/")) {
          const Fd found(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
          if (found) visible.emplace_back(path, clone_of(found.get(), false, path));
        }
    const std::string own = plan_.space.pod_dir + "/" + core::node::kPrivateTmp;
    std::vector<Fd> trees;
    for (const char* tmp : kTmpDirs) {
      const std::string dir = own + (tmp == kTmpDirs[0] ? "" : core::node::kPrivateVarTmp);
      const Fd found(open(dir.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!found) cannot(dir);
      trees.push_back(clone_of(found.get(), false, tmp));
    }
    for (size_t i = 0; i < trees.size(); ++i) {
      const Fd target(open(kTmpDirs[i], O_PATH | O_DIRECTORY | O_CLOEXEC));
      if (!target) continue;
      if (attach(trees[i].get(), target.get()) != 0) cannot(kTmpDirs[i]);
    }
    for (const auto& [path, tree] : visible) {
      make_dirs(path, 0700);
      const Fd target(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      if (!target || attach(tree.get(), target.get()) != 0) cannot(path);
    }
  }

  const SpacePlan& plan_;
  std::map<std::string, std::string> in_memory_;  // by memory_key(): where they are mounted
  std::vector<Fd> covers_;
  bool new_root_ = false;  // one of them is the new root
};

}  // namespace

Fd SpacePlan::file() const {
  std::string bytes;
  Writer out(bytes);
  core::node::write_space(out, space);
  out.text(work_dir).text(last.cwd).num(uint8_t{last.home}).num(uint8_t{terminal});
  out.num(int32_t{report}).num(last.not_after_ms).num(int32_t{joins});
  out.num(last.privileges.dropped);
  Fd made(memfd_create(kSpaceName, MFD_CLOEXEC));
  if (!made || !write_whole_at(made.get(), bytes, 0)) return Fd();
  return made;
}

std::optional<SpacePlan> SpacePlan::read(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  if (pread(fd, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return std::nullopt;
  Reader in(bytes);
  SpacePlan plan;
  plan.space = core::node::read_space(in);
  plan.work_dir = in.text();
  plan.last.cwd = in.text();
  plan.last.home = in.num<uint8_t>() != 0;
  plan.terminal = in.num<uint8_t>() != 0;
  plan.report = in.num<int32_t>();
  plan.last.not_after_ms = in.num<int64_t>();
  plan.joins = in.num<int32_t>();
  plan.last.privileges.dropped = in.num<uint64_t>();
  if (!in.ok() || !in.rest().empty()) return std::nullopt;
  return plan;
}

// Finds out by trying: some systems let everyone make user namespaces that can do nothing.
std::string why_no_spaces() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::strerror(errno);
  const Fd reads(ends[0]);
  Fd writes(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    std::string why;
    try {
      // Root without CAP_SETFCAP may not be mapped, and never has to be.
      constexpr uid_t kNobody = 65534;
      if (geteuid() == 0 &&
          (setresgid(kNobody, kNobody, kNobody) != 0 || setresuid(kNobody, kNobody, kNobody) != 0 ||
           prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0))
        cannot("becoming nobody");
      own_namespaces();
      const Fd root(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
      const Fd tree(open_tree_at(root.get(), true));
      if (!tree || restrict_mount(tree.get(), true) != 0) cannot("mounts");
    } catch (const Failure& failure) {
      why = failure.what();
    }
    if (write(writes.get(), why.data(), why.size()) < 0) errno = 0;
    _exit(0);
  }
  writes = Fd();
  if (child < 0) return std::strerror(errno);
  std::array<char, 256> text{};
  const ssize_t size = read(reads.get(), text.data(), text.size());
  waitpid(child, nullptr, 0);
  return {text.data(), static_cast<size_t>(std::max<ssize_t>(0, size))};
}

int space_main(char** argv) {
  prctl(PR_SET_NAME, kSpaceName);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  std::optional<SpacePlan> plan;
  if (argv[1] != nullptr && argv[2] != nullptr) {
    const Fd file(static_cast<int>(std::strtol(argv[1], nullptr, 10)));
    plan = SpacePlan::read(file.get());
  }
  if (!plan) {
    std::fprintf(stderr, "usage: %s FD COMMAND ARGUMENT...\n", kSpaceName);
    return kExitCannotStart;
  }
  if (plan->report >= 0) fcntl(plan->report, F_SETFD, FD_CLOEXEC);
  std::string why;
  int exit_code = core::kExitNotHere;  // what it mounts, another node may have
  try {
    if (plan->joins != 0)
      join(plan->joins);
    else
      Mounter(*plan).run();
    StartFailure failure = plan->last.begin();
    const char* const path = std::getenv("PATH");
    if (!failure)
      failure = plan->last.execute(
          plan->terminal ? std::vector<std::string>{kOwnProgram}
                         : programs_named(argv[2], path != nullptr ? path : kDefaultPath),
          argv + 2, environ);
    exit_code = failure.exit_code;
    why.resize(kWhyMax);
    why.resize(failure.describe(why.data(), why.size()));
  } catch (const Failure& failure) {
    why = failure.what();
  }
  if (plan->report < 0)
    std::fprintf(stderr, "muster: %s\n", why.c_str());
  else if (write(plan->report, why.data(), std::min(why.size(), kWhyMax)) < 0)
    errno = 0;
  return exit_code;
}

}  // namespace muster::keeper
