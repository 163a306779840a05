#include "tests/bench/day/summary.hpp"

#include <algorithm>
#include <numeric>

namespace muster::day {

namespace {

// How much work each user asks for, the least first.
std::vector<std::pair<double, uint32_t>> by_work(const std::vector<Job>& jobs, uint32_t users) {
  std::vector<std::pair<double, uint32_t>> work(users);
  for (uint32_t user = 0; user < users; ++user) work[user].second = user;
  for (const Job& job : jobs) work[job.user].first += job.work();
  std::sort(work.begin(), work.end());
  return work;
}

template <class Value, class Wanted>
std::vector<double> values_where(const std::vector<Job>& jobs, const Wanted& wanted,
                                 const Value& value) {
  std::vector<double> values;
  for (size_t i = 0; i < jobs.size(); ++i)
    if (wanted(jobs[i])) values.push_back(value(i));
  return values;
}

double slowdown(const Job& job, const Fate& fate, Millis least_ms) {
  const Millis longest = *std::max_element(job.runs_ms.begin(), job.runs_ms.end());
  return std::max(1.0, static_cast<double>(fate.done_ms - job.arrives_ms) /
                           static_cast<double>(std::max(longest, least_ms)));
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t last = values.size() - 1;
  return {values[last / 2], values[last * 95 / 100], values[last],
          std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size())};
}

std::set<uint32_t> heavy_users(const std::vector<Job>& jobs, uint32_t users) {
  const auto work = by_work(jobs, users);
  double half = 0;
  for (const auto& [one, user] : work) half += one / 2;
  std::set<uint32_t> heavy;
  for (auto it = work.rbegin(); it != work.rend() && half > 0; ++it) {
    heavy.insert(it->second);
    half -= it->first;
  }
  return heavy;
}

std::set<uint32_t> light_users(const std::vector<Job>& jobs, uint32_t users) {
  const auto work = by_work(jobs, users);
  std::set<uint32_t> light;
  for (size_t i = 0; i < work.size() / 2; ++i) light.insert(work[i].second);
  return light;
}

std::vector<double> waits(const std::vector<Job>& jobs, const Outcome& outcome, Kind kind) {
  return values_where(
      jobs, [kind](const Job& job) { return job.kind == kind; },
      [&](size_t i) { return outcome.fates[i].waited_ms; });
}

std::vector<double> waits(const std::vector<Job>& jobs, const Outcome& outcome,
                          const std::set<uint32_t>& users) {
  return values_where(
      jobs, [&users](const Job& job) { return users.contains(job.user); },
      [&](size_t i) { return outcome.fates[i].waited_ms; });
}

std::vector<double> slowdowns(const std::vector<Job>& jobs, const Outcome& outcome,
                              Millis least_ms) {
  return values_where(
      jobs, [](const Job&) { return true; },
      [&](size_t i) { return slowdown(jobs[i], outcome.fates[i], least_ms); });
}

std::vector<double> slowdowns(const std::vector<Job>& jobs, const Outcome& outcome, Millis least_ms,
                              const std::set<uint32_t>& users) {
  return values_where(
      jobs, [&users](const Job& job) { return users.contains(job.user); },
      [&](size_t i) { return slowdown(jobs[i], outcome.fates[i], least_ms); });
}

}  // namespace muster::day
