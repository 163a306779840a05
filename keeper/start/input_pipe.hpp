// InputPipe: the pipe through which a process gets its standard input. The keeper writes to it
// without blocking, and nobody else has the write end, so closing it ends the input.
#pragma once

#include "base/fd.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace muster::keeper {

struct InputPipe {
  Fd reads{}, writes{};

  // False: errno says why not.
  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    reads = Fd(ends[0]);
    writes = Fd(ends[1]);
    return fcntl(writes.get(), F_SETFL, O_NONBLOCK) == 0;  // of this end only
  }
};

}  // namespace muster::keeper
