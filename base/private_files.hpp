// Private files: directories that only we may enter, and files in them that only we may read.
//
// A directory is judged by its descriptor, so that what was judged is what is used. Files are 0600
// and directories 0700 whatever the umask, and no symbolic link is followed that somebody may have
// put where a file of ours goes.
#pragma once

#include "base/result.hpp"

#include <optional>
#include <string>
#include <sys/types.h>

namespace muster {

// A descriptor, closed with its owner.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  ~Fd();
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  int get() const { return fd_; }
  int release();

 private:
  int fd_;
};

// Opens a directory of ours and makes it, with its parents, when it is missing. `what` is what it
// is called in messages ("data-dir"). One that is open to others is closed to them. `invalid`: it
// is a link, it belongs to another user, or it stood open to others who put something there.
Result<Fd> open_private_dir(const std::string& path, const std::string& what);

// A file in such a directory, with the flags of open(2): not a link, ours, 0600. The error is in
// errno: EPERM when it is another's or no file.
Fd open_private_file(int dir_fd, const std::string& name, int flags);

// Its text; nullopt: there is none that can be read.
std::optional<std::string> read_private_file(int dir_fd, const std::string& name);

// Writes NAME.new and renames it: a reader sees the old text or the new one, whole. Durable when it
// returns.
Status replace_private_file(int dir_fd, const std::string& name, const std::string& text);

// From here on this process makes files for itself alone. Before its first thread.
void close_umask();
// What the umask was before that; nullopt: it was not closed.
std::optional<mode_t> umask_before();

}  // namespace muster
