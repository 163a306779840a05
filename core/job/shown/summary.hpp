// JobSummary: what is known about an unloaded finished job (Job::can_unload) without folding its
// records or reading its object.
#pragma once

#include "core/job/fold/job.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace muster::core {

constexpr size_t kSummaryOwnersMax = 32;

struct JobSummary {
  JobId id = 0;
  std::string ns, name, uid;
  Millis finished_ms = 0;
  std::optional<Millis> wake_ms;   // when its TTL expires
  bool complete = false;           // else Failed
  bool named_pods = false;         // its pods carry the job's name and uid as labels
  std::vector<OwnerRef> owners{};  // empty: none, or too many to keep in memory
  bool notice_due = false;         // somebody still has to be told of its end (notice.hpp)
  bool owner_known = true;         // false: from a version that did not keep it with this
};
JobSummary summary_of(const Job& job);

// The job as lists need it: the parts of its object that a list selects by or shows, without the
// JSON text, and its state without pods, events and attempts.
JobObject brief(const JobObject& object);
JobState brief(const JobState& state);

}  // namespace muster::core
