#include "core/job/fold/job.hpp"

#include "base/check.hpp"
#include "base/exec_exit.hpp"
#include "core/job/facts/pod_conditions.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/rules/begin.hpp"
#include "core/spec/rules/retry_steps.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace muster::core {

namespace {

// For an event.
std::string brief_text(const IndexSet& indexes) {
  constexpr size_t kMost = 100;  // characters
  std::string text = indexes.text();
  if (text.size() <= kMost) return text;
  return text.substr(0, text.rfind(',', kMost)) + ",…";
}

bool failed_to_start(const PodEnd& end) {
  return end.exit_code == kExitCannotStart || end.exit_code == kExitNotFound;
}

}  // namespace

// Applies records to a job: one function per kind of record.
struct Applier {
  Job& job;
  JobState& s;
  Touched* touched;
  std::vector<Pod>* closed;
  Millis at = 0;

  void touch(PodKey key) {
    if (touched) touched->pods.push_back(key);
  }

  void tell(JobEvent::Kind kind, PodKey pod = {}, const std::string& note = "") {
    JobEvent event{kind, at, pod, s.events_total++};
    if (!note.empty()) s.notes.emplace(event.nr, note);
    if (s.notes.size() > kNotesMax) s.notes.erase(s.notes.begin());
    if (touched) touched->events.push_back(event);
    s.events.push_back(event);
    if (s.events.size() <= kEventsMax) return;
    // Creations must not push out warnings: drop the oldest normal event.
    auto oldest = std::find_if(s.events.begin(), s.events.end(),
                               [](const JobEvent& e) { return !e.warning(); });
    if (oldest == s.events.end()) oldest = s.events.begin();
    s.notes.erase(oldest->nr);
    s.events.erase(oldest);
  }

  // Whether an open pod blocks a new one for this index.
  bool index_deferred(uint32_t index) const {
    bool also_terminating = job.spec().replace_only_failed();
    for (auto it = s.open.lower_bound({index, 0}); it != s.open.end() && it->first.index == index;
         ++it)
      if (it->second.active() || also_terminating) return true;
    return false;
  }

  // The index is completed or failed: it gets no more pods.
  void settle(uint32_t index) {
    s.attempts.erase(index);
    s.inherited.erase(index);
  }

  // The next pods of this index, or in a gang of all, have at least these steps.
  void raise(uint32_t index, Steps steps) {
    if (!job.gang().together && s.completed.contains(index)) return;
    Steps& has = s.steps[job.gang().together ? 0 : index];
    has = {std::max(has.memory, steps.memory), std::max(has.time, steps.time)};
  }

  // The gang is no longer broken.
  void mend() {
    s.broken.reset();
    for (auto& [key, pod] : s.open) pod.spared = false;
  }

  // A pod of a broken gang is judged: the next pod of its index inherits its counts, unless that
  // pod already exists or the index gets none.
  void pass_on(const Pod& pod, Counted how, Millis ended_ms) {
    const uint32_t index = pod.key.index;
    const bool broke = s.broken && s.broken->by == pod.key;
    if (!job.per_index_ || how == Counted::succeeded || !(broke || pod.spared)) return;
    if (static_cast<int64_t>(index) >= job.index_count() || s.completed.contains(index) ||
        s.failed_indexes.contains(index))
      return;
    for (auto it = s.open.lower_bound({index, 0}); it != s.open.end() && it->first.index == index;
         ++it)
      if (it->first != pod.key && it->second.active()) return;
    FailureCounts counts{pod.failures, pod.ignored, 0, pod.disruptions};
    const bool raised = next_steps(job, index) != pod.steps;
    const bool pays = s.broken && (s.broken->leader_pays ? index == 0 : broke);
    if (pays && (!broke || how != Counted::released)) {
      ++(how == Counted::ignored ? counts.ignored : counts.failures);
      if (how == Counted::ignored && is_disrupted(pod)) ++counts.disruptions;
      if (!raised) counts.failed_ms = ended_ms;
    }
    s.inherited.try_emplace(index, counts);
  }

  void fail_index(uint32_t index) {
    s.failed_indexes.insert(index);
    if (touched) touched->failed_indexes.insert(index);
    settle(index);
    count_waiting(index);
  }

  void retake(uint32_t index) {
    if (!job.indexed_) return;
    if (s.completed.contains(index) || s.failed_indexes.contains(index) ||
        s.cancelled_indexes.contains(index) || index_deferred(index))
      job.taken_.insert(index);
    else
      job.taken_.erase(index);
  }

  // The pod has started at this instant, unless it had before.
  void set_started(Pod& pod, Millis started_ms) {
    if (pod.started_at) return;
    pod.started_at = started_ms;
    // A job from before this was recorded has had pods: its first start is not known.
    if (s.usage.first_start || s.usage.ran_ms > 0) return;
    s.usage.first_start = started_ms;
    s.usage.waited_ms = std::max<Millis>(0, started_ms - s.started_at.value_or(s.admitted_ms));
  }

  void count(Pod& pod, Counted how) {
    if (how == Counted::not_yet) return;
    MUSTER_CHECK(pod.counted == Counted::not_yet, to_string(pod.key));
    pod.counted = how;
    if (how == Counted::failed) ++s.failed;
    if (how != Counted::succeeded) return;
    if (!job.indexed_) {
      ++s.succeeded;
    } else {
      s.completed.insert(pod.key.index);
      if (!job.gang().together) s.steps.erase(pod.key.index);
      s.cancelled_indexes.erase(pod.key.index);  // it was too late
      if (touched) touched->completed.insert(pod.key.index);
      settle(pod.key.index);
      bool leader = s.broken && !s.broken->whole && pod.key.index == 0;
      if (leader) mend();
    }
  }

  // A pod that is shown: open, deferred or finished.
  Pod* shown(PodKey key) { return const_cast<Pod*>(job.pod(key)); }

  void show_no_more(Pod pod) {
    if (touched) touched->removed.push_back(std::move(pod));
  }

  // The pod is no longer open: it is kept as finished, deferred, or dropped.
  void retire(Pod pod) {
    touch(pod.key);
    if (pod.counted == Counted::not_yet && pod.ended) {
      uint32_t index = pod.key.index;
      MUSTER_CHECK(!s.deferred.contains(index), index);
      if (pod.counts_when_replaced() != Counted::failed) ++job.deferred_not_failed_;
      s.deferred.emplace(index, std::move(pod));
      return;
    }
    bool returned = pod.ended && pod.end.cause == EndCause::returned;
    if (pod.ended && pod.bound() && !returned) {
      ++s.usage.attempts;
      if (closed) closed->push_back(pod);
    }
    if (pod.stopping_at.has_value() || (returned && !s.orphaned))
      return show_no_more(std::move(pod));
    s.finished.push_back(std::move(pod));
    job.finished_at_[s.finished.back().key] = std::prev(s.finished.end());
    if (s.finished.size() > kFinishedPodsMax) drop_finished(s.finished.front().key);
  }

  void drop_finished(PodKey key) {
    auto it = job.finished_at_.find(key);
    if (it == job.finished_at_.end()) return;
    show_no_more(std::move(*it->second));
    s.finished.erase(it->second);
    job.finished_at_.erase(it);
  }

  // Counts the failed pod of this index that waits for its replacement, deferred or still ending.
  void count_waiting(uint32_t index, std::optional<Counted> how = {}) {
    if (auto it = s.deferred.find(index); it != s.deferred.end()) {
      Pod pod = std::move(it->second);
      s.deferred.erase(it);
      Counted counts = pod.counts_when_replaced();
      if (counts != Counted::failed) --job.deferred_not_failed_;
      count(pod, how.value_or(counts));
      return retire(std::move(pod));
    }
    auto it = job.unjudged_.lower_bound({index, 0});
    if (!job.per_index_ || it == job.unjudged_.end() || it->index != index ||
        job.spec().replace_only_failed())
      return;
    touch(*it);
    count(s.open.at(*it), how.value_or(Counted::failed));
    job.unjudged_.erase(it);
  }

  // Removes an open pod from the counters and the map.
  Pod take(std::map<PodKey, Pod>::iterator it) {
    Pod pod = std::move(it->second);
    if (pod.active()) --job.active_;
    if (pod.ready()) --job.ready_;
    job.restarts_ -= static_cast<uint64_t>(pod.restarts);
    job.wait_no_more(pod);
    job.unjudged_.erase(pod.key);
    s.open.erase(it);
    return pod;
  }

  // The pod's deletion was requested, or it is now known how the pod counts. A counted pod that was
  // never bound is gone at once.
  void stop(std::map<PodKey, Pod>::iterator it, Counted how) {
    Pod& pod = it->second;
    if (pod.active()) {
      --job.active_;
      if (pod.ready()) --job.ready_;
      pod.stopping_at = at;
      job.wait_no_more(pod);
    }
    if (pod.counted == Counted::not_yet) count(pod, how);
    if (pod.counted == Counted::not_yet)
      job.unjudged_.insert(pod.key);
    else
      job.unjudged_.erase(pod.key);
    touch(pod.key);
    if (!pod.bound() && pod.counted != Counted::not_yet) show_no_more(take(it));
  }

  void stop_all(Counted how, bool tell_each) {
    for (auto it = s.open.begin(); it != s.open.end();) {
      auto next = std::next(it);
      if (tell_each && it->second.active()) tell(JobEvent::Kind::successful_delete, it->first);
      stop(it, how);
      it = next;
    }
    count_all_deferred();
  }

  void count_all_deferred() {
    while (!s.deferred.empty()) count_waiting(s.deferred.begin()->first);
  }

  // Changes a condition in place, or adds it unless it would be False (job-semantics 3.1). Returns
  // whether anything changed.
  bool ensure(ConditionType type, bool status, ConditionReason reason, const char* message) {
    for (Condition& c : s.conditions) {
      if (c.type != type) continue;
      if (c.status == status) return false;
      c = {type, status, at, reason, message};
      return true;
    }
    if (status) s.conditions.push_back({type, true, at, reason, message});
    return status;
  }

  void operator()(const JobAdmitted& r) {
    s.admitted_ms = r.at_ms;
    s.generation = job.object_->meta.generation;
    s.parallelism = job.spec().parallelism.value_or(1);
    s.completions = job.spec().completions;
    s.dependencies = r.after;
    for (const Dependency& one : r.after)
      if (one.after.needed == Needed::each) s.followed.push_back({one.job, one.after.job, {}});
    job.rebuild();
  }

  void operator()(const JobSpecChanged& r) {
    if (r.object) job.object_ = r.object;
    s.generation = r.generation;
    s.parallelism = r.parallelism;
    if (job.indexed_ && r.completions < s.completions) {
      // Forget the indexes that were scaled away, but never reuse their attempts.
      auto end = static_cast<uint32_t>(r.completions.value_or(0));
      s.attempt_floor = s.attempt_max;
      s.completed.erase_from(end);
      if (touched) touched->indexes_lost = true;
      s.failed_indexes.erase_from(end);
      s.cancelled_indexes.erase_from(end);
      s.attempts.erase(s.attempts.lower_bound(end), s.attempts.end());
      if (!job.gang().together) s.steps.erase(s.steps.lower_bound(end), s.steps.end());
      s.inherited.erase(s.inherited.lower_bound(end), s.inherited.end());
      while (!s.deferred.empty() && s.deferred.rbegin()->first >= end)
        count_waiting(s.deferred.rbegin()->first, Counted::released);
    }
    s.completions = r.completions;
    job.rebuild();
  }

  void operator()(const JobStarted& r) {
    s.started_at = r.at_ms;
    s.synced = true;
  }

  void operator()(const PodsCreated& r) {
    if (s.broken && (s.broken->whole || (!r.runs.empty() && r.runs.front().first == 0))) mend();
    for (const auto& run : r.runs) {
      for (uint32_t i = 0; i < run.count; ++i) {
        Pod pod;
        pod.key = {run.first + i, run.attempt};
        pod.created_ms = r.at_ms;
        pod.failures = run.failures;
        pod.ignored = run.ignored;
        pod.disruptions = run.disruptions;
        pod.steps = next_steps(job, pod.key.index);
        if (run.deferred_counted != Counted::not_yet)
          count_waiting(pod.key.index, run.deferred_counted);
        if (job.indexed_) {
          s.attempts[pod.key.index] = run.attempt + 1;
          s.inherited.erase(pod.key.index);
          s.attempt_max = std::max(s.attempt_max, run.attempt + 1);
          job.taken_.insert(pod.key.index);
        } else {
          s.next_number = std::max(s.next_number, pod.key.index + 1);
        }
        ++s.pods_created;
        ++job.active_;
        job.wait(pod);
        tell(JobEvent::Kind::successful_create, pod.key);
        touch(pod.key);
        bool fresh = s.open.emplace(pod.key, pod).second;
        MUSTER_CHECK(fresh, to_string(pod.key));
      }
    }
  }

  void operator()(const PodsBound& r) {
    for (const auto& binding : r.bindings) {
      auto it = s.open.find(binding.pod);
      MUSTER_CHECK(it != s.open.end() && !it->second.bound(), to_string(binding.pod));
      it->second.node = binding.node;
      it->second.bound_ms = r.at_ms;
      job.wait_no_more(it->second);
      touch(binding.pod);
    }
  }

  // Adds the last ends of the pod's containers that are in this phase: running, so that another
  // process has followed, or waiting for one that never came.
  static void remember_runs(Pod& pod, ContainerPhase phase) {
    for (size_t i = 0; i < pod.containers.size(); ++i) {
      const ContainerNow& now = pod.containers[i];
      if (now.phase != phase || !now.last) continue;
      RunEnd run{static_cast<uint16_t>(i), *now.last};
      run.end.restarts = now.restarts - (phase == ContainerPhase::running ? 1 : 0);
      if (run.end.restarts >= 0) add_run(pod.runs, run);
    }
  }

  void operator()(const PodsStarted& r) {
    for (const auto& start : r.starts) {
      auto it = s.open.find(start.pod);
      if (it == s.open.end()) continue;
      Pod& pod = it->second;
      bool was_ready = pod.ready();
      job.restarts_ += static_cast<uint64_t>(start.restarts) - static_cast<uint64_t>(pod.restarts);
      pod.pid = start.pid;
      pod.restarts = start.restarts;
      pod.readiness = start.readiness;
      pod.containers = start.containers;
      pod.cpus = start.cpus;
      remember_runs(pod, ContainerPhase::running);
      set_started(pod, start.started_ms);
      s.start_trouble.erase(pod.node);
      if (pod.ready() && !was_ready) ++job.ready_;
      if (was_ready && !pod.ready()) --job.ready_;
      touch(start.pod);
    }
  }

  // A returned pod that has an exit code could not be started.
  void note_start(const Pod& pod) {
    if (pod.started_at) s.start_trouble.erase(pod.node);
    if (pod.end.cause != EndCause::returned || !failed_to_start(pod.end)) return;
    s.start_trouble[pod.node] = {at, pod.end.message};
    if (s.start_trouble.size() <= kStartTroubleMax) return;
    s.start_trouble.erase(std::ranges::min_element(
        s.start_trouble, {}, [](const auto& one) { return one.second.at_ms; }));
  }

  void operator()(const PodsEnded& r) {
    for (const auto& one : r.ends) {
      auto it = s.open.find(one.pod);
      MUSTER_CHECK(it != s.open.end(), to_string(one.pod));
      Pod pod = take(it);
      pod.ended = true;
      pod.end = one.end;
      if (one.end.containers.empty()) remember_runs(pod, ContainerPhase::waiting);
      pod.containers.clear();  // the end has them
      for (const RunEnd& run : one.runs) add_run(pod.runs, run);
      if (one.start) {
        pod.pid = one.start->pid;
        pod.restarts = one.restarts;
        set_started(pod, one.start->at);
      }
      pod.action = one.action;
      note_start(pod);
      s.usage.used.add(one.end.used);
      if (pod.started_at) s.usage.ran_ms += std::max<Millis>(0, one.end.ended_at - *pod.started_at);
      if (one.raised.any()) raise(pod.key.index, one.raised);
      count(pod, one.counted);
      if (one.fails_index) fail_index(pod.key.index);
      if (one.counted != Counted::not_yet) pass_on(pod, one.counted, one.end.ended_at);
      if (s.completed.contains(pod.key.index)) count_waiting(pod.key.index);
      uint32_t index = pod.key.index;
      retire(std::move(pod));
      retake(index);
    }
    s.backoff_failures = r.backoff_failures;
    s.backoff_last_ms = r.backoff_last_ms;
  }

  void operator()(const PodsStopping& r) {
    for (const auto& one : r.pods) {
      Pod* pod = shown(one.pod);
      MUSTER_CHECK(pod != nullptr, to_string(one.pod));
      if (one.grace_ms) pod->grace_ms = one.grace_ms;
      if (pod->ended) {  // deferred: still waiting for its replacement
        pod->stopping_at = r.at_ms;
        touch(one.pod);
        continue;
      }
      if (r.by_job && pod->active()) tell(JobEvent::Kind::successful_delete, one.pod);
      if (pod->counted == Counted::not_yet && one.counted != Counted::not_yet && !one.fails_index)
        pass_on(*pod, one.counted, pod->stopping_at.value_or(r.at_ms));
      stop(s.open.find(one.pod), one.counted);
      if (one.fails_index) fail_index(one.pod.index);
      retake(one.pod.index);
    }
    s.backoff_failures = r.backoff_failures;
    s.backoff_last_ms = r.backoff_last_ms;
  }

  void operator()(const PodConditionSet& r) {
    Pod* pod = shown(r.pod);
    MUSTER_CHECK(pod != nullptr, to_string(r.pod));
    auto it = std::find_if(pod->conditions.begin(), pod->conditions.end(),
                           [&r](const PodCondition& c) { return c.type == r.condition.type; });
    if (it == pod->conditions.end())
      pod->conditions.push_back(r.condition);
    else
      *it = r.condition;
    touch(r.pod);
  }

  void operator()(const PodsRemoved& r) {
    for (PodKey key : r.pods) drop_finished(key);
  }

  void operator()(const JobSuspended& r) {
    bool changed = r.suspended ? ensure(ConditionType::suspended, true,
                                        ConditionReason::job_suspended, "Job suspended")
                               : ensure(ConditionType::suspended, false,
                                        ConditionReason::job_resumed, "Job resumed");
    s.synced = true;
    if (!changed) return;
    const bool waits = r.suspended || job.held() || job.on_hold() || job.begins_after(r.at_ms);
    s.started_at = waits ? std::nullopt : std::optional(r.at_ms);
    tell(r.suspended ? JobEvent::Kind::suspended : JobEvent::Kind::resumed);
  }

  void operator()(const DependencyEnded& r) {
    std::erase_if(s.dependencies, [&r](const Dependency& one) { return one.job == r.job; });
    const auto it = followed(r.job);
    if (it == s.followed.end()) return;
    if (r.how == DependencyEnd::waived)
      s.followed.erase(it);
    else
      it->ended = true;
    job.rebuild();
  }

  std::vector<Followed>::iterator followed(JobId of) {
    return std::ranges::find(s.followed, of, &Followed::job);
  }

  void operator()(const DependencyAdvanced& r) {
    const auto it = followed(r.job);
    MUSTER_CHECK(it != s.followed.end(), r.job);
    it->known.passed.insert_all(r.more.passed);
    it->known.failed.insert_all(r.more.failed);
    for (const auto& [first, last] : r.more.passed.intervals())
      for (int64_t i = first; i <= last && i < job.index_count(); ++i) {
        const auto index = static_cast<uint32_t>(i);
        if (job.left_out_.contains(index) || !job.cleared(index)) continue;
        job.any_cleared_ = true;
        retake(index);
      }
  }

  void operator()(const IndexesFailed& r) {
    s.failed_indexes.insert_all(r.indexes);
    if (touched) touched->failed_indexes.insert_all(r.indexes);
    job.taken_.insert_all(r.indexes);
    for (const auto& [first, last] : r.indexes.intervals())
      s.attempts.erase(s.attempts.lower_bound(first), s.attempts.upper_bound(last));
    std::vector<uint32_t> waiting;
    for (const auto& [index, pod] : s.deferred)
      if (r.indexes.contains(index)) waiting.push_back(index);
    for (const uint32_t index : waiting) count_waiting(index);
  }

  void operator()(const StatusWritten& r) { s.external_status = r.json; }
  void operator()(const ConditionsWritten& r) { s.own_conditions = r.json; }

  void operator()(const PodMetaSet& r) {
    Pod* pod = shown(r.pod);
    MUSTER_CHECK(pod != nullptr, to_string(r.pod));
    for (const PodMetaChange& change : r.changes) {
      auto it = std::find_if(pod->meta.begin(), pod->meta.end(), [&change](const PodMetaChange& c) {
        return c.label == change.label && c.key == change.key;
      });
      if (it == pod->meta.end())
        pod->meta.push_back(change);
      else
        *it = change;
    }
    job.relabeled_ = true;
    touch(r.pod);
  }

  void operator()(const FinishDecided& r) {
    s.synced = true;
    s.dependencies.clear();
    s.conditions.push_back(
        {r.success ? ConditionType::success_criteria_met : ConditionType::failure_target, true,
         r.at_ms, r.reason, r.message});
    stop_all(r.success                                ? Counted::released
             : r.reason == ConditionReason::cancelled ? Counted::cancelled
                                                      : Counted::failed,
             true);
  }

  void operator()(const JobFinished& r) {
    const Condition* interim = job.condition(ConditionType::success_criteria_met);
    bool success = interim != nullptr;
    if (!success) interim = job.condition(ConditionType::failure_target);
    MUSTER_CHECK(interim != nullptr);
    s.conditions.push_back({success ? ConditionType::complete : ConditionType::failed, true,
                            r.at_ms, interim->reason, interim->message});
    if (success) s.completed_at = r.at_ms;
    s.hold.reset();
    s.owner_hold.reset();
    if (s.overrides) s.usage.queue = s.overrides->overrides.queue.value_or("");
    s.overrides.reset();
    s.start_trouble.clear();
    if (success && s.completions && job.succeeded() > static_cast<uint64_t>(*s.completions))
      tell(JobEvent::Kind::too_many_succeeded);
    tell(success ? JobEvent::Kind::completed : JobEvent::Kind::failed);
  }

  void operator()(const JobDeleted& r) {
    if (!s.deleted_at) s.deleted_at = r.at_ms;
    s.background_deleted = s.background_deleted || r.background;
    s.deletion_waits = r.waits;
    if (!r.orphan && !r.waits) {
      s.orphaned = false;
      return stop_all(Counted::released, false);
    }
    s.orphaned = r.orphan;
    for (auto it = s.open.begin(); it != s.open.end();) {
      auto next = std::next(it);
      touch(it->first);
      if (it->second.terminating())
        stop(it, Counted::released);
      else
        count(it->second,
              it->second.counted == Counted::not_yet ? Counted::released : Counted::not_yet);
      it = next;
    }
    count_all_deferred();
    if (r.orphan)
      for (const Pod& pod : s.finished) touch(pod.key);  // they no longer have an owner
  }

  void operator()(const GangBroken& r) {
    s.broken = r.how;
    for (auto& [key, pod] : s.open) pod.spared = key != r.how.by && pod.counted == Counted::not_yet;
    tell(JobEvent::Kind::gang_broken, r.how.by);
  }

  void operator()(const JobHeld& r) {
    if (!r.by_operator)
      s.owner_hold.reset();
    else if (s.hold && !s.hold->by_operator)
      s.owner_hold = s.hold;
    s.hold = r;
    tell(JobEvent::Kind::held, {}, r.by + (r.reason.empty() ? "" : ": " + r.reason));
  }

  void operator()(const JobReleased& r) {
    s.hold.reset();
    s.owner_hold.reset();
    tell(JobEvent::Kind::released, {}, r.by);
  }

  void operator()(const OverridesSet& r) {
    s.overrides = r.overrides.any() ? std::optional(r) : std::nullopt;
    tell(JobEvent::Kind::overridden, {}, overrides_words(r.overrides) + " by " + r.by);
  }

  void operator()(const JobCancelled& r) {
    s.cancelled = r;
    tell(JobEvent::Kind::cancelled, {}, "the job by " + r.by);
  }

  void operator()(const IndexesCancelled& r) {
    s.cancelled_indexes.insert_all(r.indexes);
    s.cancellations.push_back(r);
    if (s.cancellations.size() > kCancellationsMax) s.cancellations.erase(s.cancellations.begin());
    job.taken_.insert_all(r.indexes);
    tell(JobEvent::Kind::cancelled, {},
         (r.indexes.size() == 1 ? "index " : "indexes ") + brief_text(r.indexes) + " by " + r.by);
  }

  void operator()(const JobForgotten&) { s.forgotten = true; }

  void operator()(const IndexLimitsSet& r) {
    s.index_limits_off = !r.on;
    if (r.on || s.failed_indexes.empty()) return;
    s.attempt_floor = s.attempt_max;  // never reuse their attempts
    s.failed_indexes = IndexSet{};
    if (touched) touched->indexes_lost = true;
    job.rebuild();
  }
};

Job::Job(JobId id, JobObjectPtr object) : Job(id, std::move(object), JobState{}) {}

Job::Job(JobId id, JobObjectPtr object, JobState state)
    : id_(id),
      object_(std::move(object)),
      indexed_(object_->spec.indexed()),
      per_index_(object_->spec.backoff_limit_per_index.has_value()),
      state_(std::move(state)) {
  for (auto it = state_.finished.begin(); it != state_.finished.end(); ++it)
    finished_at_[it->key] = it;
  rebuild();
}

Job::Job(JobId id, JobObjectPtr object, JobState state, const PodCounts& pods)
    : id_(id),
      object_(std::move(object)),
      indexed_(object_->spec.indexed()),
      per_index_(object_->spec.backoff_limit_per_index.has_value()),
      state_(std::move(state)),
      absent_(pods),
      active_(pods.active),
      ready_(pods.ready) {
  if (indexed_) take_rules();
}

Job::Job(const Job& other)
    : Job(other.absent_ ? Job(other.id_, other.object_, other.state_, *other.absent_)
                        : Job(other.id_, other.object_, other.state_)) {}

void Job::rebuild() {
  active_ = ready_ = deferred_not_failed_ = 0;
  restarts_ = 0;
  pending_.clear();
  raised_.clear();
  unjudged_.clear();
  left_out_ = taken_ = IndexSet{};
  if (indexed_) {
    const IndexSet all = take_rules();
    taken_ = left_out_;
    for (const Followed& one : state_.followed) taken_.insert_all(all.without(one.known.passed));
    any_cleared_ = static_cast<int64_t>(taken_.lowest_missing(0)) < index_count();
    taken_.insert_all(state_.completed);
    taken_.insert_all(state_.failed_indexes);
    taken_.insert_all(state_.cancelled_indexes);
  }
  for (const auto& [key, pod] : state_.open) {
    if (pod.active()) ++active_;
    if (pod.ready()) ++ready_;
    restarts_ += static_cast<uint64_t>(pod.restarts);
    if (!pod.bound() && pod.active()) wait(pod);
    if (pod.terminating() && pod.counted == Counted::not_yet) unjudged_.insert(key);
    if (indexed_ && (pod.active() || spec().replace_only_failed())) taken_.insert(key.index);
  }
  for (const auto& [index, pod] : state_.deferred)
    if (pod.counts_when_replaced() != Counted::failed) ++deferred_not_failed_;
  each_pod([this](const Pod& pod) { relabeled_ = relabeled_ || !pod.meta.empty(); });
}

void Job::wait(const Pod& pod) {
  pending_.insert(pod.key);
  if (pod.steps.any()) raised_[pod.steps].insert(pod.key);
}

void Job::wait_no_more(const Pod& pod) {
  pending_.erase(pod.key);
  if (!pod.steps.any()) return;
  const auto it = raised_.find(pod.steps);
  if (it == raised_.end()) return;
  it->second.erase(pod.key);
  if (it->second.empty()) raised_.erase(it);
}

AskSlots Job::slots_wanted() const {
  if (gated() || on_hold()) return {};
  AskSlots ask{static_cast<uint32_t>(pending_.size())};
  for (const auto& [steps, pods] : raised_) {
    const auto number = static_cast<uint32_t>(pods.size());
    ask.more.emplace(steps, number);
    ask.wanted -= number;
  }
  return ask;
}

std::vector<PodKey> Job::pending_with(Steps steps, size_t most) const {
  std::vector<PodKey> pods;
  if (!steps.any()) {
    for (auto it = pending_.begin(); it != pending_.end() && pods.size() < most; ++it)
      if (raised_.empty() || !state_.open.at(*it).steps.any()) pods.push_back(*it);
    return pods;
  }
  if (const auto all = raised_.find(steps); all != raised_.end())
    for (auto it = all->second.begin(); it != all->second.end() && pods.size() < most; ++it)
      pods.push_back(*it);
  return pods;
}

// Reads the annotations of an Indexed job and returns all its indexes, also those left out.
IndexSet Job::take_rules() {
  const JobAnnotations own = read_annotations(object_->meta.annotations);
  gang_ = {own.gang, own.mpi && !own.mpi->direct, own.restart_gang, own.mpi && own.mpi->direct};
  left_out_.clear();
  IndexSet all = own_indexes();
  if (own.indexes) left_out_ = all.without(*own.indexes);
  return all;
}

uint64_t Job::failures_of_indexes() const {
  if (state_.cancelled_indexes.empty()) return state_.failed_indexes.size();
  return state_.failed_indexes.without(state_.cancelled_indexes).size();
}

IndexSet Job::own_indexes() const {
  IndexSet all;
  if (index_count() > 0) all.insert_range(0, static_cast<uint32_t>(index_count() - 1));
  return all.without(left_out_);
}

bool Job::cleared(uint32_t index) const {
  return std::ranges::all_of(
      state_.followed, [index](const Followed& one) { return one.known.passed.contains(index); });
}

bool Job::held() const {
  if (absent_) return absent_->held;
  const auto& all = state_.dependencies;
  if (!std::ranges::all_of(all,
                           [](const Dependency& one) { return one.after.needed == Needed::each; }))
    return true;
  return !all.empty() && !any_cleared_ && state_.pods_created == 0 && state_.failed_indexes.empty();
}

std::optional<Millis> Job::begins_after(Millis at) const {
  if (state_.started_at) return std::nullopt;
  const auto begin = begin_of(object_->meta.annotations);
  return begin && at < *begin ? begin : std::nullopt;
}

std::optional<int64_t> Job::needed() const {
  if (!state_.completions) return std::nullopt;
  return *state_.completions - static_cast<int64_t>(left_out_.size());
}

void Job::apply(const Record& record, Touched* touched, std::vector<Pod>* closed) {
  Applier applier{*this, state_, touched, closed, at(record)};
  state_.last_record_ms = std::max(state_.last_record_ms, applier.at);
  std::visit(applier, record);
}

Millis Job::kill_deadline(const Pod& pod) const {
  const int64_t template_s = spec().pod.termination_grace_s.value_or(30);
  return pod.stopping_at.value_or(0) + pod.grace_ms.value_or(template_s * 1000);
}

namespace {

// Whether this pod is a worker of an MPI job whose leader is ended with it, or because of it, and
// has not ended yet. Such a worker is ended after its leader, whose launcher passes SIGTERM on to
// the ranks in all pods, so that they can save their work.
bool waits_for_leader(const Job& job, PodKey pod) {
  constexpr uint32_t kLeader = 0;
  if (!job.gang().leads || pod.index == kLeader) return false;
  const JobState& s = job.state();
  // A worker that was deleted breaks the gang as soon as it is judged (rules/gang.cpp), unless that
  // is when it has ended.
  const bool will_break = job.unjudged().contains(pod) && !job.spec().replace_only_failed() &&
                          !s.broken && !s.deleted_at && !job.decided();
  for (auto it = s.open.lower_bound({kLeader, 0}); it != s.open.end() && it->first.index == kLeader;
       ++it) {
    const Pod& leader = it->second;
    if (!leader.bound() || leader.ended) continue;
    if (leader.stopping_at || (leader.active() && (will_break || (s.broken && leader.spared))))
      return true;
  }
  return false;
}

}  // namespace

KillPods Job::kills(const std::vector<PodKey>& pods) const {
  KillPods kill;
  for (const PodKey key : pods) {
    auto pod = state_.open.find(key);
    if (pod != state_.open.end() && pod->second.bound() && !waits_for_leader(*this, key))
      kill.pods.push_back({key, pod->second.node, kill_deadline(pod->second)});
  }
  return kill;
}

std::vector<Effect> Job::desired_effects(NodeId node, const std::set<PodKey>& known,
                                         uint64_t registration) const {
  LaunchPods launch;
  KillPods kill;
  for (const auto& [key, pod] : state_.open) {
    if (!pod.bound() || (node != kNoNode && pod.node != node)) continue;
    if (pod.stopping_at && waits_for_leader(*this, key)) continue;
    if (pod.stopping_at)
      kill.pods.push_back({key, pod.node, kill_deadline(pod)});
    else if (pod.to_launch() && !known.contains(key))
      launch.pods.push_back({key, pod.node, registration});
  }
  std::vector<Effect> effects;
  if (!launch.pods.empty()) effects.push_back(std::move(launch));
  if (!kill.pods.empty()) effects.push_back(std::move(kill));
  if (node == kNoNode) return effects;
  LimitPods limits = limits_since_override(node);
  std::erase_if(limits.pods,
                [&known](const LimitPods::One& one) { return !known.contains(one.pod); });
  if (!limits.pods.empty()) effects.push_back(std::move(limits));
  return effects;
}

LimitPods Job::limits_since_override(NodeId node) const {
  LimitPods limits;
  const auto& set = state_.overrides;
  if (!set) return limits;
  for (const auto& [key, pod] : state_.open) {
    if (!pod.bound() || !pod.active() || (node != kNoNode && pod.node != node)) continue;
    if (pod.bound_ms > set->at_ms) continue;  // it was launched with them
    std::optional<int64_t> limit_s = set->overrides.time_limit_s;
    if (!limit_s) limit_s = time_limit_of(object(), pod.steps);
    const bool any = limit_s && *limit_s > 0;
    limits.pods.push_back({key, pod.node, any ? std::optional(*limit_s * 1000) : std::nullopt});
  }
  return limits;
}

JobObjectPtr placed_object(const Job& job, Steps steps) {
  const auto& set = job.state().overrides;
  if (!set && !steps.any()) return job.object_ptr();
  auto object = std::make_shared<JobObject>(job.object());
  raise(*object, steps);
  if (!set) return object;
  const auto& [priority, queue, time_limit_s] = set->overrides;
  if (priority) {
    object->spec.pod.priority = priority;
    object->spec.pod.priority_class_name.clear();
    object->priority_given = true;
  }
  if (queue) {
    object->meta.annotations[std::string(kQueueKey)] = *queue;
  }
  object->queue_given = queue.has_value();
  object->time_given = time_limit_s.has_value();
  if (time_limit_s)
    object->spec.pod.active_deadline_s =
        *time_limit_s == 0 ? std::nullopt : std::optional(*time_limit_s);
  return object;
}

JobObjectPtr launched_object(const Job& job, Steps steps) {
  const auto& set = job.state().overrides;
  const bool given = set && set->overrides.time_limit_s;
  if (!given && !steps.any()) return job.object_ptr();
  auto object = std::make_shared<JobObject>(*placed_object(job, steps));
  int64_t& generation = object->meta.generation;
  if (!steps.any()) {
    generation = -((generation << 31) + *set->overrides.time_limit_s + 1);
    return object;
  }
  // Bits from the highest: 1, 22 of the generation, 4 and 4 of the steps, 32 of the override.
  const int64_t time = given ? *set->overrides.time_limit_s + 1 : 0;
  generation = -((int64_t{1} << 62) | (generation & ((1 << 22) - 1)) << 40 |
                 int64_t{steps.memory} << 36 | int64_t{steps.time} << 32 | time);
  return object;
}

const Condition* Job::condition(ConditionType type) const {
  for (const Condition& c : state_.conditions)
    if (c.type == type && c.status) return &c;
  return nullptr;
}

const Condition* Job::terminal() const {
  const Condition* const complete = condition(ConditionType::complete);
  return complete ? complete : condition(ConditionType::failed);
}

bool Job::finished() const {
  return terminal() != nullptr;
}

bool Job::decided() const {
  return condition(ConditionType::success_criteria_met) || condition(ConditionType::failure_target);
}

const Pod* Job::pod(PodKey key) const {
  if (auto it = state_.open.find(key); it != state_.open.end()) return &it->second;
  if (auto it = state_.deferred.find(key.index);
      it != state_.deferred.end() && it->second.key == key)
    return &it->second;
  if (auto it = finished_at_.find(key); it != finished_at_.end()) return &*it->second;
  return nullptr;
}

Steps next_steps(const Job& job, uint32_t index) {
  const auto& all = job.state().steps;
  if (all.empty()) return {};
  const auto it = all.find(job.gang().together ? 0 : index);
  return it == all.end() ? Steps{} : it->second;
}

uint32_t Job::next_attempt(uint32_t index) const {
  auto it = state_.attempts.find(index);
  return it == state_.attempts.end() ? state_.attempt_floor : it->second;
}

}  // namespace muster::core
