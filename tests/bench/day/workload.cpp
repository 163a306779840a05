#include "tests/bench/day/workload.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace muster::day {

namespace {

constexpr Millis kSecond = 1'000, kMinute = 60'000, kHour = 3'600'000;
// What arrives in each hour, from 08:00.
constexpr double kHours[] = {7, 7, 7, 7, 7,   7,   7,   7,   7,   7,   4,   4,
                             4, 4, 4, 4, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5};
constexpr double kWithLimit = 0.6;  // of all sessions

double part_of_work(Kind kind) {
  switch (kind) {
    case Kind::array:
      return 0.25;
    case Kind::single:
    case Kind::whole_node:
    case Kind::large_gang:
      return 0.2;
    case Kind::small_gang:
      return 0.15;
  }
  return 0;
}

// The standard library's distributions differ between implementations; these do not.
class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed) {}
  double part() { return static_cast<double>(random_() >> 11) * 0x1p-53; }  // from 0 to below 1
  double log_uniform(double low, double high) { return low * std::pow(high / low, part()); }
  uint32_t log_whole(uint32_t low, uint32_t high) {
    return std::min(high, static_cast<uint32_t>(log_uniform(low, high + 1)));
  }
  double log_normal(double median, double sigma) {
    double normal = -6;
    for (int i = 0; i < 12; ++i) normal += part();
    return median * std::exp(sigma * normal);
  }
  // Each with the probability of its weight.
  size_t pick(const std::vector<double>& weights) {
    double at = part() * std::accumulate(weights.begin(), weights.end(), 0.0);
    for (size_t i = 0; i + 1 < weights.size(); ++i)
      if ((at -= weights[i]) < 0) return i;
    return weights.size() - 1;
  }

 private:
  std::mt19937_64 random_;
};

class Maker {
 public:
  Maker(const Site& site, const Profile& profile)
      : site_(site), profile_(profile), chance_(profile.seed) {
    for (uint32_t user = 0; user < profile.users; ++user) ranks_.push_back(1.0 / (1 + user));
  }

  void session(Kind kind, double& work_left) {
    const auto user = static_cast<uint32_t>(chance_.pick(ranks_));
    Millis at = begin();
    const bool limited = chance_.part() < kWithLimit;
    const double too_long = chance_.log_uniform(1.5, 10);
    const double median = typical(kind);
    for (uint32_t left = jobs_of(kind); left > 0 && work_left > 0; --left) {
      Job job{at, user, kind, kind == Kind::array || kind == Kind::single ? 1 : site_.slots,
              {}, {}};
      const double each = chance_.log_normal(median, 0.3);
      const double one = ticks(each);
      for (uint32_t pods = pods_of(kind); pods > 0; --pods)
        job.runs_ms.push_back(job.gang() ? static_cast<Millis>(one)
                                         : ticks(chance_.log_normal(each, 0.3)));
      const Millis longest = *std::max_element(job.runs_ms.begin(), job.runs_ms.end());
      if (limited) job.limit_ms = static_cast<Millis>(too_long * static_cast<double>(longest));
      work_left -= job.work();
      jobs.push_back(std::move(job));
      at += ticks(chance_.log_uniform(2 * kSecond, 2 * kMinute));
    }
  }

  std::vector<Job> jobs;

 private:
  Millis ticks(double ms) const {
    const Millis count = std::llround(ms / profile_.pace / static_cast<double>(profile_.tick_ms));
    return std::max<Millis>(1, count) * profile_.tick_ms;
  }

  Millis begin() {
    const size_t hour = chance_.pick({std::begin(kHours), std::end(kHours)});
    return ticks((static_cast<double>(hour) + chance_.part()) * kHour);
  }

  // How long a pod runs, before pace.
  double typical(Kind kind) {
    switch (kind) {
      case Kind::array:
        return chance_.log_uniform(5 * kSecond, 20 * kMinute);
      case Kind::single:
        return std::clamp<double>(chance_.log_normal(90 * kMinute, 0.8), 10 * kMinute, 10 * kHour);
      case Kind::whole_node:
        return std::clamp<double>(chance_.log_normal(45 * kMinute, 0.8), 5 * kMinute, 8 * kHour);
      case Kind::small_gang:
      case Kind::large_gang:
        return std::clamp<double>(chance_.log_normal(30 * kMinute, 0.8), 5 * kMinute, 6 * kHour);
    }
    return 0;
  }

  uint32_t jobs_of(Kind kind) {
    switch (kind) {
      case Kind::array:
        return chance_.log_whole(1, 4);
      case Kind::single:
        return chance_.log_whole(1, 50);
      case Kind::whole_node:
        return chance_.log_whole(1, 8);
      case Kind::small_gang:
      case Kind::large_gang:
        return chance_.log_whole(1, 3);
    }
    return 0;
  }

  uint32_t pods_of(Kind kind) {
    const uint32_t small = std::max(2u, profile_.largest_gang / 4);
    switch (kind) {
      case Kind::array:
        return chance_.log_whole(20, static_cast<uint32_t>(std::max<uint64_t>(site_.all(), 40)));
      case Kind::single:
        return 1;
      case Kind::whole_node:
        return chance_.part() < 0.6 ? 1 : chance_.log_whole(2, 8);
      case Kind::small_gang:
        return chance_.log_whole(2, small);
      case Kind::large_gang:
        return chance_.log_whole(small + 1, profile_.largest_gang);
    }
    return 0;
  }

  const Site site_;
  const Profile profile_;
  Chance chance_;
  std::vector<double> ranks_;  // how much each user submits
};

}  // namespace

double Job::work() const {
  return std::accumulate(runs_ms.begin(), runs_ms.end(), 0.0) * slots;
}

std::vector<Job> workload(const Site& site, const Profile& profile) {
  Maker maker(site, profile);
  const double all =
      profile.load * static_cast<double>(site.all()) * static_cast<double>(profile.span_ms());
  for (const Kind kind : kKinds)
    for (double left = all * part_of_work(kind); left > 0;) maker.session(kind, left);
  std::erase_if(maker.jobs, [&](const Job& job) { return job.arrives_ms >= profile.span_ms(); });
  std::stable_sort(maker.jobs.begin(), maker.jobs.end(),
                   [](const Job& a, const Job& b) { return a.arrives_ms < b.arrives_ms; });
  return std::move(maker.jobs);
}

}  // namespace muster::day
