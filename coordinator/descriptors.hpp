// Descriptors: how many connections each port may have, so that the disk is never short of files.
#pragma once

#include <cstddef>

namespace muster::coordinator {

struct Descriptors {
  size_t api = 0, agents = 0;  // connections

  // Of so many that the process may open: a part is kept for the journal and what opens a file for
  // a moment, and neither port can use up the other's.
  static Descriptors of(size_t limit);
  static Descriptors of_process();
};

}  // namespace muster::coordinator
