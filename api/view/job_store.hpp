// JobStore: the read model's jobs, and which of them are in memory.
//
// An active job is in memory. A finished one (Job::can_unload) is unloaded: an entry with its uid
// and versions stays, the rest is read from disk when somebody asks. Those asked for last stay in
// memory, within a bound.
//
// Always holds: each job has a name here, hidden ones too; it is either active or unloaded; every
// shown pod of a job in memory has an entry in its `pods`, and nothing else has. A pointer that
// find() returned stays valid for the next few calls of find(), until the next change.
#pragma once

#include "api/view/shown.hpp"
#include "base/result.hpp"
#include "core/job/batch.hpp"
#include "core/job/job.hpp"
#include "core/job/summary.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace muster::api {

// A job with the versions of what belongs to it.
struct JobView {
  explicit JobView(core::Job j) : job(std::move(j)) {}
  core::Job job;
  uint64_t version = 0;
  uint64_t before = 0;                            // its version before this one
  uint64_t owner_version = 0;                     // when metadata or spec changed last
  uint64_t before_owner = 0;                      // its version before that
  std::unordered_map<PodKey, uint64_t> pods;      // shown pod -> version
  std::unordered_map<uint64_t, uint64_t> events;  // event number -> version; absent: `loaded`
  uint64_t loaded = 0;                            // the commit that this copy began with
  // Its object alone, for pods that are gone; made when needed.
  std::shared_ptr<const core::Job> stub;
  uint64_t used = 0;  // when an unloaded job was asked for last
};

// What stays in memory of an unloaded job.
struct UnloadedJob {
  std::string uid;
  uint64_t version = 0;
  uint64_t owner_version = 0;
  bool complete = false;    // else Failed
  bool named_pods = false;  // its pods carry its own name and uid as labels
};

class JobStore {
 public:
  // Reads an unloaded job from disk. not_found: it is gone; any other error: it cannot be read.
  using LoadJob = std::function<Result<core::Job>(JobId)>;
  // Namespace, name and id.
  using Place = std::tuple<std::string, std::string, JobId>;
  using Names = std::set<Place, std::less<>>;

  // Without a loader no job is ever unloaded. `recent_max`: unloaded jobs that stay in memory.
  void load_with(LoadJob load, size_t recent_max) {
    load_ = std::move(load);
    recent_max_ = recent_max;
  }
  // Reads one as lists show it (core::brief), which is much cheaper; after any error it is read
  // whole.
  void brief_with(LoadJob load) { load_brief_ = std::move(load); }

  // At the start.
  void add_unloaded(const core::JobSummary& job);
  // Its rows cannot be read. That it has a name and an object is told by add(), if at all.
  void quarantine(JobId id) { quarantined_.insert(id); }
  // The commit that all jobs so far stand for.
  void start_at(uint64_t commit);

  // A new active job at this commit.
  JobView& add(core::Job job, uint64_t commit);
  // The job, active from here on: as it was before this batch where it was unloaded. nullptr:
  // there is none.
  JobView* activate(const core::JobRecords& batch);
  // Its last record was applied: unloads it if it can be.
  void settle(JobView& view);
  void erase(JobView& view);
  // Ends the life of what brief() returned.
  void drop_brief() { brief_.reset(); }

  // Reads an unloaded job from disk if need be. nullptr: gone, or unreadable (damage()).
  const JobView* find(JobId id) const;
  // An unloaded job that is not in memory, as lists show it. nullptr: there is none, or find() is
  // to be asked.
  const core::Job* brief(JobId id) const;
  // nullptr: it is active, or there is none.
  const UnloadedJob* unloaded(JobId id) const;
  // Nothing is read for these.
  const JobView* in_memory(JobId id) const;
  const Names& names() const { return names_; }
  uint64_t owner_version(JobId id) const;  // as told_since(); 0: unknown
  void each_active(const std::function<void(const core::Job&)>& f) const;
  std::pair<size_t, size_t> unloaded_counts() const;  // (complete, failed)

  // Jobs that are quarantined, or whose rows could not be read when somebody asked.
  size_t damaged() const { return quarantined_.size() + unreadable_.size(); }
  // Why an object of this name, or what belongs to a job of this name, could not be read just now.
  std::optional<std::string> damage(Kind kind, std::string_view ns, std::string_view name) const;

 private:
  using JobPtr = std::unique_ptr<JobView>;
  void used_now(JobView& view) const;

  LoadJob load_, load_brief_;
  mutable std::optional<core::Job> brief_;  // the last one that was read
  size_t recent_max_ = 0;
  mutable std::map<JobId, JobPtr> jobs_;  // active ones, and the recent ones of the unloaded
  std::unordered_map<JobId, UnloadedJob> unloaded_;
  mutable std::map<uint64_t, JobId> recent_;  // of the latter in jobs_, by their `used`
  mutable uint64_t uses_ = 0, recent_weight_ = 0;
  std::set<JobId> quarantined_;
  mutable std::map<JobId, std::string> unreadable_;  // of the unloaded ones, and why
  Names names_;
};

}  // namespace muster::api
