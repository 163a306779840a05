// What decide() is told besides the event, and what it returns.
#pragma once

#include "core/cluster/fold/effect.hpp"
#include "core/cluster/fold/record.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace muster::core::cluster {

struct Now {
  Millis wall_ms = 0;               // wall-clock time, for what is shown
  Millis up_ms = 0;                 // of a monotonic clock, for waits
  uint64_t last_commit = 0;         // highest durable commit number
  std::optional<JobId> next_job{};  // no job has this id or a higher one; absent: unknown
};

struct Decision {
  std::vector<Record> records;  // already applied
  std::vector<AtOnce> at_once;
  std::vector<Effect> effects;  // once the durable records are on disk
};

}  // namespace muster::core::cluster
