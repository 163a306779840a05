// Standard descriptors: a program started with 0, 1 or 2 closed would get one of these numbers for
// the next file or socket that it opens, and mistake it for its input or output.
#pragma once

#include <cerrno>
#include <fcntl.h>

namespace muster {

// Opens /dev/null for those that are closed. Call it first in main(), before anything is opened.
inline void open_standard_fds() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      open("/dev/null", O_RDWR);  // the lowest: this one
}

}  // namespace muster
