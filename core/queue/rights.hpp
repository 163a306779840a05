// Rights: what a job must be and may ask for to enter its queue. Pure.
//
// What is wrong for everybody (a queue or a priority class that does not exist, a time limit above
// the queue's) is a violation. What only operators and admins may ask for, where a coordinator
// serves several users, is refused with the reason. Tolerations are kept as written, as manifests
// often have them for other clusters, but do not overrule an operator
// (core/cluster/nodes/demand.hpp).
#pragma once

#include "core/queue/priority_class.hpp"
#include "core/queue/queue.hpp"
#include "core/spec/values/violations.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::core {

// All queues and classes at one time.
struct QueueSet {
  std::vector<Queue> queues;
  PriorityClasses classes;

  const Queue* find(const std::string& name) const;  // nullptr: nobody has stored it
  bool operator==(const QueueSet&) const = default;
};

// Gives a new job the default time limit of its queue.
void take_time_limit(const JobMeta& meta, JobSpec& spec, const QueueSet& queues);
// Checks a job against the queue that it is in or moves into.
void enter_queue(const JobMeta& meta, const JobSpec& spec, const QueueSet& queues,
                 Violations& found);

// What is probably a mistake in a queue. It is accepted, as the group or queue may be made later.
std::vector<std::string> doubts_about(const Queue& queue, const QueueSet& all);

// Why a user who is no operator may not create such a job; absent: they may. `priority_max`: of
// queues that do not say (--user-priority-max).
std::optional<std::string> lacks_rights(const JobMeta& meta, const JobSpec& spec,
                                        const QueueSet& queues, int32_t priority_max);

}  // namespace muster::core
