// Registry: which jobs exist, what they are called, where each of them is, and which of them wait
// for others.
//
// It decides whether a new job may have its name, which jobs are told that another one has ended,
// which unloaded jobs are due, and which finished jobs are too many. It has no records of its own:
// what it knows follows from those of the jobs, and at each start it adopts the jobs that were
// recovered.
//
// Invariants: a name has at most one job; an id is issued once; a job that waits for another one is
// told of its end, and again after each restart until it has recorded it.
#pragma once

#include "base/result.hpp"
#include "core/job/facts/event.hpp"
#include "core/job/fold/job.hpp"
#include "core/job/fold/job_clock.hpp"
#include "core/job/shown/summary.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace muster::core::registry {

struct Now {
  Millis wall_ms = 0;
  Millis elapsed_ms = 0;  // of a clock that never jumps
};

enum class Place : uint8_t {
  creating,     // its first record is on its way to the journal
  running,      // it has an actor
  leaving,      // its actor was asked to stop and may still write
  unloaded,     // it is over and only on disk
  quarantined,  // its rows can't be read
};

struct Entry {
  std::string ns, name, uid;
  Place place = Place::creating;
  JobClock clock{};                    // shared by all actors that it gets in this run
  std::string damage{};                // the answer to requests if it is quarantined
  std::optional<DependencyEnd> end{};  // how it ended; absent: it has not
  std::vector<JobId> awaits{};         // jobs that have it among their dependents
  bool owner_known = true;             // false: not read from disk in this run
  std::optional<uint32_t> owner_uid{};
  std::optional<Millis> wake_at{};      // when to load it again (elapsed)
  std::optional<Millis> finished_ms{};  // its place among the finished jobs
};

// ---- effects: what is to be done, in this order. A job without an actor is loaded first.

// To a job that waits for another one, which has ended or is gone.
struct TellEnd {
  JobId dependent = 0;
  JobId of = 0;
  DependencyEnd how = DependencyEnd::deleted;
};
// To a job: whether others wait for its end and have not recorded it yet. While they do, it is not
// forgotten.
struct TellDependents {
  JobId job = 0;
  bool any = false;
};
// It is over: its actor stops once it has answered everything sent to it.
struct StopActor {
  JobId job = 0;
};
// It finished before all others, and more have finished than are kept.
struct DeleteFinished {
  JobId job = 0;
};

using Effect = std::variant<TellEnd, TellDependents, StopActor, DeleteFinished>;
using Effects = std::vector<Effect>;

// ---- what a request to create a job leads to: the job, an error, or a question to answer first

struct Admitted {
  JobId id = 0;
  JobAdmitted record;
  Effects effects;
};
// Whether this job, which holds the name, is about to release it.
struct AskHolder {
  JobId job = 0;
};
// Who owns this job (set_owner).
struct ReadOwner {
  JobId job = 0;
};
using Admission = std::variant<Admitted, AskHolder, ReadOwner, Error>;

class Registry {
 public:
  // `next_id`: the next one to issue. `finished_max`: finished jobs to keep.
  Registry(JobId next_id, uint64_t finished_max) : next_id_(next_id), finished_max_(finished_max) {}

  // At the start: a job that is in memory, an unloaded one, one that can't be recovered (`object`:
  // null if not even that can be read); then what follows from all of them.
  void adopt(const Job& job, const Now& now);
  void adopt(JobSummary job, const Now& now);
  void adopt_damaged(JobId id, const JobObjectPtr& object, const std::string& why);
  Effects settle();

  // `holder_asked`: AskHolder was answered, with no.
  Admission admit(const JobObjectPtr& object, bool holder_asked, const Now& now);
  void set_owner(JobId id, std::optional<uint32_t> uid);
  Result<JobId> find(const std::string& ns, const std::string& name, const std::string& uid) const;

  void set_running(JobId id);
  void quarantine(JobId id, const std::string& why);
  Effects over(JobId id, const JobOver& how, const Now& now);
  void free_name(JobId id);
  void actor_left(JobId id);  // the one that was asked to stop
  // The dependent has recorded how the other job ended, or is gone itself.
  Effects dependent_knows(JobId dependent, JobId of);
  // The unloaded jobs to load now: their next decision acts on the time.
  std::vector<JobId> take_due(Millis elapsed_ms);

  // Ends that an agent must keep: their jobs can't judge them.
  std::vector<PodId> ends_to_keep(const std::map<JobId, PodsReported>& reported) const;
  // Pods that an agent must end: no job answers for them.
  std::vector<PodId> strangers(const std::map<JobId, std::set<PodKey>>& known) const;

  const Entry* job(JobId id) const;  // nullptr: it is gone, or was never issued
  JobId next_id() const { return next_id_; }
  uint64_t finished_max() const { return finished_max_; }
  bool has_dependents(JobId id) const { return dependents_.contains(id); }
  std::optional<Millis> next_due() const {  // elapsed
    return wakes_.empty() ? std::nullopt : std::optional(wakes_.begin()->first);
  }

 private:
  void add(JobId id, Entry entry, bool named = true);
  void keep_finished(JobId id, Entry& entry, Millis finished_ms);
  void forget_wake(JobId id, Entry& entry);
  void set_wake(JobId id, Entry& entry, std::optional<Millis> wake_ms, Millis elapsed_ms);
  JobId holder(const std::string& ns, const std::string& name) const;  // 0: none
  void tell_end(JobId of, Effects& out) const;                         // to those that wait for it
  void delete_excess(Effects& out);

  JobId next_id_;
  uint64_t finished_max_;
  std::map<JobId, Entry> jobs_;
  std::map<std::pair<std::string, std::string>, JobId> names_;
  std::map<JobId, std::set<JobId>> dependents_;  // by the job whose end they have not recorded
  std::set<JobId> unrecovered_;                  // since the start; they may have pods
  std::set<std::pair<Millis, JobId>> finished_;  // by time of finish
  std::set<std::pair<Millis, JobId>> wakes_;     // unloaded jobs, by when to load them (elapsed)
};

}  // namespace muster::core::registry
