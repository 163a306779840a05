// The schedulers that muster is compared with: plain FIFO, and EASY backfill that knows how long
// each pod will run. Both put a pod on the fullest node that has room, so that whole nodes stay
// free.
#include "tests/bench/day/simulation.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>

namespace muster::day {

namespace {

class Queue : public Scheduler {
 public:
  Queue(const Site& site, const std::vector<Job>& jobs, bool backfills)
      : site_(site),
        jobs_(jobs),
        backfills_(backfills),
        free_(site.nodes + 1, site.slots),
        started_(jobs.size()) {
    free_[0] = 0;
  }

  void arrived(size_t job) override { queue_.push_back(job); }

  void ended(const Pods& pods, Millis, Millis now) override {
    free_[pods.node] += pods.count * jobs_[pods.job].slots;
    running_.erase(running_.begin(), running_.upper_bound(now));
  }

  Decision decide(Millis now) override {
    now_ = now;
    decision_ = {};
    for (; !queue_.empty(); queue_.pop_front())
      if (!start(queue_.front(), nullptr)) break;
    if (backfills_ && queue_.size() > 1) backfill();
    return std::move(decision_);
  }

 private:
  struct Held {
    NodeId node;
    uint32_t slots;
  };
  // When the first job can start, and what is left on each node for pods that run longer.
  struct Shadow {
    Millis at_ms = 0;
    std::vector<uint32_t> spare;
    // Pods of this many slots found no place: shorter ones, and longer ones.
    uint32_t none_short = std::numeric_limits<uint32_t>::max(), none_long = none_short;
  };

  // The fullest node that takes such a pod; 0: none.
  NodeId best_fit(uint32_t slots, bool longer, const Shadow* shadow) const {
    NodeId best = 0;
    for (NodeId node = 1; node <= site_.nodes; ++node) {
      if (free_[node] < slots || (longer && shadow->spare[node] < slots)) continue;
      if (best == 0 || free_[node] < free_[best]) best = node;
    }
    return best;
  }

  // Starts as many of the job's pods as it may; a gang as a whole or not at all. True: all of them.
  bool start(size_t id, Shadow* shadow) {
    const Job& job = jobs_[id];
    if (job.gang() && !fits_as_whole(job, shadow)) return false;
    while (started_[id] < job.runs_ms.size()) {
      const Millis ends = now_ + job.runs_ms[started_[id]];
      const bool longer = shadow && ends > shadow->at_ms;
      if (shadow && job.slots >= (longer ? shadow->none_long : shadow->none_short)) return false;
      const NodeId node = best_fit(job.slots, longer, shadow);
      if (node == 0) {
        if (shadow) (longer ? shadow->none_long : shadow->none_short) = job.slots;
        return false;
      }
      ++started_[id];
      free_[node] -= job.slots;
      if (longer) shadow->spare[node] -= job.slots;
      running_.emplace(ends, Held{node, job.slots});
      decision_.starts.push_back({id, node, 1});
    }
    return true;
  }

  // All pods of a gang run equally long.
  bool fits_as_whole(const Job& job, const Shadow* shadow) const {
    const bool longer = shadow && now_ + job.runs_ms.front() > shadow->at_ms;
    size_t room = 0;
    for (NodeId node = 1; node <= site_.nodes; ++node)
      room += (longer ? std::min(free_[node], shadow->spare[node]) : free_[node]) / job.slots;
    return room >= job.runs_ms.size();
  }

  Shadow shadow_of(const Job& job) const {
    const size_t needed = job.gang() ? job.runs_ms.size() : 1;
    Shadow shadow{now_, free_};
    size_t room = 0;
    for (const uint32_t free : free_) room += free / job.slots;
    for (auto it = running_.begin(); it != running_.end() && room < needed; ++it) {
      uint32_t& spare = shadow.spare[it->second.node];
      room -= spare / job.slots;
      spare += it->second.slots;
      room += spare / job.slots;
      shadow.at_ms = it->first;
    }
    size_t left = needed;
    for (uint32_t& spare : shadow.spare)
      for (; left > 0 && spare >= job.slots; --left) spare -= job.slots;
    return shadow;
  }

  void backfill() {
    Shadow shadow = shadow_of(jobs_[queue_.front()]);
    for (auto it = queue_.begin() + 1; it != queue_.end(); ++it)
      if (start(*it, &shadow)) *it = kStarted;
    std::erase(queue_, kStarted);
  }

  static constexpr size_t kStarted = std::numeric_limits<size_t>::max();
  const Site site_;
  const std::vector<Job>& jobs_;
  const bool backfills_;
  std::vector<uint32_t> free_;   // slots, by node
  std::vector<size_t> started_;  // pods, by job
  std::deque<size_t> queue_;
  std::multimap<Millis, Held> running_;  // by end
  Millis now_ = 0;
  Decision decision_;
};

}  // namespace

std::unique_ptr<Scheduler> fifo(const Site& site, const std::vector<Job>& jobs) {
  return std::make_unique<Queue>(site, jobs, false);
}

std::unique_ptr<Scheduler> easy(const Site& site, const std::vector<Job>& jobs) {
  return std::make_unique<Queue>(site, jobs, true);
}

}  // namespace muster::day
