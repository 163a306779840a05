#include "coordinator/threads/random.hpp"

#include "base/check.hpp"

#include <sys/random.h>

namespace muster::coordinator {

uint64_t random_number() {
  uint64_t number = 0;
  MUSTER_CHECK(getrandom(&number, sizeof number, 0) == sizeof number);
  return number;
}

}  // namespace muster::coordinator
