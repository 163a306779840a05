// AttemptPage: a page of the history of a job's attempts.
#pragma once

#include "core/job/facts/pod.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace muster::core {

// Where a page begins: at an append to the job, after the first `skip` of its attempts.
struct AttemptCursor {
  uint64_t sequence = 0;
  uint32_t skip = 0;
  bool operator==(const AttemptCursor&) const = default;
};

struct AttemptPage {
  std::vector<Pod> attempts;          // in the order they were closed
  std::vector<Millis> closed_ms;      // when; those beyond have not been closed
  std::optional<AttemptCursor> next;  // set if more may follow
  AttemptCursor end;                  // after everything read: where later attempts appear
};

}  // namespace muster::core
