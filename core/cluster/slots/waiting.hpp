// WaitingJobs: the jobs that wait for slots, by priority, user and what their pods require.
//
// A round of placement looks at users who want something, and then only at the jobs of those who
// get something: what each user wants is a sum that is kept up to date. Jobs whose pods fit the
// same nodes are of one kind, so that all of them are skipped once one fits nowhere.
//
// Invariant: the sums are of the jobs that are in.
#pragma once

#include "core/cluster/slots/allowance.hpp"
#include "core/cluster/slots/free_node.hpp"
#include "core/cluster/slots/holdings.hpp"
#include "core/spec/values/steps.hpp"

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace muster::core {

// What the pods of a queue's jobs hold, in slots of the cluster (fair_share.hpp).
struct QueueShare {
  double held = 0;
  double weight = 1;
  uint32_t number = 0;  // differs between queues
};

// Likewise, of a user's jobs in one queue.
struct UserShare {
  double held = 0;
  double weight = 1;
  QueueShare* queue = nullptr;  // null: one queue for all
  uint32_t number = 0;          // differs between users of a queue
};

// Demands for which alike() holds.
struct Kind {
  Demand demand;
  size_t jobs = 0;
  uint64_t stuck = 0;  // the last pass in which such a pod fitted nowhere
  // In pass `looked`, no more such pods fit on this many of the first nodes, and of the last.
  uint64_t looked = 0;
  size_t full[2] = {};
};

struct Pack;
struct Line;

struct WaitingJob {
  JobId job = 0;
  uint32_t wanted = 0;
  const Demand* demand = nullptr;            // null: slots only
  const Reservation* reservation = nullptr;  // null: none
  uint32_t pods = 0;                         // that it has on nodes
  uint32_t kept = 0;                         // places kept for it that count under its limits
  bool limited = false;                      // any of `limits` is set
  // A gang some of whose members have slots, which they keep until the others have theirs.
  bool begun = false;
  double cost = 1;            // of one pod, in slots of the cluster (fair_share.hpp)
  double share = 0;           // of all its pods, likewise
  Kind* kind = nullptr;       // from WaitingJobs
  uint64_t turn = 0;          // among its equals
  UserShare* user = nullptr;  // shared by all of the user's jobs. Null: one user for all of these
  double real = 1;            // part of its pods that are not prefetched
  Allowances limits{};        // shared with other jobs
  // Its pods by node, for a job that may be packed or spread by itself. Null: none.
  const Holdings* held = nullptr;
  // When its reservation is likely to be complete, from now. Absent: it is not known.
  std::optional<Millis> starts_in_ms{};
  // How long its next pods are likely to run. Absent: it is not known.
  std::optional<Millis> runs_ms{};

  // Where it waits; from WaitingJobs.
  Line* line = nullptr;
  Pack* pack = nullptr;  // null: it is a gang
  size_t at = 0;
  bool ordinary = true;  // neither it nor its pods say in which order they want nodes
};

// The job's demand, or one that needs only slots.
inline const Demand& demand_of(const WaitingJob& job) {
  return job.demand ? *job.demand : kPlainDemand;
}
// Which kept places do not count for the job under this limit (Allowance::left()).
std::optional<uint64_t> own_places(const Allowance& limit, const WaitingJob& job);
// Whether its next pod would be the first of its job under its limits, whatever steps
// (core/spec/values/steps.hpp) it has.
bool would_be_new(const WaitingJob& job);
// `most`, limited to the number of pods that the job may still have.
uint64_t allowed(const WaitingJob& job, uint64_t most);
// Whether a pod of the job takes as much as several slots, or all its pods start together.
bool is_large(const WaitingJob& job);
// Whether it may have at least one more pod; for a gang, all that it wants.
bool may_have(const WaitingJob& job);
// Whether neither this job nor any other under the same limits may have a pod.
bool is_full(const WaitingJob& job);
// Counts pods of the job that got a slot, or no longer have one (negative), against its limits, and
// in its share and those of its user and queue.
void count_pods(WaitingJob& job, int64_t pods);
// Sets how many places are kept for it.
void set_kept(WaitingJob& job, uint32_t places);

// Of a job that is in a pack, what a division among its user's jobs needs, and the last pass in
// which it could have no more. The jobs themselves are far from each other, and most of them get
// nothing.
struct Wish {
  static constexpr Millis kUnknown = INT64_MAX;

  double share = 0;
  double cost = 1;
  uint64_t turn = 0;
  Millis runs_ms = kUnknown;
  uint64_t out = 0;
  uint32_t wanted = 0;
};

// Jobs of one user, queue and priority. Plain ones request no resources.
struct Pack {
  std::pair<uint32_t, uint32_t> key;
  bool plain = false;
  bool limited = false;  // as all of its jobs are
  UserShare* user = nullptr;
  Kind* kind = nullptr;  // of all of its jobs; null: not of one
  std::vector<WaitingJob*> jobs;
  std::vector<Wish> wishes;  // of each of them
  double wanted = 0;         // in slots of the cluster
  // Of a pod: no job that is in takes less. Kept while the pack is, so it may be less than any.
  double least_cost = std::numeric_limits<double>::infinity();
};
// Whether a pod of the job requests no resources.
inline bool is_plain(const WaitingJob& job) {
  return job.pack ? job.pack->plain : demand_of(job).amounts.none();
}
// After a change of the job's share.
inline void note_share(WaitingJob& job) {
  if (job.pack) job.pack->wishes[job.at].share = job.share;
}

// Likewise, of how long its next pods are likely to run.
inline void set_runs(WaitingJob& job, std::optional<Millis> runs_ms) {
  job.runs_ms = runs_ms;
  if (job.pack) job.pack->wishes[job.at].runs_ms = runs_ms.value_or(Wish::kUnknown);
}

// Jobs of one priority.
struct Line {
  int32_t priority = 0;
  using Packs = std::map<std::pair<uint32_t, uint32_t>, Pack>;  // by numbers of queue and user
  Packs plain, others;
  std::vector<WaitingJob*> gangs;
  bool empty() const { return plain.empty() && others.empty() && gangs.empty(); }
};

// One pass over waiting jobs: which of them it serves, and in which order.
struct Pass {
  uint64_t number = 0;
  uint64_t first_turn = 0;
  bool only_plain = false;
  // Only jobs without a reservation whose pods are likely to end within this time.
  std::optional<Millis> ends_within{};

  uint64_t order(const WaitingJob& job) const { return job.turn - first_turn; }
  // Otherwise it serves none of its jobs.
  bool serves(const Pack& pack) const { return !pack.kind || pack.kind->stuck != number; }
  // Whether it serves the job at this position of a pack that it serves.
  bool serves(const Pack& pack, size_t at) const;
  // From now on, not this one.
  void take_out(WaitingJob& job) const {
    if (job.pack) job.pack->wishes[job.at].out = number;
  }
};

class WaitingJobs {
 public:
  using Lines = std::map<int32_t, Line, std::greater<>>;

  // Its user, demand, priority and cost must not change while it is in.
  void add(WaitingJob& job);
  void remove(WaitingJob& job);  // nothing happens if it is not in
  void set_wanted(WaitingJob& job, uint32_t wanted);
  void set_cost(WaitingJob& job, double cost);
  // Adds up anew what was rounded.
  void sum_up();

  void set_kind(WaitingJob& job);  // after each change of its demand
  void drop_kind(WaitingJob& job);

  Lines& lines() { return lines_; }
  const Lines& lines() const { return lines_; }
  bool empty() const { return lines_.empty(); }
  bool any_large() const { return large_ > 0; }
  uint64_t next_pass() { return ++passes_; }

 private:
  Lines lines_;
  std::unordered_multimap<size_t, std::unique_ptr<Kind>> kinds_;
  uint64_t passes_ = 0;
  size_t large_ = 0;  // jobs that are in and large
};

// The number of slots for each job on each node.
using Grants = std::map<JobId, std::map<NodeId, uint32_t>>;

}  // namespace muster::core
