// Registry: which jobs exist, what they are called, where each of them is, and which of them wait
// for others.
//
// It decides whether a new job may have its name, which jobs are told that another one has ended,
// which unloaded jobs are due, and which finished jobs are too many. It has no records of its own:
// what it knows follows from those of the jobs, and at each start it adopts the jobs that were
// recovered.
//
// Invariants: a name has at most one job; an id is issued once; a job that waits for another one is
// told of its end, and again after each restart until it has recorded it. One that follows another
// index by index is told what that one says of its indexes; it says so whenever they have advanced,
// when it is over, and when it learns that it is followed.
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
  std::vector<Dependency> awaits{};    // jobs that have it among their dependents
  bool read = true;                    // false: the next three were not read from disk in this run
  std::optional<uint32_t> owner_uid{};
  bool indexed = true;
  std::optional<int32_t> completions{};  // of its spec; absent: it has none, or can't be read
  std::optional<Millis> wake_at{};       // when to load it again (elapsed)
  std::optional<Millis> finished_ms{};   // its place among the finished jobs
};

// ---- effects: what is to be done, in this order. A job without an actor is loaded first.

// To a job that waits for another one, which has ended or is gone.
struct TellEnd {
  JobId dependent = 0;
  JobId of = 0;
  DependencyEnd how = DependencyEnd::deleted;
  ProgressPtr progress{};  // for one that follows it; null: unknown
};
// To a job that follows another one index by index.
struct TellProgress {
  JobId dependent = 0;
  JobId of = 0;
  ProgressPtr progress;
};
// To a job. While others wait, it is not forgotten; while one follows it, it reports how far its
// indexes are.
struct TellDependents {
  JobId job = 0;
  Dependents dependents;
};
// It is over: its actor stops once it has answered everything sent to it.
struct StopActor {
  JobId job = 0;
};
// It finished before all others, and more have finished than are kept.
struct DeleteFinished {
  JobId job = 0;
};

using Effect = std::variant<TellEnd, TellProgress, TellDependents, StopActor, DeleteFinished>;
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
// Who owns this job, and how many indexes it has (set_read).
struct ReadJob {
  JobId job = 0;
};
using Admission = std::variant<Admitted, AskHolder, ReadJob, Error>;

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
  void set_read(JobId id, const JobObject* object);  // null: it can't be read
  Result<JobId> find(const std::string& ns, const std::string& name, const std::string& uid) const;

  void set_running(JobId id);
  void quarantine(JobId id, const std::string& why);
  void set_completions(JobId id, std::optional<int32_t> completions);
  Effects advanced(JobId id, const ProgressPtr& progress) const;
  // `progress`: may be null while it is not forgotten, if it did not know of jobs that follow it.
  // Once it does, it is reported as over again.
  Effects over(JobId id, const JobOver& how, const ProgressPtr& progress, const Now& now);
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
  Dependents dependents_of(JobId id) const;
  std::optional<Millis> next_due() const {  // elapsed
    return wakes_.empty() ? std::nullopt : std::optional(wakes_.begin()->first);
  }

 private:
  void add(JobId id, Entry entry, bool named = true);
  void keep_finished(JobId id, Entry& entry, Millis finished_ms);
  void forget_wake(JobId id, Entry& entry);
  void set_wake(JobId id, Entry& entry, std::optional<Millis> wake_ms, Millis elapsed_ms);
  JobId holder(const std::string& ns, const std::string& name) const;  // 0: none
  // To those that wait for it. Those that follow it are told only with its progress, or if it is
  // gone.
  void tell_end(JobId of, const ProgressPtr& progress, bool gone, Effects& out) const;
  void release(JobId id, std::vector<Dependency> awaited, Effects& out);  // it waits no longer
  void delete_excess(Effects& out);

  JobId next_id_;
  uint64_t finished_max_;
  std::map<JobId, Entry> jobs_;
  std::map<std::pair<std::string, std::string>, JobId> names_;
  // By the job whose end they have not recorded: whether they follow it index by index.
  std::map<JobId, std::map<JobId, bool>> dependents_;
  std::set<JobId> unrecovered_;                  // since the start; they may have pods
  std::set<std::pair<Millis, JobId>> finished_;  // by time of finish
  std::set<std::pair<Millis, JobId>> wakes_;     // unloaded jobs, by when to load them (elapsed)
};

}  // namespace muster::core::registry
