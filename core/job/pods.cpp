// Which pods there should be (job-semantics 4): creation, lowest index first. Removal of a surplus
// comes with scaling.
#include "core/job/sync.hpp"

namespace muster::core {

namespace {

constexpr uint32_t kCreateMax = 512;  // pods created in one sync; the rest at once in the next

uint32_t target(const Job& job) {
  const JobState& s = job.state();
  if (s.completions < 0)
    return job.succeeded() == 0 ? static_cast<uint32_t>(s.parallelism) : job.active();
  int64_t left = static_cast<int64_t>(s.completions) - static_cast<int64_t>(job.succeeded());
  return static_cast<uint32_t>(std::clamp<int64_t>(left, 0, s.parallelism));
}

// The pod that an index gets next: after a held-back failure it inherits the failure count (4.6).
PodsCreated::Run next_pod(const Job& job, uint32_t index) {
  PodsCreated::Run run{index, 1, job.next_attempt(index), 0, 0, Counted::not_yet};
  if (auto it = job.state().held.find(index); it != job.state().held.end()) {
    run.failures = it->second.failures + 1;
    run.ignored = it->second.ignored;
    run.held_counted = Counted::failed;
  }
  return run;
}

bool extends(const PodsCreated::Run& run, const PodsCreated::Run& next) {
  return next.first == run.first + run.count && next.attempt == run.attempt &&
         run.held_counted == Counted::not_yet && next.held_counted == Counted::not_yet &&
         next.failures == run.failures && next.ignored == run.ignored;
}

}  // namespace

void manage_pods(Sync& sync) {
  const Job& job = sync.job;
  const JobState& s = job.state();
  if (s.deleted_ms != 0) return;
  uint32_t held_back = job.spec().replace_only_failed() ? job.terminating() : 0;
  uint32_t want = target(job), have = job.active() + held_back;
  if (want <= have) return;
  uint32_t number = want - have;
  if (!job.per_index()) {
    Millis due = s.backoff_last_ms + backoff_delay(sync.knobs, s.backoff_failures);
    if (s.backoff_failures > 0 && due > sync.now) return sync.wake(due);
  }
  bool cut = number > kCreateMax;
  number = std::min(number, kCreateMax);
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
    // An index in backoff still occupies one of the candidates' places (4.5).
    uint64_t candidate = job.taken().lowest_missing(0);
    for (uint32_t i = 0; i < number && static_cast<int64_t>(candidate) < s.completions; ++i) {
      auto index = static_cast<uint32_t>(candidate);
      auto held = s.held.find(index);
      Millis due =
          held == s.held.end()
              ? 0
              : held->second.end.ended_ms +
                    backoff_delay(
                        sync.knobs,
                        static_cast<uint32_t>(held->second.failures + held->second.ignored) + 1);
      if (due > sync.now)
        sync.wake(due);
      else
        add(next_pod(job, index));
      candidate = job.taken().lowest_missing(candidate + 1);
    }
  }
  if (created.runs.empty()) return;
  if (cut) sync.wake(sync.now);
  sync.emit(std::move(created));
}

}  // namespace muster::core
