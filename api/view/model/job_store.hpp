// JobStore: the read model's jobs, and which of them are in memory.
//
// Active jobs are in memory. A finished job (Job::can_unload) is unloaded: only an entry with its
// uid and versions stays, and the rest is read from disk on demand. The most recently used unloaded
// jobs stay in memory, within a bound.
//
// Invariants: every job, even a hidden one, has its name here and is either active or unloaded;
// `pods` of a job in memory has exactly one entry per shown pod. A pointer returned by find() stays
// valid for the next few calls of find(), until the next change.
#pragma once

#include "api/view/model/owned.hpp"
#include "api/view/model/shown.hpp"
#include "base/result.hpp"
#include "core/job/fold/batch.hpp"
#include "core/job/fold/job.hpp"
#include "core/job/shown/summary.hpp"

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

// A job with the versions of its objects.
struct JobView {
  explicit JobView(core::Job j) : job(std::move(j)) {}
  core::Job job;
  uint64_t version = 0;
  uint64_t owner_version = 0;                     // of the last change of metadata or spec
  std::unordered_map<PodKey, uint64_t> pods;      // shown pod -> version
  std::unordered_map<uint64_t, uint64_t> events;  // event number -> version; absent: `loaded`
  uint64_t loaded = 0;                            // version of everything when this copy was made
  // Its last state before the next change; absent until it changes.
  std::shared_ptr<const PastJob> past;
  core::JobTrail trail;
  // A job with only the object, for removed pods; created on demand.
  std::shared_ptr<const core::Job> stub;
  uint64_t used = 0;  // last use of an unloaded job, as a count of uses

  uint64_t event_version(uint64_t nr) const {
    auto it = events.find(nr);
    return it == events.end() ? loaded : it->second;
  }
};

// The part of an unloaded job that stays in memory.
struct UnloadedJob {
  std::string uid;
  uint64_t version = 0;
  uint64_t owner_version = 0;
  bool complete = false;    // otherwise Failed
  bool named_pods = false;  // its pods carry its own name and uid as labels
};

// The condition of a job whose rows cannot be read.
core::Condition damaged_condition(Millis at_ms, const std::string& why);

class JobStore {
 public:
  // Reads an unloaded job from disk. not_found: it is gone; any other error: it cannot be read.
  using LoadJob = std::function<Result<core::Job>(JobId)>;
  // Namespace, name and id.
  using Place = std::tuple<std::string, std::string, JobId>;
  using Names = std::set<Place>;

  // Without a loader, no job is unloaded. `recent_max`: unloaded jobs that stay in memory.
  void load_with(LoadJob load, size_t recent_max) {
    load_ = std::move(load);
    recent_max_ = recent_max;
  }
  // Reads only what lists show of a job (core::brief), which is much cheaper. After an error the
  // whole job is read.
  void brief_with(LoadJob load) { load_brief_ = std::move(load); }

  // At the start.
  void add_unloaded(const core::JobSummary& job);
  // Marks a job whose rows cannot be read. If its object is known, add() adds it as well.
  void quarantine(JobId id) { quarantined_.insert(id); }
  // Sets the version of all jobs added so far.
  void start_at(uint64_t version);

  // Adds an active job.
  JobView& add(core::Job job, uint64_t version);
  // Makes the job active; an unloaded job starts from its state before this batch. nullptr: no such
  // job.
  JobView* activate(const core::JobRecords& batch);
  // Call after the job's last record is applied: unloads it if possible.
  void settle(JobView& view);
  void erase(JobView& view);
  // Call after the job's object has changed or its deletion has begun.
  void note_owners(const core::Job& job);
  // Invalidates what brief() returned.
  void drop_brief() { brief_.reset(); }

  // Reads an unloaded job from disk if needed. nullptr: gone, or unreadable (see damage()).
  const JobView* find(JobId id) const;
  // What lists show of an unloaded job that is not in memory. nullptr: no such job, or call find().
  const core::Job* brief(JobId id) const;
  // nullptr: active, or no such job.
  const UnloadedJob* unloaded(JobId id) const;
  // These read nothing from disk.
  const JobView* in_memory(JobId id) const;
  const Names& names() const { return names_; }
  uint64_t owner_version(JobId id) const;  // 0: unchanged since the start
  // The jobs with owners of kinds that muster has.
  const std::map<JobId, OwnedJob>& owned() const { return owned_.all(); }
  // Those that name this uid as an owner.
  const std::set<JobId>& dependents(const std::string& uid) const { return owned_.of(uid); }
  // The jobs that have the finalizer of a foreground deletion, and whose deletion has begun.
  const std::set<JobId>& held() const { return held_; }
  // The finished jobs of whose end somebody still has to be told (core/job/shown/notice.hpp).
  const std::set<JobId>& notices() const { return notices_; }
  void each_active(const std::function<void(const core::Job&)>& f) const;
  // The active job with the next id, also a hidden one; nullptr: there is none.
  const core::Job* next_active(JobId after) const;
  std::pair<size_t, size_t> unloaded_counts() const;  // (complete, failed)
  // The active jobs that belong to this user.
  size_t active_of(uint32_t uid) const {
    const auto it = active_by_owner_.find(uid);
    return it == active_by_owner_.end() ? 0 : it->second;
  }

  // Jobs that are quarantined, or that could not be read when last needed.
  size_t damaged() const { return quarantined_.size() + unreadable_.size(); }
  // Why a job of this name, or an object that belongs to one, could not be read when last needed.
  std::optional<std::string> damage(Kind kind, std::string_view ns, std::string_view name) const;

 private:
  using JobPtr = std::unique_ptr<JobView>;
  void used_now(JobView& view) const;
  void count_active(const core::Job& job, int change);
  void note_notice(JobId id, bool due);

  LoadJob load_, load_brief_;
  mutable std::optional<core::Job> brief_;  // the last one read
  size_t recent_max_ = 0;
  mutable std::map<JobId, JobPtr> jobs_;  // the active jobs and the recently used unloaded ones
  std::unordered_map<JobId, UnloadedJob> unloaded_;
  mutable std::map<uint64_t, JobId> recent_;  // recently used unloaded jobs by `used`
  mutable uint64_t uses_ = 0, recent_weight_ = 0;
  std::map<uint32_t, size_t> active_by_owner_;  // by uid; counts are never 0
  std::set<JobId> quarantined_;
  mutable std::map<JobId, std::string> unreadable_;  // unloaded jobs, and why they cannot be read
  Names names_;
  OwnedJobs owned_;
  std::set<JobId> held_, notices_;
};

}  // namespace muster::api
