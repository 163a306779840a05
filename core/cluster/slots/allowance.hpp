// Allowance: what pods on nodes may take together under one limit, and what they have taken: of all
// jobs of a user, of a queue, or of a user in a queue.
//
// Invariant: pods are counted from their grant to the moment their slot is free. A limit that was
// lowered may be exceeded by what was granted before.
#pragma once

#include "core/cluster/nodes/demand.hpp"
#include "core/queue/queue.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace muster::core {

struct Allowance {
  QueueLimits max;
  bool limited = false;  // any of `max` is set
  uint64_t pods = 0;
  uint64_t jobs = 0;  // that have pods on nodes
  Amounts amounts;
  size_t waiting = 0;  // jobs that want something

  void set_max(QueueLimits limits);
  void count(const Amounts& each, int64_t pods);
  // How many more such pods there may be, up to `most`. `new_job`: the first of their job.
  uint64_t left(const Amounts& each, bool new_job, uint64_t most) const;
  bool over() const;  // more has been granted than is allowed now

  // The first limit that leaves no room for `least` such pods of a job that wants `wanted`.
  struct Shortage {
    std::string resource;  // "pods", "jobs", "cpu" (in thousandths), "memory" (bytes), or a name
    int64_t max = 0;
    int64_t held = 0;
    int64_t wanted = 0;  // by the pods
    bool operator==(const Shortage&) const = default;
  };
  std::optional<Shortage> shortage(const Amounts& each, bool new_job, uint64_t least,
                                   uint64_t wanted) const;
};

// Those of one job; null: none.
using Allowances = std::array<Allowance*, 3>;

}  // namespace muster::core
