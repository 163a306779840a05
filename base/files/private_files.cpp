#include "base/files/private_files.hpp"

#include "base/files/whole_write.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr mode_t kOthers = 077, kOthersWrite = 022, kFileMode = 0600, kDirMode = 0700;

std::optional<mode_t> before;

Error failed(const std::string& what) {
  return {Errc::unavailable, what + ": " + std::strerror(errno), {}};
}

// For a directory that others could write to: refuses it if it holds another user's files, which we
// might later read or follow.
Status nothing_of_others(const std::string& path, const std::string& what) {
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(path, error)) {
    struct stat st {};
    if (lstat(entry.path().c_str(), &st) != 0) continue;
    if (st.st_uid != geteuid())
      return invalid(what + " " + path + " was accessible to other users, and " +
                     entry.path().string() + " belongs to user " + std::to_string(st.st_uid) +
                     ": remove it, or use another directory");
  }
  if (error) return Error{Errc::unavailable, what + " " + path + ": " + error.message(), {}};
  return Nothing{};
}

}  // namespace

Result<Fd> open_private_dir(const std::string& given, const std::string& what) {
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();  // a trailing slash follows links
  std::error_code error;
  auto parent = fs::path(path).parent_path();
  if (!parent.empty()) fs::create_directories(parent, error);
  if (mkdir(path.c_str(), kDirMode) != 0 && errno != EEXIST)
    return failed("cannot make " + what + " " + path);
  Fd dir(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (dir.get() < 0) {
    int why = errno;
    struct stat st {};
    if (lstat(path.c_str(), &st) == 0 && S_ISLNK(st.st_mode))
      return invalid(what + " " + path + " is a symbolic link: use the directory itself");
    errno = why;
    return failed(what + " " + path);
  }
  struct stat st {};
  if (fstat(dir.get(), &st) != 0) return failed(what + " " + path);
  if (st.st_uid != geteuid())
    return invalid(what + " " + path + " belongs to user " + std::to_string(st.st_uid) +
                   ", but this process runs as user " + std::to_string(geteuid()) +
                   ": use another directory");
  if ((st.st_mode & 07777) != kDirMode && fchmod(dir.get(), kDirMode) != 0)
    return failed("cannot remove other users' access to " + what + " " + path);
  if ((st.st_mode & kOthersWrite) != 0)
    if (Status ours = nothing_of_others(path, what); !ours) return ours.error();
  return dir;
}

Fd open_private_file(int dir_fd, const std::string& name, int flags) {
  // O_NONBLOCK: do not block on a FIFO planted under this name.
  Fd fd(openat(dir_fd, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
               kFileMode));
  if (fd.get() < 0) return fd;
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return Fd();
  if (st.st_uid != geteuid() || !S_ISREG(st.st_mode)) {
    errno = EPERM;
    return Fd();
  }
  if ((st.st_mode & kOthers) != 0 || (st.st_mode & kFileMode) != kFileMode)
    if (fchmod(fd.get(), kFileMode) != 0) return Fd();
  return fd;
}

std::optional<std::string> read_private_file(int dir_fd, const std::string& name) {
  Fd fd = open_private_file(dir_fd, name, O_RDONLY);
  if (fd.get() < 0) return std::nullopt;
  std::string text;
  char bytes[4096];
  ssize_t n;
  while ((n = read(fd.get(), bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR))
    if (n > 0) text.append(bytes, static_cast<size_t>(n));
  if (n < 0) return std::nullopt;
  return text;
}

Status replace_private_file(int dir_fd, const std::string& name, const std::string& text) {
  std::string fresh = name + ".new";
  unlinkat(dir_fd, fresh.c_str(), 0);  // left by an earlier process, or someone's link
  Fd fd = open_private_file(dir_fd, fresh, O_WRONLY | O_CREAT | O_EXCL);
  if (fd.get() < 0) return failed("cannot write " + fresh);
  if (!write_whole(fd.get(), text) || fsync(fd.get()) != 0) return failed("cannot write " + fresh);
  if (renameat(dir_fd, fresh.c_str(), dir_fd, name.c_str()) != 0)
    return failed("cannot replace " + name);
  if (fsync(dir_fd) != 0) return failed("cannot sync the directory of " + name);
  return Nothing{};
}

void close_umask() {
  mode_t old = umask(kOthers);
  if (!before) before = old;
}

std::optional<mode_t> umask_before() {
  return before;
}

}  // namespace muster
