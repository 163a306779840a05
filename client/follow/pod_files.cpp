#include "client/follow/pod_files.hpp"

#include "base/files/private_files.hpp"
#include "client/settings/output_files.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::cli {
namespace {

// Creates missing directories with the permissions that the user's umask leaves. Returns errno, or
// 0.
int make_directories(const std::filesystem::path& path) {
  if (path.empty()) return 0;
  struct stat st {};
  if (stat(path.c_str(), &st) == 0) return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
  if (errno != ENOENT) return errno;
  if (const int error = path.has_parent_path() && path.parent_path() != path
                            ? make_directories(path.parent_path())
                            : 0;
      error != 0)
    return error;
  if (mkdir(path.c_str(), 0777) != 0) return errno == EEXIST ? 0 : errno;
  if (const auto mask = umask_before())
    if (chmod(path.c_str(), 0777 & ~*mask) != 0) return errno;
  return 0;
}

// Opens a file for appending; on failure, returns -1 and sets errno.
int open_file(const std::string& path, bool anew) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY;
  int fd = open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0666);
  if (fd >= 0) {
    if (const auto mask = umask_before())
      if (fchmod(fd, 0666 & ~*mask) != 0 && errno != EPERM && errno != ENOTSUP) {
        close(fd);
        return -1;
      }
    return fd;
  }
  if (errno != EEXIST) return -1;
  // An existing file may be a device, such as /dev/null, or a pipe.
  fd = open(path.c_str(), kFlags | O_NONBLOCK);
  if (fd < 0) return -1;
  fcntl(fd, F_SETFL, O_APPEND);
  struct stat st {};
  if (anew && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(fd, 0) != 0) {
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

int append_to(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    data.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

}  // namespace

Status PodFiles::prepare(const std::string& job, bool indexed, bool several) const {
  if (pattern_)
    if (Status right = prepare(*pattern_, "--output", job, indexed, several); !right) return right;
  return err_ ? prepare(*err_, "--error", job, indexed, several) : Status(Nothing{});
}

Status PodFiles::prepare(const core::OutputPattern& pattern, const std::string& flag,
                         const std::string& job, bool indexed, bool several) {
  if (Status right = pattern.fits(indexed, several); !right)
    return invalid(flag + ": " + as_typed(right.error().message));
  if (job.empty() && pattern.has('j')) return Nothing{};
  const std::string directory = pattern.directory(job);
  int error = make_directories(directory);
  const char* const shown = directory.empty() ? "." : directory.c_str();
  if (error == 0 && access(shown, W_OK | X_OK) != 0) error = errno;
  if (error != 0)
    return invalid(flag + ": cannot write to " +
                   (directory.empty() ? std::string("the current directory") : directory) + ": " +
                   std::strerror(error));
  return Nothing{};
}

PodFiles::File PodFiles::file_of(const core::OutputPod& pod, bool err) const {
  const core::OutputPattern& pattern = err && err_ ? *err_ : *pattern_;
  return {.path = pattern.path(pod),
          .attempt = pod.attempt.value_or(-1),
          .own = pattern.has('a') || pattern.has('p')};
}

bool PodFiles::holds(const File& file, int64_t bytes) const {
  struct stat st {};
  return stat(file.path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && st.st_size == bytes;
}

void PodFiles::keep(File& file) {
  file.begun = claim(file);
}

void PodFiles::begin(File& file, bool anew) {
  if (file.begun || file.dropped) return;
  file.begun = claim(file);
  if (file.begun) append(file, {}, anew);
}

void PodFiles::write(File& file, std::string_view data) {
  begin(file, true);
  if (!file.begun || data.empty()) return;
  if (owned(file)) return append(file, data, false);
  file.begun = false;
  file.dropped = true;
}

void PodFiles::append(File& file, std::string_view data, bool anew) {
  int fd = open_file(file.path, anew);
  if (fd < 0 && errno == ENOENT) {
    const int error = make_directories(std::filesystem::path(file.path).parent_path());
    if (error == 0) fd = open_file(file.path, anew);
    if (error != 0) errno = error;
  }
  if (fd < 0) return fail(file, errno);
  int error = append_to(fd, data);
  // Some file systems report only now that they are full.
  if (close(fd) != 0 && error == 0) error = errno;
  if (error != 0) fail(file, error);
}

bool PodFiles::owned(const File& file) const {
  const auto owner = owners_.find(file.path);
  return owner == owners_.end() || owner->second == file.attempt;
}

// False: a newer attempt owns the file.
bool PodFiles::claim(File& file) {
  if (file.own) return true;
  const auto [at, fresh] = owners_.try_emplace(file.path, file.attempt);
  if (!fresh && at->second > file.attempt) {
    file.dropped = true;
    return false;
  }
  at->second = file.attempt;
  return true;
}

void PodFiles::fail(File& file, int error) {
  if (failures_++ == 0)
    std::cerr << "muster: warning: cannot write " << file.path << ": " << std::strerror(error)
              << "; the log has the rest" << std::endl;
  file.begun = false;
  file.dropped = true;
}

}  // namespace muster::cli
