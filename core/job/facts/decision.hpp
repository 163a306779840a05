// The settings and the result of decide().
#pragma once

#include "core/job/facts/effect.hpp"
#include "core/job/facts/pod.hpp"
#include "core/job/facts/record.hpp"
#include "core/spec/values/gates.hpp"

#include <cstdint>
#include <vector>

namespace muster::core {

// Pods of a job that may wait for a place before more of them are created.
inline constexpr uint32_t kPendingMax = 10'000;

// The coordinator's settings, overridden by the job's annotations.
struct Knobs {
  Millis backoff_base_ms = 10'000;
  Millis backoff_max_ms = 600'000;
  Gates gates{};
  bool backoff_yields = false;    // muster.dev/backoff: yield
  bool surplus_finishes = false;  // muster.dev/scale-down: finish
  // At most this many pods of a job wait for a place; more are created as these are placed.
  uint32_t pending_max = kPendingMax;
  // How long the only node that fits is tried again if it lacks what a pod needs to start.
  Millis start_patience_ms = 60'000;
  bool has_dependents = false;  // other jobs wait for its end and have not recorded it yet
};

// What a sync did, for the metrics (job-semantics 12).
enum class SyncAction : uint8_t { tracking, reconciling, pods_created, pods_deleted };

struct Decision {
  std::vector<Record> records;  // already applied to the job
  std::vector<Effect> effects;  // to be performed once the records are durable
  SyncAction action = SyncAction::tracking;
  std::vector<Pod> closed;  // attempts that these records close (Job::apply)
};

}  // namespace muster::core
