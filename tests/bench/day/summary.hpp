// What a day was like: waiting times by size and by user, from the fates of the jobs.
// Values are those of single jobs, so that several days can be taken together.
#pragma once

#include "tests/bench/day/simulation.hpp"

#include <set>
#include <vector>

namespace muster::day {

struct Spread {
  double median = 0;
  double p95 = 0;
  double most = 0;
  double mean = 0;
};
Spread spread_of(std::vector<double> values);

// The fewest users who together ask for half of all the work, and the half of the users who ask
// for least.
std::set<uint32_t> heavy_users(const std::vector<Job>& jobs, uint32_t users);
std::set<uint32_t> light_users(const std::vector<Job>& jobs, uint32_t users);

// How long the jobs of this kind, or of these users, waited: the average of each job's pods.
std::vector<double> waits(const std::vector<Job>& jobs, const Outcome& outcome, Kind kind);
std::vector<double> waits(const std::vector<Job>& jobs, const Outcome& outcome,
                          const std::set<uint32_t>& users);

// From a job's arrival until its last pod has ended, as a multiple of its longest pod, or of
// `least_ms` if that is longer.
std::vector<double> slowdowns(const std::vector<Job>& jobs, const Outcome& outcome,
                              Millis least_ms);
std::vector<double> slowdowns(const std::vector<Job>& jobs, const Outcome& outcome, Millis least_ms,
                              const std::set<uint32_t>& users);

}  // namespace muster::day
