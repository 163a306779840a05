#include "core/cluster/slots/fair_share.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace muster::core {

namespace {

// Halvings of the interval that contains the level: enough for whole slots of the largest cluster.
constexpr int kHalvings = 40;
// What is left of a share through rounding.
constexpr double kTiny = 1e-6;

double share_at(const Sharer& one, double level) {
  return std::clamp(level * one.weight - one.held, 0.0, one.wanted);
}

// What one job is to have, in pods.
struct Part {
  double pods = 0;
  double user_level = 0;  // before this division
  double level = 0;
};

// Gives the fractions of pods as whole ones to those who have the largest.
void round_up(const std::vector<WaitingJob*>& jobs, const std::vector<Part>& parts, double left,
              Shares& shares) {
  for (size_t i : shares.order) {
    if (left < kTiny) return;
    if (shares.pods[i] >= jobs[i]->wanted || parts[i].pods - shares.pods[i] < kTiny) continue;
    ++shares.pods[i];
    left -= jobs[i]->cost;
  }
}

}  // namespace

std::vector<double> level(const std::vector<Sharer>& sharers, double amount) {
  std::vector<double> shares;
  double wanted = 0, low = 0, high = 0;
  for (const Sharer& one : sharers) {
    shares.push_back(one.wanted);
    wanted += one.wanted;
    high = std::max(high, (one.held + one.wanted) / one.weight);
  }
  if (wanted <= amount) return shares;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    double given = 0;
    for (const Sharer& one : sharers) given += share_at(one, middle);
    (given < amount ? low : high) = middle;
  }
  for (size_t i = 0; i < sharers.size(); ++i) shares[i] = share_at(sharers[i], high);
  return shares;
}

Shares shares_of(const std::vector<WaitingJob*>& jobs, uint64_t free) {
  struct User {
    Sharer sharer;
    std::vector<size_t> jobs;
  };
  std::vector<User> users;
  std::unordered_map<const UserShare*, size_t> known;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const auto [at, fresh] = known.try_emplace(jobs[i]->user, users.size());
    if (fresh) {
      users.emplace_back();
      if (const UserShare* user = jobs[i]->user)
        users.back().sharer = {user->held, 0, user->weight};
    }
    users[at->second].jobs.push_back(i);
    users[at->second].sharer.wanted += jobs[i]->wanted * jobs[i]->cost;
  }
  std::vector<Sharer> sharers;
  for (const User& user : users) sharers.push_back(user.sharer);
  const std::vector<double> of_users = level(sharers, static_cast<double>(free));

  Shares shares;
  shares.pods.resize(jobs.size());
  std::vector<Part> parts(jobs.size());
  double left = static_cast<double>(free);
  for (size_t u = 0; u < users.size(); ++u) {
    sharers.clear();
    for (size_t i : users[u].jobs)
      sharers.push_back({jobs[i]->share, jobs[i]->wanted * jobs[i]->cost});
    const std::vector<double> of_jobs = level(sharers, of_users[u]);
    for (size_t k = 0; k < of_jobs.size(); ++k) {
      const size_t i = users[u].jobs[k];
      parts[i] = {of_jobs[k] / jobs[i]->cost, users[u].sharer.held / users[u].sharer.weight,
                  jobs[i]->share};
      shares.pods[i] = static_cast<uint32_t>(parts[i].pods + kTiny);
      left -= shares.pods[i] * jobs[i]->cost;
    }
  }
  shares.order.resize(jobs.size());
  std::iota(shares.order.begin(), shares.order.end(), size_t{0});
  auto fraction = [&](size_t i) { return std::llround((parts[i].pods - shares.pods[i]) / kTiny); };
  std::stable_sort(shares.order.begin(), shares.order.end(), [&](size_t a, size_t b) {
    if (fraction(a) != fraction(b)) return fraction(a) > fraction(b);
    if (parts[a].user_level != parts[b].user_level)
      return parts[a].user_level < parts[b].user_level;
    return parts[a].level < parts[b].level;
  });
  round_up(jobs, parts, left, shares);
  return shares;
}

}  // namespace muster::core
