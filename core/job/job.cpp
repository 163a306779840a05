#include "core/job/job.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <utility>

namespace muster::core {

namespace {

std::string terminal_type(const std::string& interim) {
  return interim == "SuccessCriteriaMet" ? "Complete" : "Failed";
}

}  // namespace

// One record after another onto a job: a function a kind of record.
struct Applier {
  Job& job;
  JobState& s;
  Touched* touched;
  Millis at = 0;

  void touch(PodKey key) {
    if (touched) touched->pods.push_back(key);
  }

  void tell(JobEvent::Kind kind, PodKey pod = {}) {
    JobEvent event{kind, at, pod, s.events_total++};
    if (touched) touched->events.push_back(event);
    s.events.push_back(event);
    if (s.events.size() <= kEventsMax) return;
    // Creations must not push warnings out: the oldest of the normal ones goes.
    auto oldest = std::find_if(s.events.begin(), s.events.end(),
                               [](const JobEvent& e) { return !e.warning(); });
    s.events.erase(oldest == s.events.end() ? s.events.begin() : oldest);
  }

  // Whether some open pod keeps new ones off this index.
  bool index_held(uint32_t index) const {
    bool also_terminating = job.spec().replace_only_failed();
    for (auto it = s.open.lower_bound({index, 0}); it != s.open.end() && it->first.index == index;
         ++it)
      if (it->second.active() || also_terminating) return true;
    return false;
  }

  void retake(uint32_t index) {
    if (!job.indexed_) return;
    if (s.completed.contains(index) || s.failed_indexes.contains(index) || index_held(index))
      job.taken_.insert(index);
    else
      job.taken_.erase(index);
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
      s.attempts.erase(pod.key.index);
    }
  }

  // No longer open: shown on as a finished pod, held back, or gone.
  void retire(Pod pod) {
    touch(pod.key);
    if (pod.counted == Counted::not_yet && pod.ended) {
      uint32_t index = pod.key.index;
      MUSTER_CHECK(!s.held.contains(index), index);
      s.held.emplace(index, std::move(pod));
      return;
    }
    if (pod.stopping_ms != 0) {
      if (touched) touched->removed.push_back(std::move(pod));
      return;
    }
    job.finished_at_[pod.key] = job.finished_dropped_ + s.finished.size();
    s.finished.push_back(std::move(pod));
    if (s.finished.size() <= kFinishedPodsMax) return;
    job.finished_at_.erase(s.finished.front().key);
    if (touched) touched->removed.push_back(std::move(s.finished.front()));
    s.finished.pop_front();
    ++job.finished_dropped_;
  }

  void count_held(uint32_t index, Counted how) {
    auto it = s.held.find(index);
    if (it == s.held.end()) return;
    Pod pod = std::move(it->second);
    s.held.erase(it);
    count(pod, how);
    retire(std::move(pod));
  }

  // Takes an open pod out of the figures and the map.
  Pod take(std::map<PodKey, Pod>::iterator it) {
    Pod pod = std::move(it->second);
    if (pod.active()) --job.active_;
    if (pod.ready()) --job.ready_;
    if (!pod.bound()) job.pending_.erase(pod.key);
    s.open.erase(it);
    return pod;
  }

  // Deletion is requested. A pod that was never bound is gone at once.
  void stop(std::map<PodKey, Pod>::iterator it, Counted how) {
    Pod& pod = it->second;
    bool was_active = pod.active();
    if (was_active) {
      --job.active_;
      if (pod.ready()) --job.ready_;
      pod.stopping_ms = at;
    }
    if (pod.counted == Counted::not_yet) count(pod, how);
    touch(pod.key);
    if (pod.bound()) return;
    job.pending_.erase(pod.key);
    Pod gone = std::move(pod);
    s.open.erase(it);
    if (touched) touched->removed.push_back(std::move(gone));
  }

  void stop_all(Counted how, bool tell_each) {
    for (auto it = s.open.begin(); it != s.open.end();) {
      auto next = std::next(it);
      if (tell_each && it->second.active()) tell(JobEvent::Kind::successful_delete, it->first);
      stop(it, how);
      it = next;
    }
    while (!s.held.empty()) count_held(s.held.begin()->first, Counted::failed);
  }

  void operator()(const JobAdmitted& r) {
    s.admitted_ms = r.at_ms;
    s.generation = job.object_->meta.generation;
    s.parallelism = job.spec().parallelism.value_or(1);
    s.completions = job.spec().completions.value_or(-1);
  }

  void operator()(const JobSpecChanged& r) {
    if (r.object) job.object_ = r.object;
    s.generation = r.generation;
    s.parallelism = r.parallelism;
    if (job.indexed_ && r.completions < s.completions) {
      // What was scaled away is forgotten, but none of its attempts may come again.
      s.attempt_floor = s.attempt_max;
      s.completed.erase_from(static_cast<uint32_t>(r.completions));
      s.failed_indexes.erase_from(static_cast<uint32_t>(r.completions));
      s.attempts.erase(s.attempts.lower_bound(static_cast<uint32_t>(r.completions)),
                       s.attempts.end());
    }
    s.completions = r.completions;
    job.rebuild();
  }

  void operator()(const JobStarted& r) {
    s.start_ms = r.at_ms;
    s.synced = true;
  }

  void operator()(const PodsCreated& r) {
    for (const auto& run : r.runs) {
      for (uint32_t i = 0; i < run.count; ++i) {
        Pod pod;
        pod.key = {run.first + i, run.attempt};
        pod.created_ms = r.at_ms;
        pod.failures = run.failures;
        pod.ignored = run.ignored;
        if (run.held_counted != Counted::not_yet) count_held(pod.key.index, run.held_counted);
        if (job.indexed_) {
          s.attempts[pod.key.index] = run.attempt + 1;
          s.attempt_max = std::max(s.attempt_max, run.attempt + 1);
          job.taken_.insert(pod.key.index);
        } else {
          s.next_number = std::max(s.next_number, pod.key.index + 1);
        }
        ++s.pods_created;
        ++job.active_;
        job.pending_.insert(pod.key);
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
      job.pending_.erase(binding.pod);
      touch(binding.pod);
    }
  }

  void operator()(const PodsStarted& r) {
    for (const auto& start : r.starts) {
      auto it = s.open.find(start.pod);
      if (it == s.open.end()) continue;
      Pod& pod = it->second;
      bool was_ready = pod.ready();
      pod.pid = start.pid;
      pod.restarts = start.restarts;
      if (pod.started_ms == 0) pod.started_ms = start.started_ms;
      if (pod.ready() && !was_ready) ++job.ready_;
      touch(start.pod);
    }
  }

  void operator()(const PodsEnded& r) {
    for (const auto& one : r.ends) {
      auto it = s.open.find(one.pod);
      MUSTER_CHECK(it != s.open.end(), to_string(one.pod));
      Pod pod = take(it);
      pod.ended = true;
      pod.end = one.end;
      if (one.pid != 0) {
        pod.pid = one.pid;
        pod.restarts = one.restarts;
        if (pod.started_ms == 0) pod.started_ms = one.started_ms;
      }
      count(pod, one.counted);
      if (one.fails_index) {
        s.failed_indexes.insert(pod.key.index);
        s.attempts.erase(pod.key.index);
      }
      if (s.completed.contains(pod.key.index) || s.failed_indexes.contains(pod.key.index))
        count_held(pod.key.index, Counted::failed);
      uint32_t index = pod.key.index;
      retire(std::move(pod));
      retake(index);
    }
    s.backoff_failures = r.backoff_failures;
    s.backoff_last_ms = r.backoff_last_ms;
  }

  void operator()(const PodsStopping& r) {
    for (const auto& one : r.pods) {
      auto it = s.open.find(one.pod);
      MUSTER_CHECK(it != s.open.end(), to_string(one.pod));
      tell(JobEvent::Kind::successful_delete, one.pod);
      stop(it, one.counted);
      retake(one.pod.index);
    }
  }

  void operator()(const FinishDecided& r) {
    s.conditions.push_back(
        {r.success ? "SuccessCriteriaMet" : "FailureTarget", true, r.at_ms, r.reason, r.message});
    stop_all(r.success ? Counted::released : Counted::failed, true);
  }

  void operator()(const JobFinished& r) {
    const Condition* interim = job.condition("SuccessCriteriaMet");
    bool success = interim != nullptr;
    if (!success) interim = job.condition("FailureTarget");
    MUSTER_CHECK(interim != nullptr);
    s.conditions.push_back(
        {terminal_type(interim->type), true, r.at_ms, interim->reason, interim->message});
    if (success) s.completion_ms = r.at_ms;
    tell(success ? JobEvent::Kind::completed : JobEvent::Kind::failed);
  }

  void operator()(const JobDeleted& r) {
    if (s.deleted_ms == 0) s.deleted_ms = r.at_ms;
    s.background_deleted = s.background_deleted || r.background;
    stop_all(Counted::released, false);
  }

  void operator()(const JobForgotten&) { s.forgotten = true; }
};

Job::Job(JobId id, JobObjectPtr object) : Job(id, std::move(object), JobState{}) {}

Job::Job(JobId id, JobObjectPtr object, JobState state)
    : id_(id),
      object_(std::move(object)),
      indexed_(object_->spec.indexed()),
      per_index_(object_->spec.backoff_limit_per_index.has_value()),
      state_(std::move(state)) {
  for (size_t i = 0; i < state_.finished.size(); ++i) finished_at_[state_.finished[i].key] = i;
  rebuild();
}

void Job::rebuild() {
  active_ = ready_ = 0;
  pending_.clear();
  taken_ = IndexSet{};
  if (indexed_) {
    for (const auto& [first, last] : state_.completed.intervals()) taken_.insert_range(first, last);
    for (const auto& [first, last] : state_.failed_indexes.intervals())
      taken_.insert_range(first, last);
  }
  for (const auto& [key, pod] : state_.open) {
    if (pod.active()) ++active_;
    if (pod.ready()) ++ready_;
    if (!pod.bound()) pending_.insert(key);
    if (indexed_ && (pod.active() || spec().replace_only_failed())) taken_.insert(key.index);
  }
}

void Job::apply(const Record& record, Touched* touched) {
  Applier applier{*this, state_, touched, at(record)};
  state_.last_record_ms = std::max(state_.last_record_ms, applier.at);
  std::visit(applier, record);
}

std::vector<Effect> Job::standing(Millis, NodeId only) const {
  LaunchPods launch;
  KillPods kill;
  for (const auto& [key, pod] : state_.open) {
    if (!pod.bound() || (only != kNoNode && pod.node != only)) continue;
    if (pod.stopping_ms != 0)
      kill.pods.push_back({key, pod.node});
    else if (pod.started_ms == 0)
      launch.pods.push_back({key, pod.node});
  }
  std::vector<Effect> effects;
  if (!launch.pods.empty()) effects.push_back(std::move(launch));
  if (!kill.pods.empty()) effects.push_back(std::move(kill));
  if (only == kNoNode) effects.push_back(AskSlots{static_cast<uint32_t>(pending_.size())});
  return effects;
}

const Condition* Job::condition(const std::string& type) const {
  for (const Condition& c : state_.conditions)
    if (c.type == type && c.status) return &c;
  return nullptr;
}

bool Job::finished() const {
  return condition("Complete") || condition("Failed");
}

bool Job::decided() const {
  return condition("SuccessCriteriaMet") || condition("FailureTarget");
}

const Pod* Job::pod(PodKey key) const {
  if (auto it = state_.open.find(key); it != state_.open.end()) return &it->second;
  if (auto it = state_.held.find(key.index); it != state_.held.end() && it->second.key == key)
    return &it->second;
  if (auto it = finished_at_.find(key); it != finished_at_.end())
    return &state_.finished[it->second - finished_dropped_];
  return nullptr;
}

uint32_t Job::next_attempt(uint32_t index) const {
  auto it = state_.attempts.find(index);
  return it == state_.attempts.end() ? state_.attempt_floor : it->second;
}

}  // namespace muster::core
