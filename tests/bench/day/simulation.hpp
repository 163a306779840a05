// A day of a site in simulated time: jobs arrive and pods end as the workload says; a scheduler
// says which pods start where.
//
// Checked at every start: no node takes more than it has, and a gang starts as a whole. The day
// goes on after the last arrival until every pod has ended.
#pragma once

#include "tests/bench/day/workload.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace muster::core {
class Slots;
}

namespace muster::day {

// Pods of a job on a node. They start in the order of Job::runs_ms.
struct Pods {
  size_t job = 0;
  NodeId node = kNoNode;  // from 1
  uint32_t count = 0;
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  virtual void arrived(size_t job) = 0;
  // `ran_ms`: all these pods together.
  virtual void ended(const Pods& pods, Millis ran_ms, Millis now) = 0;
  struct Decision {
    std::vector<Pods> starts;
    std::optional<Millis> again_ms{};  // decide again after this time
  };
  virtual Decision decide(Millis now) = 0;
};

// What became of a job.
struct Fate {
  double waited_ms = 0;  // its pods, on average
  Millis first_ms = 0;   // when its first pod started
  Millis done_ms = 0;
};

struct Outcome {
  std::vector<Fate> fates;  // of the jobs
  double utilisation = 0;   // until the last arrival's day is over
  double busy_waiting = 0;  // likewise, only while pods of jobs wait
  double fairness = 0;      // Jain's index of what those got who waited throughout an interval
  Millis done_ms = 0;       // the last pod's end
};

Outcome run_day(const Site& site, const Profile& profile, const std::vector<Job>& jobs,
                Scheduler& scheduler);

// Strict order of arrival: while a pod of the first job waits, no other starts.
std::unique_ptr<Scheduler> fifo(const Site& site, const std::vector<Job>& jobs);
// The order of arrival, but pods start ahead of it if that does not delay the first job that waits
// (Lifka 1995). It knows how long each pod will run.
std::unique_ptr<Scheduler> easy(const Site& site, const std::vector<Job>& jobs);
// muster's own Slots. `after_round`: may plant a fault in it.
std::unique_ptr<Scheduler> muster_slots(const Site& site, const std::vector<Job>& jobs,
                                        std::function<void(core::Slots&)> after_round = {});

}  // namespace muster::day
