#include "core/cluster/slots/fair_share.hpp"

#include <algorithm>
#include <cmath>
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

}  // namespace

std::vector<double> level(const std::vector<Sharer>& sharers, double amount) {
  std::vector<double> shares;
  double wanted = 0, low = 0, high = 0;
  for (const Sharer& one : sharers) {
    shares.push_back(one.wanted);
    wanted += one.wanted;
    high = std::max(high, (one.held + std::min(one.wanted, amount)) / one.weight);
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

std::vector<Share> shares_of(const std::vector<WaitingJob*>& jobs, uint64_t free) {
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

  struct Part {
    Share share;
    int64_t rest = 0;  // of a pod, in kTiny
  };
  std::vector<Part> parts;
  double left = static_cast<double>(free);
  for (size_t u = 0; u < users.size(); ++u) {
    if (of_users[u] < kTiny) continue;
    sharers.clear();
    for (size_t i : users[u].jobs)
      sharers.push_back({jobs[i]->share, jobs[i]->wanted * jobs[i]->cost});
    const std::vector<double> of_jobs = level(sharers, of_users[u]);
    for (size_t k = 0; k < of_jobs.size(); ++k) {
      if (of_jobs[k] < kTiny) continue;
      const WaitingJob& job = *jobs[users[u].jobs[k]];
      const double pods = of_jobs[k] / job.cost;
      const auto whole = static_cast<uint32_t>(pods + kTiny);
      parts.push_back({{users[u].jobs[k], whole}, std::llround((pods - whole) / kTiny)});
      left -= whole * job.cost;
    }
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return a.rest != b.rest ? a.rest > b.rest : a.share.job < b.share.job;
  });
  // What rounding left goes to those who lack most of a pod.
  std::vector<Share> shares;
  for (Part& part : parts) {
    const WaitingJob& job = *jobs[part.share.job];
    if (left >= kTiny && part.rest > 0 && part.share.pods < job.wanted) {
      ++part.share.pods;
      left -= job.cost;
    }
    if (part.share.pods > 0) shares.push_back(part.share);
  }
  return shares;
}

}  // namespace muster::core
