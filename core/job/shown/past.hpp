// Past: a job as it was at some moment, kept compactly, so that a watch can send every state that
// the job has had.
//
// Successive states of a job share what they have in common: the object, what rarely changes, and
// the index sets, of which each state stores only the growth since the one before. So a state costs
// a few hundred bytes, whatever the size of the job, and taking it costs as much as its change.
#pragma once

#include "core/job/fold/job.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace muster::core {

// The states of an index set that grows. They share a list of intervals, of which each has a prefix
// as long as it needs; the list starts over when the growth outweighs the set that it began with.
class IndexTrail {
  struct Piece {
    std::vector<std::pair<uint32_t, uint32_t>> base, grown;
  };

 public:
  class At {
   public:
    IndexSet restore() const;

   private:
    friend class IndexTrail;
    std::shared_ptr<const Piece> piece_;
    size_t grown_ = 0;
  };

  // The set now. `grown`: what it has gained since the last call. `lost`: it has also lost indexes.
  // Adds to `bytes` what is stored for this state or remains stored only for earlier ones.
  At take(const IndexSet& now, const IndexSet& grown, bool lost, size_t& bytes);

 private:
  std::shared_ptr<Piece> piece_;
};

// What rarely changes in what is shown of a job.
struct SteadyState {
  int64_t generation = 1;
  int32_t parallelism = 1;
  std::optional<int32_t> completions;
  std::optional<Millis> started_at, completed_at, deleted_at;
  bool background_deleted = false, orphaned = false, deletion_waits = false, forgotten = false;
  bool synced = false, index_limits_off = false;
  std::vector<Condition> conditions;
  std::string external_status, own_conditions;
  std::optional<JobHeld> hold;
  std::optional<OverridesSet> overrides;
  std::optional<JobCancelled> cancelled;
  bool operator==(const SteadyState&) const = default;
};

struct JobPast {
  JobId id = 0;
  JobObjectPtr object;
  std::shared_ptr<const SteadyState> steady;
  IndexTrail::At completed, failed_indexes, cancelled_indexes;
  uint64_t succeeded = 0, failed = 0;
  PodCounts pods;
  // Bytes, about, that are stored for it, or from now on only for states before it.
  size_t bytes = 0;

  // A job that shows the same.
  Job restore() const;
};

// Takes the states of one job.
class JobTrail {
 public:
  // Notes what a record changed.
  void note(const Touched& touched);
  JobPast take(const Job& job);

 private:
  JobObjectPtr object_;
  std::shared_ptr<const SteadyState> steady_;
  IndexTrail completed_, failed_indexes_, cancelled_indexes_;
  IndexSet completed_grown_, failed_grown_;
  IndexSet cancelled_;  // at the last state
  bool lost_ = false;
};

}  // namespace muster::core
