#include "core/cluster/slots/expected_start.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace muster::core {

namespace {

// The most plans, and looks at nodes that these may cost.
constexpr uint64_t kTurnsMax = 64, kLooksMax = 20'000;

double level(const WaitingJob& job) {
  return job.user ? job.user->held / job.user->weight : 0;
}

// The smallest goes first.
auto rank(const WaitingJob& job) {
  const QueueShare* queue = job.user ? job.user->queue : nullptr;
  return std::tuple(-int64_t{demand_of(job).priority}, queue ? queue->held / queue->weight : 0,
                    level(job), job.share);
}

// How many of its pods `first` has before `then` gets its next one.
uint32_t pods_before(const WaitingJob& first, const WaitingJob& then) {
  if (demand_of(first).gang || demand_of(first).priority > demand_of(then).priority)
    return first.wanted;
  const bool same = first.user == then.user;
  const double gap = same ? then.share - first.share
                          : (level(then) - level(first)) * (first.user ? first.user->weight : 1);
  const double pods = std::ceil(gap / std::max(first.cost, 1e-9));
  return static_cast<uint32_t>(std::clamp<double>(pods, 1, first.wanted));
}

void occupy(std::vector<Outlook>& nodes, const WaitingJob& job, const Plan& plan) {
  for (Outlook& one : nodes) {
    const auto place = plan.places.find(one.node.node);
    if (place == plan.places.end()) continue;
    const uint32_t now = std::min(one.node.free, place->second);
    one.node.free -= now;
    one.node.over += place->second - now;
    one.node.room.add(demand_of(job).amounts, -int64_t{place->second});
    if (job.runs_ms)
      one.endings.push_back({plan.due.start_ms + *job.runs_ms, place->second, &demand_of(job)});
  }
}

}  // namespace

std::vector<Expectation> expect(const std::vector<WaitingJob>& waiting, std::vector<Outlook> nodes,
                                Millis now) {
  std::vector<const WaitingJob*> order;
  for (const WaitingJob& job : waiting) order.push_back(&job);
  std::stable_sort(order.begin(), order.end(),
                   [](const WaitingJob* a, const WaitingJob* b) { return rank(*a) < rank(*b); });
  std::vector<Expectation> expected;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool tied = i > 0 && rank(*order[i - 1]) == rank(*order[i]);
    expected.push_back({order[i]->job, tied ? expected[i - 1].ahead : static_cast<uint32_t>(i)});
  }
  std::vector<uint32_t> taken(order.size(), 0);
  auto take = [&](size_t i, uint32_t pods) {
    WaitingJob some = *order[i];
    for (; taken[i] < pods; taken[i] += demand_of(some).gang ? some.wanted : 1) {
      const std::optional<Plan> next = plan(nodes, some, now);
      if (!next) return false;
      occupy(nodes, some, *next);
    }
    return true;
  };
  uint64_t turns = 0;  // plans, in all
  const uint64_t turns_max = std::min<uint64_t>(kTurnsMax, kLooksMax / (nodes.size() + 1));
  for (size_t i = 0; i < std::min(order.size(), kExpectedMax); ++i) {
    if (order[i]->reservation) continue;  // what it keeps is not in `nodes`
    for (size_t j = 0; j < i; ++j) {
      if (order[j]->reservation) continue;
      const uint32_t pods = pods_before(*order[j], *order[i]);
      turns += demand_of(*order[j]).gang ? 1 : pods - std::min(pods, taken[j]);
      if (turns > turns_max || !take(j, pods)) return expected;
    }
    if (++turns > turns_max) return expected;
    const std::optional<Plan> own = plan(nodes, *order[i], now);
    if (!own) return expected;
    // Of equals, any may be first.
    const bool tied = (i > 0 && rank(*order[i - 1]) == rank(*order[i])) ||
                      (i + 1 < order.size() && rank(*order[i + 1]) == rank(*order[i]));
    if (!tied && own->due.start_ms >= now + kExpectedMinMs)
      expected[i].start_ms = own->due.start_ms;
  }
  return expected;
}

}  // namespace muster::core
