// Whole writes: all bytes are written, or errno says why not. A short write is continued, since the
// kernel gives no errno for one: the next write says what is wrong (ENOSPC, EDQUOT, EFBIG).
#pragma once

#include <cerrno>
#include <string_view>
#include <sys/types.h>
#include <unistd.h>

namespace muster {

// At the file's offset.
inline bool write_whole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

inline bool write_whole_at(int fd, std::string_view bytes, off_t at) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
    at += n;
  }
  return true;
}

}  // namespace muster
