#include "core/cluster/slots/fair_share.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace muster::core {

namespace {

// Halvings of the interval that contains the level: enough for whole slots of the largest cluster.
constexpr int kHalvings = 40;
// So few are sorted in less time than the halvings take.
constexpr size_t kFew = 64;
// What is left of a share through rounding.
constexpr double kTiny = 1e-6;
// With fewer users, all who get something are looked at.
constexpr size_t kCrowd = 64;

double share_at(const Sharer& one, double level) {
  return std::clamp(level * one.weight - one.held, 0.0, one.wanted);
}

// Divides amounts. One for a whole round: most divisions are among few, and would take less time
// than to make room for their results.
class Leveller {
 public:
  // As level() does. The result is valid until the next call.
  const std::vector<double>& divide(const std::vector<Sharer>& sharers, double amount) {
    shares_.clear();
    double wanted = 0;
    for (const Sharer& one : sharers) {
      shares_.push_back(one.wanted);
      wanted += one.wanted;
    }
    if (wanted <= amount) return shares_;
    const std::optional<double> few =
        sharers.size() <= kFew ? level_of_few(sharers, amount) : std::nullopt;
    const double at = few ? *few : level_of(sharers, amount);
    for (size_t i = 0; i < sharers.size(); ++i) shares_[i] = share_at(sharers[i], at);
    return shares_;
  }

 private:
  // Of a sharer that gets more from the level `first` on and up to `last`.
  struct Open {
    double first, last;
    const Sharer* sharer;
  };

  // Where the level is at which they get `amount` together. Sharers that get nothing or all that
  // they want wherever it still can be are not looked at again.
  double level_of(const std::vector<Sharer>& sharers, double amount) {
    open_.clear();
    double low = std::numeric_limits<double>::max(), high = 0;
    for (const Sharer& one : sharers) {
      open_.push_back({one.held / one.weight, (one.held + one.wanted) / one.weight, &one});
      low = std::min(low, open_.back().first);
      high = std::max(high, (one.held + std::min(one.wanted, amount)) / one.weight);
    }
    double given = 0;   // at any level from low to high, by those who are not open
    double weight = 0;  // and this much more for each unit of the level
    for (int i = 0; i < kHalvings && !open_.empty(); ++i) {
      const double middle = (low + high) / 2;
      double sum = given + weight * middle;
      for (const Open& one : open_) sum += share_at(*one.sharer, middle);
      (sum < amount ? low : high) = middle;
      std::erase_if(open_, [&](const Open& one) {
        if ((one.first > low && one.first < high) || (one.last > low && one.last < high))
          return false;
        if (one.first >= high) return true;
        if (one.last <= low) {
          given += one.sharer->wanted;
        } else {
          given -= one.sharer->held;
          weight += one.sharer->weight;
        }
        return true;
      });
    }
    return open_.empty() && weight > 0 ? std::clamp((amount - given) / weight, low, high) : high;
  }

  // Likewise for a few of whom nobody gets all that is wanted; nullopt: somebody does.
  std::optional<double> level_of_few(const std::vector<Sharer>& sharers, double amount) {
    order_.clear();
    for (const Sharer& one : sharers) order_.emplace_back(one.held / one.weight, &one);
    std::sort(order_.begin(), order_.end());
    double held = 0, weight = 0, at = 0;
    size_t served = 0;
    do {
      const Sharer& one = *order_[served].second;
      held += one.held;
      weight += one.weight;
      at = (amount + held) / weight;
      ++served;
    } while (served < order_.size() && at > order_[served].first);
    for (size_t i = 0; i < served; ++i) {
      const Sharer& one = *order_[i].second;
      if (at * one.weight > one.held + one.wanted) return std::nullopt;
    }
    return at;
  }

  std::vector<double> shares_;
  std::vector<Open> open_;
  std::vector<std::pair<double, const Sharer*>> order_;  // from which level it gets something
};

}  // namespace

std::vector<double> level(const std::vector<Sharer>& sharers, double amount) {
  return Leveller().divide(sharers, amount);
}

namespace {

// What a user's jobs may still take.
struct Claim {
  const Pack* packs[2] = {};
  UserShare* user = nullptr;
  double wanted = 0;
  double room = 0;  // left by the limit of the user's queue; infinite without one
};

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// How much jobs like this one may still take together under a limit.
double room_of(const Allowance* limit, const WaitingJob& job) {
  if (!limit || !limit->limited) return kInfinite;
  constexpr uint64_t kMany = uint64_t{1} << 32;
  return static_cast<double>(
             limit->left(demand_of(job).amounts, job.pods == 0, kMany, own_places(*limit, job))) *
         job.cost;
}

void add_up(Claim& claim, const Pass& pass, bool fresh) {
  double own = 0, of_queue = 0;
  bool limited = false;
  for (const Pack* pack : claim.packs) {
    if (!pack) continue;
    claim.user = pack->user;
    if (fresh && !pack->limited) {
      claim.wanted += pack->wanted;
      own = of_queue = kInfinite;
      continue;
    }
    limited = true;
    if (!pass.serves(*pack)) continue;
    if (is_full(*pack->jobs.front())) continue;
    for (size_t i = 0; i < pack->jobs.size(); ++i) {
      if (!pass.serves(*pack, i)) continue;
      if (!pack->limited) {
        claim.wanted += pack->wishes[i].wanted * pack->wishes[i].cost;
        own = of_queue = kInfinite;
        continue;
      }
      const WaitingJob& job = *pack->jobs[i];
      claim.wanted += static_cast<double>(allowed(job, job.wanted)) * job.cost;
      own = std::max(own, std::min(room_of(job.limits[0], job), room_of(job.limits[2], job)));
      of_queue = std::max(of_queue, room_of(job.limits[1], job));
    }
  }
  if (limited) claim.wanted = std::min(claim.wanted, own);
  claim.room = of_queue;
}

std::vector<Claim> claims_of(const Line& line, const Pass& pass, bool fresh) {
  std::vector<Claim> claims;
  auto other = line.others.begin();
  const auto end = pass.only_plain ? other : line.others.end();
  auto add = [&](const Pack* plain, const Pack* others) {
    Claim claim{{plain, others}};
    add_up(claim, pass, fresh);
    if (claim.wanted > 0) claims.push_back(claim);
  };
  for (const auto& [key, pack] : line.plain) {
    for (; other != end && other->first < key; ++other) add(nullptr, &other->second);
    if (other != end && other->first == key)
      add(&pack, &(other++)->second);
    else
      add(&pack, nullptr);
  }
  for (; other != end; ++other) add(nullptr, &other->second);
  return claims;
}

QueueShare* queue_of(const Claim& claim) {
  return claim.user ? claim.user->queue : nullptr;
}

// Among queues, then among the users of each.
std::vector<double> divide(const std::vector<Claim>& claims, double free, Leveller& leveller) {
  std::vector<size_t> begins;  // of the claims of a queue
  std::vector<Sharer> queues;
  for (size_t i = 0; i < claims.size(); ++i) {
    const QueueShare* queue = queue_of(claims[i]);
    if (i == 0 || queue != queue_of(claims[i - 1])) {
      begins.push_back(i);
      queues.push_back(queue ? Sharer{queue->held, 0, queue->weight} : Sharer{});
    }
    queues.back().wanted += claims[i].wanted;
    const bool last = i + 1 == claims.size() || queue_of(claims[i + 1]) != queue;
    if (!last) continue;
    double room = 0;
    for (size_t c = begins.back(); c <= i; ++c) room = std::max(room, claims[c].room);
    queues.back().wanted = std::min(queues.back().wanted, room);
  }
  const std::vector<double> of_queues = leveller.divide(queues, free);
  std::vector<double> amounts;
  std::vector<Sharer> sharers;
  for (size_t q = 0; q < queues.size(); ++q) {
    const size_t end = q + 1 < queues.size() ? begins[q + 1] : claims.size();
    sharers.clear();
    for (size_t i = begins[q]; i < end; ++i) {
      const UserShare* user = claims[i].user;
      sharers.push_back({user ? user->held : 0, claims[i].wanted, user ? user->weight : 1});
    }
    for (const double one : leveller.divide(sharers, of_queues[q])) amounts.push_back(one);
  }
  return amounts;
}

struct Part {
  WaitingJob* job;
  uint32_t pods;
  uint32_t wanted;
  int64_t rest;  // of a pod, in kTiny
  uint64_t order;
  double cost;
  bool operator<(const Part& other) const {
    return rest != other.rest ? rest > other.rest : order < other.order;
  }
};

// What rounding left goes to those who lack most of a pod.
std::vector<Share> rounded(std::vector<Part> parts, double left) {
  double least = kInfinite;
  for (const Part& part : parts) least = std::min(least, part.cost);
  const auto lacking = parts.begin() + static_cast<std::ptrdiff_t>(std::min<double>(
                                           static_cast<double>(parts.size()),
                                           parts.empty() ? 0 : std::max(left, 0.0) / least + 1));
  if (lacking != parts.end()) std::nth_element(parts.begin(), lacking, parts.end());
  std::sort(parts.begin(), lacking);
  for (auto part = parts.begin(); part != lacking && left >= kTiny; ++part) {
    if (part->rest <= 0 || part->pods >= part->wanted) continue;
    ++part->pods;
    left -= part->cost;
  }
  const auto end = std::partition(lacking, parts.end(), [](const Part& p) { return p.pods > 0; });
  std::sort(lacking, end);
  std::vector<Share> shares;
  for (auto part = parts.begin(); part != end; ++part)
    if (part->pods > 0) shares.push_back({part->job, part->pods});
  return shares;
}

// Those of a pack that the pass serves, with what they may still have. `fresh`: all of them, unless
// it looks at how long their pods run.
void add_served(const Pack& pack, const Pass& pass, bool fresh, std::vector<Part>& jobs,
                std::vector<Sharer>& sharers) {
  if (!pass.serves(pack)) return;
  const bool all = fresh && !pass.ends_within && !pack.limited;
  for (size_t i = 0; i < pack.jobs.size(); ++i) {
    const Wish& wish = pack.wishes[i];
    WaitingJob* const job = pack.jobs[i];
    if (wish.wanted == 0 || (!all && !pass.serves(pack, i))) continue;
    const uint64_t most = pack.limited ? allowed(*job, wish.wanted) : wish.wanted;
    jobs.push_back({job, 0, wish.wanted, 0, wish.turn - pass.first_turn, wish.cost});
    sharers.push_back({wish.share, static_cast<double>(most) * wish.cost});
  }
}

double least_cost(const Claim& claim) {
  double least = kInfinite;
  for (const Pack* pack : claim.packs)
    if (pack) least = std::min(least, pack->least_cost);
  return least;
}

// The claims whose jobs are looked at, in order. In a crowd, most users get less than a pod; then
// these are the ones who lack least of one, more than enough of them to take everything.
std::vector<size_t> first_served(const std::vector<Claim>& claims,
                                 const std::vector<double>& amounts, uint64_t free,
                                 const Pass& pass) {
  std::vector<size_t> served;
  for (size_t i = 0; i < amounts.size(); ++i)
    if (amounts[i] >= kTiny) served.push_back(i);
  const uint64_t enough = std::max<uint64_t>(kCrowd, 2 * free);
  if (served.size() <= enough) return served;
  // Among equals, not always the same ones.
  const size_t first = pass.first_turn % amounts.size();
  const auto rank = [&](size_t i) {
    return std::pair(-std::llround(amounts[i] / least_cost(claims[i]) / kTiny),
                     (i + amounts.size() - first) % amounts.size());
  };
  std::nth_element(served.begin(), served.begin() + static_cast<std::ptrdiff_t>(enough),
                   served.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  served.resize(enough);
  std::sort(served.begin(), served.end());
  return served;
}

}  // namespace

std::vector<Share> shares_of(const Line& line, const Pass& pass, uint64_t free, bool fresh) {
  const std::vector<Claim> claims = claims_of(line, pass, fresh);
  Leveller leveller;
  const std::vector<double> amounts = divide(claims, static_cast<double>(free), leveller);
  double left = 0;
  for (const double amount : amounts)
    if (amount >= kTiny) left += amount;
  const std::vector<size_t> served = first_served(claims, amounts, free, pass);
  size_t most = 0;
  for (const size_t i : served)
    for (const Pack* pack : claims[i].packs)
      if (pack) most += pack->jobs.size();
  std::vector<Part> parts;
  parts.reserve(most);
  std::vector<Part> jobs;
  std::vector<Sharer> sharers;
  for (const size_t i : served) {
    jobs.clear();
    sharers.clear();
    for (const Pack* pack : claims[i].packs)
      if (pack) add_served(*pack, pass, fresh, jobs, sharers);
    const std::vector<double>& of_jobs = leveller.divide(sharers, amounts[i]);
    for (size_t k = 0; k < of_jobs.size(); ++k) {
      if (of_jobs[k] < kTiny) continue;
      Part& part = jobs[k];
      const double pods = of_jobs[k] / part.cost;
      part.pods = static_cast<uint32_t>(pods + kTiny);
      part.rest = std::llround((pods - part.pods) / kTiny);
      left -= part.pods * part.cost;
      parts.push_back(part);
    }
  }
  return rounded(std::move(parts), left);
}

}  // namespace muster::core
