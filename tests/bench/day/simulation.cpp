#include "tests/bench/day/simulation.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

namespace muster::day {

namespace {

// Those who waited throughout such an interval are compared. At pace 1.
constexpr Millis kIntervalMs = 600'000;

class Simulation {
 public:
  Simulation(const Site& site, const Profile& profile, const std::vector<Job>& jobs,
             Scheduler& scheduler)
      : site_(site),
        profile_(profile),
        jobs_(jobs),
        scheduler_(scheduler),
        interval_ms_(static_cast<Millis>(kIntervalMs / profile.pace)),
        used_(site.nodes + 1),
        started_(jobs.size()),
        open_(jobs.size()),
        users_(profile.users) {
    outcome_.fates.resize(jobs.size());
    for (size_t i = 0; i < jobs.size(); ++i) open_[i] = jobs[i].runs_ms.size();
  }

  Outcome run() {
    std::optional<Millis> again;
    for (Millis interval = interval_ms_;;) {
      std::optional<Millis> next = again;
      auto sooner = [&next](Millis at) { next = std::min(at, next.value_or(at)); };
      if (arrived_ < jobs_.size()) sooner(jobs_[arrived_].arrives_ms);
      if (!running_.empty()) sooner(running_.top().at_ms);
      if (!next) break;
      if (interval < *next) {
        pass(interval);
        close_interval();
        interval += interval_ms_;
        continue;
      }
      pass(*next);
      end_pods();
      for (; arrived_ < jobs_.size() && jobs_[arrived_].arrives_ms <= now_; ++arrived_) {
        users_[jobs_[arrived_].user].waiting += jobs_[arrived_].runs_ms.size();
        waiting_ += jobs_[arrived_].runs_ms.size();
        scheduler_.arrived(arrived_);
      }
      again = decide();
    }
    MUSTER_CHECK(waiting_ == 0, waiting_);
    const double day = static_cast<double>(profile_.span_ms() * static_cast<Millis>(site_.all()));
    outcome_.utilisation = busy_ / day;
    outcome_.busy_waiting = contended_ > 0 ? busy_contended_ / contended_ : 1;
    outcome_.fairness = compared_ > 0 ? fairness_ / compared_ : 1;
    outcome_.done_ms = now_;
    return std::move(outcome_);
  }

 private:
  struct End {
    Millis at_ms;
    size_t job;
    NodeId node;
    Millis ran_ms;
    bool operator>(const End& other) const {
      return std::tie(at_ms, job, node) > std::tie(other.at_ms, other.job, other.node);
    }
  };
  struct User {
    uint64_t waiting = 0;
    uint64_t holds = 0;
    double got = 0;       // in this interval
    bool waited = false;  // throughout this interval
  };

  void pass(Millis to) {
    const auto span = static_cast<double>(to - now_);
    const double counted = static_cast<double>(std::min(to, profile_.span_ms()) - now_);
    if (counted > 0) {
      busy_ += static_cast<double>(busy_slots_) * counted;
      if (waiting_ > 0) {
        busy_contended_ += static_cast<double>(busy_slots_) * counted;
        contended_ += static_cast<double>(site_.all()) * counted;
      }
    }
    for (User& user : users_) {
      user.got += static_cast<double>(user.holds) * span;
      if (span > 0) user.waited &= user.waiting > 0;
    }
    now_ = to;
  }

  void close_interval() {
    double sum = 0, squares = 0;
    int count = 0;
    for (User& user : users_) {
      if (user.waited) {
        ++count;
        sum += user.got;
        squares += user.got * user.got;
      }
      user.got = 0;
      user.waited = user.waiting > 0;
    }
    if (count < 2) return;
    ++compared_;
    fairness_ += squares > 0 ? sum * sum / (count * squares) : 1;
  }

  void end_pods() {
    std::map<std::pair<size_t, NodeId>, std::pair<uint32_t, Millis>> ended;
    while (!running_.empty() && running_.top().at_ms <= now_) {
      const End& end = running_.top();
      auto& [count, ran_ms] = ended[{end.job, end.node}];
      ++count;
      ran_ms += end.ran_ms;
      running_.pop();
    }
    for (const auto& [where, what] : ended) {
      const auto& [job, node] = where;
      const uint32_t slots = what.first * jobs_[job].slots;
      used_[node] -= slots;
      busy_slots_ -= slots;
      users_[jobs_[job].user].holds -= slots;
      open_[job] -= what.first;
      if (open_[job] == 0) outcome_.fates[job].done_ms = now_;
      scheduler_.ended({job, node, what.first}, what.second, now_);
    }
  }

  std::optional<Millis> decide() {
    const Scheduler::Decision decision = scheduler_.decide(now_);
    std::map<size_t, size_t> gangs;
    for (const Pods& start : decision.starts) {
      const Job& job = jobs_[start.job];
      const uint32_t slots = start.count * job.slots;
      MUSTER_CHECK(used_[start.node] + slots <= site_.slots, start.job, start.node);
      MUSTER_CHECK(started_[start.job] + start.count <= job.runs_ms.size(), start.job);
      used_[start.node] += slots;
      busy_slots_ += slots;
      users_[job.user].holds += slots;
      users_[job.user].waiting -= start.count;
      waiting_ -= start.count;
      Fate& fate = outcome_.fates[start.job];
      if (started_[start.job] == 0) fate.first_ms = now_;
      fate.waited_ms += static_cast<double>((now_ - job.arrives_ms) * start.count) /
                        static_cast<double>(job.runs_ms.size());
      for (uint32_t i = 0; i < start.count; ++i) {
        const Millis runs_ms = job.runs_ms[started_[start.job]++];
        running_.push({now_ + runs_ms, start.job, start.node, runs_ms});
      }
      if (job.gang()) gangs[start.job] += start.count;
    }
    for (const auto& [job, pods] : gangs)
      MUSTER_CHECK(pods == jobs_[job].runs_ms.size(), job, pods);
    if (!decision.again_ms) return std::nullopt;
    const Millis ticks =
        std::max<Millis>(1, (*decision.again_ms + profile_.tick_ms - 1) / profile_.tick_ms);
    return now_ + ticks * profile_.tick_ms;
  }

  const Site site_;
  const Profile profile_;
  const std::vector<Job>& jobs_;
  Scheduler& scheduler_;
  const Millis interval_ms_;
  Millis now_ = 0;
  size_t arrived_ = 0;
  std::vector<uint32_t> used_;   // slots, by node
  std::vector<size_t> started_;  // pods, by job
  std::vector<size_t> open_;     // likewise, not ended
  std::vector<User> users_;
  std::priority_queue<End, std::vector<End>, std::greater<>> running_;
  uint64_t waiting_ = 0;  // pods
  uint64_t busy_slots_ = 0;
  double busy_ = 0, busy_contended_ = 0, contended_ = 0;  // slots × ms
  double fairness_ = 0;
  int compared_ = 0;  // intervals
  Outcome outcome_;
};

}  // namespace

Outcome run_day(const Site& site, const Profile& profile, const std::vector<Job>& jobs,
                Scheduler& scheduler) {
  return Simulation(site, profile, jobs, scheduler).run();
}

}  // namespace muster::day
