// Which pods should exist (job-semantics 4): none while suspended or before muster.dev/begin, no
// more while on hold, and no surplus; missing pods are created, lowest index first. One sync either
// removes or creates pods. A pod that cannot be placed only costs memory, so a job whose pods are
// waiting creates more of them as those are placed. The pods of a gang are all needed to place any.
#include "core/job/facts/pod_conditions.hpp"
#include "core/job/rules/backoff.hpp"
#include "core/job/rules/sync.hpp"

namespace muster::core {

namespace {

constexpr uint32_t kYieldMax = 4'096;   // indexes in backoff passed over in one sync
constexpr uint32_t kCreateMax = 1'024;  // pods created in one sync; the next one follows at once

uint32_t target(const Job& job) {
  const JobState& s = job.state();
  if (!s.completions)
    return job.succeeded() == 0 ? static_cast<uint32_t>(s.parallelism) : job.active();
  int64_t left = job.needed().value_or(0) - static_cast<int64_t>(job.succeeded());
  return static_cast<uint32_t>(std::clamp<int64_t>(left, 0, s.parallelism));
}

// The next pod of an index. It inherits the failure counts of a deferred or deleted pod (4.6), or
// of one whose gang broke.
PodsCreated::Run next_pod(const Job& job, uint32_t index) {
  PodsCreated::Run run{index, 1, job.next_attempt(index), 0, 0, Counted::not_yet};
  if (auto it = job.state().deferred.find(index); it != job.state().deferred.end()) {
    const Pod& deferred = it->second;
    run.deferred_counted = deferred.counts_when_replaced();
    run.failures = deferred.failures + (run.deferred_counted == Counted::failed ? 1 : 0);
    const bool ignored = run.deferred_counted == Counted::ignored;
    run.ignored = deferred.ignored + (ignored ? 1 : 0);
    run.disruptions = deferred.disruptions + (ignored && is_disrupted(deferred) ? 1 : 0);
  } else if (const Pod* pod = deleted_pod(job, index)) {
    run.failures = pod->failures + 1;
    run.ignored = pod->ignored;
    run.disruptions = pod->disruptions;
    run.deferred_counted = Counted::failed;
  } else if (auto counts = job.state().inherited.find(index);
             counts != job.state().inherited.end()) {
    run.failures = counts->second.failures;
    run.ignored = counts->second.ignored;
    run.disruptions = counts->second.disruptions;
  }
  return run;
}

bool extends(const PodsCreated::Run& run, const PodsCreated::Run& next) {
  return next.first == run.first + run.count && next.attempt == run.attempt &&
         run.deferred_counted == Counted::not_yet && next.deferred_counted == Counted::not_yet &&
         next.failures == run.failures && next.ignored == run.ignored &&
         next.disruptions == run.disruptions;
}

}  // namespace

const Pod* deleted_pod(const Job& job, uint32_t index) {
  if (!job.per_index() || job.spec().replace_only_failed()) return nullptr;
  auto it = job.unjudged().lower_bound({index, 0});
  if (it == job.unjudged().end() || it->index != index) return nullptr;
  return &job.state().open.at(*it);
}

void manage_pods(Sync& sync) {
  const Job& job = sync.job;
  const JobState& s = job.state();
  if (sync.wants_suspended()) {
    sync.out.action = SyncAction::pods_deleted;
    if (!sync.knows_ends(nodes_of_active(job))) return;
    std::vector<PodsStopping::One> all;
    for (const auto& [key, pod] : s.open)
      if (pod.active()) all.push_back({key, Counted::released, false, std::nullopt});
    return stop_pods(sync, std::move(all));
  }
  if (job.held()) return;
  if (const auto begin = job.begins_after(sync.now)) return sync.wake(*begin);
  if (end_broken_gang(sync)) return;
  uint32_t want = target(job);
  if (remove_surplus(sync, want)) {
    sync.out.action = SyncAction::pods_deleted;
    return sync.wake(sync.now);
  }
  if (sync.waits || gang_still_ends(job) || job.on_hold()) return;
  uint32_t held_back = job.spec().replace_only_failed() ? job.terminating() : 0;
  uint32_t have = job.active() + held_back;
  if (want <= have) return;
  uint32_t number = want - have;
  if (!job.gang().together) {
    const auto waiting = static_cast<uint32_t>(job.pending().size());
    const uint32_t most = sync.knobs.pending_max;
    number = std::min(number, most - std::min(most, waiting));
    if (number == 0) return;  // the next placement brings another sync
  }
  sync.out.action = SyncAction::pods_created;  // also while a backoff delays it
  if (Millis due = job_due(job, sync.knobs); due > sync.now) return sync.wake(due);
  bool cut = number > kCreateMax && !job.gang().together;
  if (cut) number = kCreateMax;
  PodsCreated created{sync.now, {}};
  auto add = [&created](const PodsCreated::Run& run) {
    if (!created.runs.empty() && extends(created.runs.back(), run))
      ++created.runs.back().count;
    else
      created.runs.push_back(run);
  };
  if (!job.indexed()) {
    created.runs.push_back({s.next_number, number, 0, 0, 0, Counted::not_yet});
  } else {
    // An index in backoff still counts as a candidate (4.5), unless it yields its place.
    uint32_t yields = sync.knobs.backoff_yields && !job.gang().together ? kYieldMax : 0;
    Millis all_due = 0;
    uint64_t candidate = job.taken().lowest_missing(0);
    for (uint32_t i = 0; i < number && static_cast<int64_t>(candidate) < job.index_count(); ++i) {
      auto index = static_cast<uint32_t>(candidate);
      Millis due = index_due(job, sync.knobs, index);
      all_due = std::max(all_due, due);
      if (due > sync.now) {
        sync.wake(due);
        if (yields > 0) {
          --yields;
          --i;
        }
      } else if (!leader_waits(sync, index)) {
        add(next_pod(job, index));
      }
      candidate = job.taken().lowest_missing(candidate + 1);
    }
    if (s.broken && s.broken->whole && all_due > sync.now) return;  // all start together
  }
  if (created.runs.empty()) return;
  if (cut) sync.wake(sync.now);
  sync.emit(std::move(created));
}

void keep_suspended(Sync& sync) {
  if (sync.wants_suspended() != sync.job.suspended())
    sync.emit(JobSuspended{sync.now, sync.wants_suspended()});
}

}  // namespace muster::core
