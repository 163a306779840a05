// Descriptors: limits the connections of each port, so that the journal never runs out of file
// descriptors.
#pragma once

#include <cstddef>

namespace muster::coordinator {

struct Descriptors {
  size_t api = 0, agents = 0;  // connections

  // Divides a limit on open files: a part is reserved for the journal and for files opened briefly,
  // and neither port can use up the other's part.
  static Descriptors of(size_t limit);
  static Descriptors of_process();
};

}  // namespace muster::coordinator
