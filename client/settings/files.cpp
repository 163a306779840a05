#include "client/settings/files.hpp"

#include "base/files/whole_write.hpp"
#include "base/secret.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::cli {
namespace {

Error file_error(const std::string& path, const char* doing) {
  return Error{
      Errc::invalid, std::string("cannot ") + doing + " " + path + ": " + std::strerror(errno), {}};
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  const bool is_stdin = path == "-";
  const int fd = is_stdin ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return file_error(path, "read");
  if (is_stdin && isatty(fd) == 1)
    std::cerr << "muster: reading from the terminal; Ctrl-D at the start of a line ends the input"
              << std::endl;
  std::string text;
  char buffer[65536];
  ssize_t n;
  while ((n = read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR)) {
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
  }
  const int error = errno;
  if (!is_stdin) close(fd);
  errno = error;
  if (n < 0) return file_error(path, "read");
  return text;
}

std::string shown_path(const std::string& path) {
  return path == "-" ? "stdin" : path;
}

Status write_file(const std::string& path, const std::string& text) {
  // A unique name: another process, perhaps on another machine, may be writing the same path.
  const std::string next = path + "." + random_hex(8) + ".new";
  const int fd = open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return file_error(next, "write");
  const bool whole = write_whole(fd, text) && fsync(fd) == 0;
  const int error = errno;
  close(fd);
  errno = error;
  if (!whole || rename(next.c_str(), path.c_str()) != 0) {
    Error failed = file_error(path, "write");
    unlink(next.c_str());
    return failed;
  }
  const int dir =
      open(std::filesystem::path(path).parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir >= 0) {
    fsync(dir);
    close(dir);
  }
  return Nothing{};
}

}  // namespace muster::cli
