// Queue: which nodes a class of jobs may use, who may use it, how much, and at which priority.
//
// Operators store Queue objects (muster.dev/v1). A job names one in its annotation
// muster.dev/queue; without it, it is in the queue `default`, which exists even if nobody has
// stored it and then allows everybody everything. Admission refuses what a queue never allows; what
// it allows only so much of waits in Slots.
#pragma once

#include "core/spec/fields/annotations.hpp"
#include "core/spec/fields/job_spec.hpp"
#include "core/spec/fields/owner.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::core {

constexpr std::string_view kDefaultQueue = "default";
constexpr uint32_t kNoGroup = UINT32_MAX;  // nobody's gid

// What pods on nodes may take together; absent: no limit. Requests count, as in placement.
struct QueueLimits {
  std::optional<uint32_t> pods;
  std::optional<uint32_t> jobs;  // that have pods on nodes
  std::optional<int64_t> cpu_millis;
  std::optional<int64_t> memory_bytes;
  std::map<std::string, int64_t> named;  // nvidia.com/gpu
  bool operator==(const QueueLimits&) const = default;
};

struct Queue {
  std::string name;
  StringMap node_selector;                  // only nodes with these labels; empty: all nodes
  std::vector<std::string> users;           // names; with no groups either: everybody
  std::vector<uint32_t> groups;             // gids; kNoGroup: one that does not exist
  std::vector<std::string> group_names;     // of these
  std::optional<int32_t> priority_default;  // of pods whose template has none
  std::optional<int32_t> priority_max;      // of users' pods; absent: the coordinator's
  std::optional<int64_t> time_default_s;    // of pods without a time limit
  std::optional<int64_t> time_max_s;
  QueueLimits total;                           // of all jobs in the queue
  QueueLimits per_user;                        // of each owner's jobs
  double weight = 1;                           // of the queue among queues, above 0
  std::map<std::string, double> user_weights;  // of users in the queue, above 0, by name; others: 1
  // Queues whose pods of lower priority its pods may preempt; absent: all.
  std::optional<std::vector<std::string>> preempts;
  bool operator==(const Queue&) const = default;
};

// The job's queue. Never empty.
std::string queue_of(const StringMap& annotations);

// Whether the queue is open to this owner; to operators, every queue is.
bool open_to(const Queue& queue, const std::optional<Owner>& owner);

}  // namespace muster::core
