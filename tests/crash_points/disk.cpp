#include "tests/crash_points/disk.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace muster::crash {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPage = 4096;

// State shared by the system calls below, which may run before and after main().
struct Watch {
  std::mutex mutex;
  fs::path root;
  std::vector<Op> ops;
  std::map<std::pair<dev_t, ino_t>, File> files;
  File next = 1;
  Failure failure;
  uint64_t calls = 0, failed = 0;
};
std::atomic<bool> watching = false;
Watch& watch() {
  static Watch& one = *new Watch;
  return one;
}

std::string fd_path(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path);
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : "";
}

// The path below the watched root, or nullopt if it is elsewhere.
std::optional<std::string> below(int dir, const char* path) {
  fs::path whole = path;
  if (whole.is_relative()) {
    if (dir == AT_FDCWD) return std::nullopt;  // the test works with absolute paths
    whole = fs::path(fd_path(dir)) / whole;
  }
  std::string text = whole.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  const std::string& root = watch().root.native();
  if (text == root) return "";
  if (!text.starts_with(root + "/")) return std::nullopt;
  return text.substr(root.size() + 1);
}

std::optional<std::string> fd_below(int fd) {
  const std::string path = fd_path(fd);
  return path.empty() ? std::nullopt : below(AT_FDCWD, path.c_str());
}

std::optional<File> known(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  auto it = watch().files.find({info.st_dev, info.st_ino});
  if (it == watch().files.end()) return std::nullopt;
  return it->second;
}

// Whether this call must fail. The caller holds the mutex.
bool fails() {
  Watch& w = watch();
  ++w.calls;
  const Failure& plan = w.failure;
  if (plan.nth == 0 || (plan.for_good ? w.calls < plan.nth : w.calls != plan.nth)) return false;
  ++w.failed;
  errno = plan.error;
  return true;
}

void record(Op op) {
  watch().ops.push_back(std::move(op));
}

int do_open(int dir, const char* path, int flags, mode_t mode) {
  auto call = [&] { return static_cast<int>(syscall(SYS_openat, dir, path, flags, mode)); };
  if (!watching || (flags & (O_CREAT | O_TRUNC)) == 0) return call();
  std::lock_guard lock(watch().mutex);
  const auto where = below(dir, path);
  if (!where) return call();
  struct stat info {};
  const bool existed = fstatat(dir, path, &info, 0) == 0;
  if (existed && (flags & O_TRUNC) == 0) return call();
  if (fails()) return -1;
  const int fd = call();
  if (fd < 0) return fd;
  if (existed) {
    if (auto file = known(fd)) record({.kind = Op::Kind::truncate, .file = *file});
    return fd;
  }
  fstat(fd, &info);
  const File file = watch().next++;
  watch().files[{info.st_dev, info.st_ino}] = file;
  record({.kind = Op::Kind::make_file, .path = *where, .file = file});
  return fd;
}

ssize_t do_write(int fd, const void* bytes, size_t size, std::optional<off_t> at) {
  auto call = [&]() -> ssize_t {
    return at ? syscall(SYS_pwrite64, fd, bytes, size, *at) : syscall(SYS_write, fd, bytes, size);
  };
  if (!watching) return call();
  std::lock_guard lock(watch().mutex);
  const auto file = known(fd);
  if (!file) return call();
  if (fails()) return -1;
  struct stat info {};
  fstat(fd, &info);
  const bool appends = (fcntl(fd, F_GETFL) & O_APPEND) != 0;
  const off_t offset = at ? *at : appends ? info.st_size : lseek(fd, 0, SEEK_CUR);
  const ssize_t n = call();
  if (n > 0)
    record({.kind = Op::Kind::write,
            .file = *file,
            .offset = static_cast<size_t>(offset),
            .bytes = {static_cast<const char*>(bytes), static_cast<size_t>(n)}});
  return n;
}

int do_sync(int fd) {
  if (!watching) return 0;
  std::lock_guard lock(watch().mutex);
  const auto file = known(fd);
  const auto where = file ? std::nullopt : fd_below(fd);
  if (!file && !where) return 0;
  if (fails()) return -1;
  record({.kind = Op::Kind::sync, .path = where.value_or(""), .file = file.value_or(0)});
  return 0;
}

int do_truncate(int fd, off_t size) {
  auto call = [&] { return static_cast<int>(syscall(SYS_ftruncate, fd, size)); };
  if (!watching) return call();
  std::lock_guard lock(watch().mutex);
  const auto file = known(fd);
  if (!file) return call();
  if (fails()) return -1;
  const int result = call();
  if (result == 0)
    record({.kind = Op::Kind::truncate, .file = *file, .offset = static_cast<size_t>(size)});
  return result;
}

// Allocates nothing: reserved space shows only in the file's length.
int do_allocate(int fd, int mode, off_t offset, off_t size) {
  std::lock_guard lock(watch().mutex);
  const auto file = watching ? known(fd) : std::nullopt;
  if (file && fails()) return -1;
  struct stat info {};
  if (fstat(fd, &info) != 0) return -1;
  if ((mode & FALLOC_FL_KEEP_SIZE) != 0 || offset + size <= info.st_size) return 0;
  const int result = static_cast<int>(syscall(SYS_ftruncate, fd, offset + size));
  if (result == 0 && file)
    record(
        {.kind = Op::Kind::truncate, .file = *file, .offset = static_cast<size_t>(offset + size)});
  return result;
}

int do_mkdir(int dir, const char* path, mode_t mode) {
  auto call = [&] { return static_cast<int>(syscall(SYS_mkdirat, dir, path, mode)); };
  if (!watching) return call();
  std::lock_guard lock(watch().mutex);
  const auto where = below(dir, path);
  struct stat info {};
  if (!where || fstatat(dir, path, &info, 0) == 0) return call();
  if (fails()) return -1;
  const int result = call();
  if (result == 0) record({.kind = Op::Kind::make_dir, .path = *where, .file = watch().next++});
  return result;
}

int do_remove(int dir, const char* path, int flags) {
  auto call = [&] { return static_cast<int>(syscall(SYS_unlinkat, dir, path, flags)); };
  if (!watching) return call();
  std::lock_guard lock(watch().mutex);
  const auto where = below(dir, path);
  struct stat info {};
  if (!where || fstatat(dir, path, &info, AT_SYMLINK_NOFOLLOW) != 0) return call();
  if (fails()) return -1;
  const int result = call();
  if (result == 0) record({.kind = Op::Kind::remove, .path = *where});
  return result;
}

int do_rename(int from_dir, const char* from, int to_dir, const char* to, bool link) {
  auto call = [&] {
    return static_cast<int>(link ? syscall(SYS_linkat, from_dir, from, to_dir, to, 0)
                                 : syscall(SYS_renameat, from_dir, from, to_dir, to));
  };
  if (!watching) return call();
  std::lock_guard lock(watch().mutex);
  const auto old = below(from_dir, from), fresh = below(to_dir, to);
  if (!old || !fresh) return call();
  if (fails()) return -1;
  const int result = call();
  if (result == 0)
    record({.kind = link ? Op::Kind::link : Op::Kind::rename, .path = *old, .other_path = *fresh});
  return result;
}

}  // namespace

std::vector<Op> start(const fs::path& root, Failure failure) {
  std::lock_guard lock(watch().mutex);
  Watch& w = watch();
  w.root = fs::canonical(root);
  w.ops.clear();
  w.files.clear();
  w.next = 1;
  w.failure = failure;
  w.calls = w.failed = 0;
  for (const auto& entry : fs::recursive_directory_iterator(w.root)) {
    const std::string path = fs::relative(entry.path(), w.root).string();
    const File file = w.next++;
    struct stat info {};
    stat(entry.path().c_str(), &info);
    if (entry.is_directory()) {
      record({.kind = Op::Kind::make_dir, .path = path, .file = file});
      continue;
    }
    w.files[{info.st_dev, info.st_ino}] = file;
    std::ifstream in(entry.path(), std::ios::binary);
    record({.kind = Op::Kind::make_file, .path = path, .file = file});
    record(
        {.kind = Op::Kind::write, .file = file, .bytes = {std::istreambuf_iterator<char>(in), {}}});
    record({.kind = Op::Kind::sync, .file = file});
  }
  const std::vector<Op> found = w.ops;
  for (const Op& op : found)
    if (op.kind == Op::Kind::make_dir) record({.kind = Op::Kind::sync, .path = op.path});
  record({.kind = Op::Kind::sync});
  watching = true;
  return std::move(w.ops);
}

Watched stop() {
  std::lock_guard lock(watch().mutex);
  watching = false;
  return {std::move(watch().ops), watch().failed};
}

void mark(const std::string& what) {
  std::lock_guard lock(watch().mutex);
  record({.kind = Op::Kind::mark, .bytes = what});
}

bool settled(std::string_view except) {
  std::lock_guard lock(watch().mutex);
  const auto& ops = watch().ops;
  const auto other = std::find_if(ops.begin(), ops.end(), [except](const Op& op) {
    return op.kind == Op::Kind::make_file && !except.empty() && op.path.ends_with(except);
  });
  const auto write =
      std::find_if(ops.rbegin(), ops.rend(), [&](const Op& op) {
        return op.kind == Op::Kind::write && (other == ops.end() || op.file != other->file);
      }).base();
  if (write == ops.begin()) return true;
  auto synced = [](File file) {
    return [file](const Op& op) { return op.kind == Op::Kind::sync && op.file == file; };
  };
  const auto file = std::find_if(write, ops.end(), synced(std::prev(write)->file));
  return std::find_if(file, ops.end(), synced(0)) != ops.end();
}

std::string to_string(const Op& op) {
  static constexpr const char* kNames[] = {"make file", "make dir", "write",  "truncate", "sync",
                                           "rename",    "link",     "remove", "mark"};
  std::string text = kNames[static_cast<size_t>(op.kind)];
  if (op.file != 0) text += " #" + std::to_string(op.file);
  if (!op.path.empty()) text += " " + op.path;
  if (!op.other_path.empty()) text += " to " + op.other_path;
  if (op.kind == Op::Kind::write || op.kind == Op::Kind::truncate)
    text += " at " + std::to_string(op.offset) + ", " + std::to_string(op.bytes.size()) + " bytes";
  if (op.kind == Op::Kind::mark) text += " " + op.bytes;
  return text;
}

const char* name(Loss loss) {
  static constexpr const char* kNames[] = {
      "nothing is lost", "all that is not synced is lost", "torn", "holes", "data is lost",
      "names are lost"};
  return kNames[static_cast<size_t>(loss)];
}

size_t Image::hash() const {
  std::string text;
  for (const std::string& dir : dirs) text += dir + '\0';
  for (const auto& [path, data] : files)
    text += path + '\0' + std::to_string(data.size()) + '\0' + data;
  return std::hash<std::string>{}(text);
}

void Image::put(const fs::path& root) const {
  fs::create_directory(root);
  for (const std::string& dir : dirs) fs::create_directory(root / dir);
  for (const auto& [path, data] : files) {
    std::ofstream out(root / path, std::ios::binary);
    out << data;
    fs::permissions(root / path, fs::perms::owner_read | fs::perms::owner_write);
  }
  for (const std::string& dir : dirs) fs::permissions(root / dir, fs::perms::owner_all);
  fs::permissions(root, fs::perms::owner_all);
}

Scratch::Scratch() {
  const char* given = std::getenv(kScratchVariable);
  const fs::path parent = given                    ? given
                          : fs::exists("/dev/shm") ? fs::path("/dev/shm")
                                                   : fs::temp_directory_path();
  std::string name = (parent / "muster-crash-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
  path_ = name;
}

Scratch::~Scratch() {
  fs::remove_all(path_);
}

Image read_image(const fs::path& root) {
  Image image;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string path = fs::relative(entry.path(), root).string();
    if (entry.is_directory()) {
      image.dirs.insert(path);
    } else {
      std::ifstream in(entry.path(), std::ios::binary);
      image.files[path] = {std::istreambuf_iterator<char>(in), {}};
    }
  }
  return image;
}

bool whole(const std::vector<Op>& ops, const fs::path& root) {
  Disk disk;
  for (const Op& op : ops) disk.apply(op);
  return disk.after(Loss::nothing) == read_image(root);
}

Disk::Disk() {
  nodes_[0].dir = true;
}

File Disk::find(const std::string& path) const {
  File at = 0;
  for (const fs::path& part : fs::path(path)) {
    const auto& names = nodes_.at(at).names;
    auto it = names.find(part.string());
    if (it == names.end()) throw std::logic_error("no such file: " + path);
    at = it->second;
  }
  return at;
}

std::map<std::string, File>& Disk::folder(const std::string& path) {
  return at(find(fs::path(path).parent_path().string())).names;
}

void Disk::change(std::string& data, const Change& by) {
  if (by.cut) {
    data.resize(by.offset, '\0');
    return;
  }
  if (data.size() < by.offset + by.bytes.size()) data.resize(by.offset + by.bytes.size(), '\0');
  std::copy(by.bytes.begin(), by.bytes.end(), data.begin() + static_cast<ptrdiff_t>(by.offset));
}

void Disk::apply(const Op& op) {
  auto base = [](const std::string& path) { return fs::path(path).filename().string(); };
  switch (op.kind) {
    case Op::Kind::make_file:
    case Op::Kind::make_dir:
      nodes_[op.file].dir = op.kind == Op::Kind::make_dir;
      folder(op.path)[base(op.path)] = op.file;
      break;
    case Op::Kind::write:
    case Op::Kind::truncate: {
      Node& node = at(op.file);
      node.unsynced.push_back({op.offset, op.bytes, op.kind == Op::Kind::truncate});
      change(node.data, node.unsynced.back());
      break;
    }
    case Op::Kind::sync: {
      Node& node = op.file != 0 ? at(op.file) : at(find(op.path));
      node.synced_names = node.names;
      node.synced_data = node.data;
      node.unsynced.clear();
      break;
    }
    case Op::Kind::rename:
    case Op::Kind::link: {
      auto& from = folder(op.path);
      const File file = from.at(base(op.path));
      if (op.kind == Op::Kind::rename) from.erase(base(op.path));
      folder(op.other_path)[base(op.other_path)] = file;
      break;
    }
    case Op::Kind::remove:
      folder(op.path).erase(base(op.path));
      break;
    case Op::Kind::mark:
      break;
  }
}

std::string Disk::left(const Node& node, Loss loss) {
  if (loss == Loss::nothing || loss == Loss::names) return node.data;
  std::string data = node.synced_data;
  if (loss == Loss::all) return data;
  if (loss == Loss::data) {
    data.resize(node.data.size(), '\0');
    return data;
  }
  size_t bytes = 0;
  for (const Change& one : node.unsynced) bytes += one.bytes.size();
  size_t at = 0;                   // in the unsynced bytes
  std::optional<size_t> hole_end;  // in the file
  for (const Change& one : node.unsynced) {
    const size_t end = at + one.bytes.size(), half = std::clamp(bytes / 2, at, end) - at;
    at = end;
    if (one.cut) {
      change(data, one);
    } else if (loss == Loss::torn) {
      if (half > 0) change(data, {one.offset, one.bytes.substr(0, half)});
    } else if (half < one.bytes.size()) {
      if (!hole_end) hole_end = (one.offset + half + kPage - 1) / kPage * kPage;
      const size_t from = std::clamp(*hole_end, one.offset, one.offset + one.bytes.size());
      const size_t lost = from - one.offset;
      if (lost < one.bytes.size()) change(data, {from, one.bytes.substr(lost)});
    }
  }
  return data;
}

void Disk::collect(File dir, const std::string& prefix, Loss loss, Image& to) const {
  const Node& node = nodes_.at(dir);
  const bool lost = loss == Loss::all || loss == Loss::names;
  for (const auto& [name, file] : lost ? node.synced_names : node.names) {
    const std::string path = prefix + name;
    if (nodes_.at(file).dir) {
      to.dirs.insert(path);
      collect(file, path + "/", loss, to);
    } else {
      to.files[path] = left(nodes_.at(file), loss);
    }
  }
}

Image Disk::after(Loss loss) const {
  Image image;
  collect(0, "", loss, image);
  return image;
}

}  // namespace muster::crash

using namespace muster::crash;

// These replace libc's system calls: an executable's definitions also serve its libraries.
extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return do_open(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return do_open(AT_FDCWD, path, flags, mode);
}
int openat(int dir, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return do_open(dir, path, flags, mode);
}
int openat64(int dir, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return do_open(dir, path, flags, mode);
}
ssize_t write(int fd, const void* bytes, size_t size) {
  return do_write(fd, bytes, size, std::nullopt);
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  return do_write(fd, bytes, size, at);
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  return do_write(fd, bytes, size, at);
}
int fsync(int fd) {
  return do_sync(fd);
}
int fdatasync(int fd) {
  return do_sync(fd);
}
int sync_file_range(int, off64_t, off64_t, unsigned) {
  return 0;  // makes nothing durable
}
int ftruncate(int fd, off_t size) noexcept {
  return do_truncate(fd, size);
}
int ftruncate64(int fd, off64_t size) noexcept {
  return do_truncate(fd, size);
}
int fallocate(int fd, int mode, off_t offset, off_t size) {
  return do_allocate(fd, mode, offset, size);
}
int fallocate64(int fd, int mode, off64_t offset, off64_t size) {
  return do_allocate(fd, mode, offset, size);
}
int posix_fallocate(int fd, off_t offset, off_t size) {
  return do_allocate(fd, 0, offset, size) == 0 ? 0 : errno;
}
int posix_fallocate64(int fd, off64_t offset, off64_t size) {
  return do_allocate(fd, 0, offset, size) == 0 ? 0 : errno;
}
int mkdir(const char* path, mode_t mode) noexcept {
  return do_mkdir(AT_FDCWD, path, mode);
}
int mkdirat(int dir, const char* path, mode_t mode) noexcept {
  return do_mkdir(dir, path, mode);
}
int unlink(const char* path) noexcept {
  return do_remove(AT_FDCWD, path, 0);
}
int unlinkat(int dir, const char* path, int flags) noexcept {
  return do_remove(dir, path, flags);
}
int rmdir(const char* path) noexcept {
  return do_remove(AT_FDCWD, path, AT_REMOVEDIR);
}
int rename(const char* from, const char* to) noexcept {
  return do_rename(AT_FDCWD, from, AT_FDCWD, to, false);
}
int renameat(int from_dir, const char* from, int to_dir, const char* to) noexcept {
  return do_rename(from_dir, from, to_dir, to, false);
}
int link(const char* from, const char* to) noexcept {
  return do_rename(AT_FDCWD, from, AT_FDCWD, to, true);
}

}  // extern "C"
