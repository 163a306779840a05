// Allowance: what pods on nodes may take together under one limit, and what they have taken: of all
// jobs of a user, of a queue, or of a user in a queue.
//
// Places that are kept for a job count, too, until it takes them: otherwise others under the limit
// could use it up, and room that was made for the job would be made in vain. They do not count for
// that job, for jobs of higher priority, and for pods that end before the places are complete.
//
// Invariant: pods are counted from their grant to the moment their slot is free. A limit that was
// lowered may be exceeded by what was granted before.
#pragma once

#include "core/cluster/nodes/demand.hpp"
#include "core/queue/rights.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

namespace muster::core {

struct Allowance {
  QueueLimits max;
  bool limited = false;  // any of `max` is set
  uint64_t pods = 0;
  // The jobs that have pods on nodes, and how many; those with steps are counted with their job.
  // Empty, unless jobs are limited.
  std::unordered_map<JobId, uint64_t> pods_of;
  Amounts amounts;
  size_t waiting = 0;  // jobs that want something
  struct Kept {
    uint64_t pods = 0;
    uint64_t jobs = 0;  // that have no pods yet
    Amounts amounts;
    int32_t priority = 0;  // the highest of those for whom places are kept
    Millis for_ms = 0;     // until the first of these places are complete, from now
  };
  Kept kept;

  // While nothing is counted, unless it limits jobs before and after, or neither.
  void set_max(QueueLimits limits);
  void count(JobId job, const Amounts& each, int64_t pods);
  void count_kept(const Amounts& each, int64_t pods);
  // How many more such pods there may be, up to `most`. `new_job`: the first of their job. `own`:
  // how many of the kept places are for them; nullopt: what is kept does not count.
  uint64_t left(const Amounts& each, bool new_job, uint64_t most,
                std::optional<uint64_t> own = 0) const;
  bool over() const;  // more has been granted than is allowed now

  // The first limit that leaves no room for `least` such pods of a job that wants `wanted`.
  struct Shortage {
    std::string resource;  // "pods", "jobs", "cpu" (in thousandths), "memory" (bytes), or a name
    int64_t max = 0;
    int64_t held = 0;    // what is kept included
    int64_t wanted = 0;  // by the pods
    int64_t kept = 0;    // for jobs that wait
    int64_t never = 0;   // what starts at once exceeds `max` alone: this much; 0: it does not
    bool operator==(const Shortage&) const = default;
  };
  std::optional<Shortage> shortage(const Amounts& each, bool new_job, uint64_t least,
                                   uint64_t wanted, std::optional<uint64_t> own = 0) const;

 private:
  // What counts: of pods that have been granted, and of kept places.
  struct Taken {
    int64_t pods, jobs, cpu_millis, memory_bytes;
  };
  Taken taken(const Amounts& each, bool new_job, std::optional<uint64_t> own) const;
  int64_t taken_of(const std::string& name, int64_t each, std::optional<uint64_t> own) const;
};

// An amount of what a limit counts: "1.5" CPUs, "4Gi", "3" pods.
std::string limit_text(const std::string& resource, int64_t amount);

// Refuses a job of which the limits of its queue could never let anything start.
void fit_limits(const JobMeta& meta, const JobSpec& spec, const QueueSet& queues,
                Violations& found);

// Those of one job; null: none.
using Allowances = std::array<Allowance*, 3>;

}  // namespace muster::core
