#include "core/cluster/slots/preemption.hpp"

#include <algorithm>
#include <queue>
#include <tuple>

namespace muster::core {

namespace {

const Demand& demand_of(const Holder& holder) {
  return holder.demand ? *holder.demand : kPlainDemand;
}

// On a node that admits it.
bool has_room(const FreeNode& node, const Demand& demand) {
  return node.free > 0 && times_in(node.room, demand.amounts, 1) > 0;
}

}  // namespace

bool may_preempt(const Demand& demand, const Demand& holder) {
  const auto& queues = demand.preempted_queues;
  return !queues || std::find(queues->begin(), queues->end(), holder.queue) != queues->end();
}

Preemption::Preemption(std::vector<FreeNode> nodes, std::vector<Holder> holders) {
  std::map<NodeId, size_t> site_of;
  for (FreeNode& node : nodes) {
    site_of.emplace(node.node, sites_.size());
    sites_.push_back({std::move(node), {}});
  }
  for (Holder& holder : holders)
    if (auto it = site_of.find(holder.node); it != site_of.end() && holder.slots > 0)
      sites_[it->second].holders.push_back(holder);
  for (Site& site : sites_)
    std::stable_sort(site.holders.begin(), site.holders.end(), [](const auto& a, const auto& b) {
      return demand_of(a).priority < demand_of(b).priority;
    });
}

void Preemption::vacate(Site& site, const Holder& holder, uint32_t count) {
  uint32_t beyond = std::min(site.node.over, count);
  site.node.over -= beyond;
  site.node.free += count - beyond;
  if (!demand_of(holder).amounts.none()) site.node.room.add(demand_of(holder).amounts, count);
}

// The victims that must end for one more pod to fit there; nullopt: none would help.
std::optional<Preemption::Victims> Preemption::cheapest(const Site& site, const Demand& demand) {
  if (!admits(site.node, demand)) return std::nullopt;
  Site after{site.node, {}};
  Victims victims;
  bool fits = false;
  for (size_t i = 0; i < site.holders.size() && !fits; ++i) {
    const Holder& holder = site.holders[i];
    if (demand_of(holder).priority >= demand.priority) break;
    if (!may_preempt(demand, demand_of(holder))) continue;
    for (uint32_t n = 1; n <= holder.slots && !fits; ++n) {
      if (n == 1) victims.emplace_back(i, 0);
      ++victims.back().second;
      vacate(after, holder, 1);
      fits = has_room(after.node, demand);
    }
  }
  if (!fits) return std::nullopt;
  // Spare victims that need not end after all, highest priority first.
  for (auto it = victims.rbegin(); it != victims.rend(); ++it)
    for (; it->second > 0; --it->second) {
      Site without = after;
      const Demand& stays = demand_of(site.holders[it->first]);
      if (without.node.free == 0) break;
      occupy(without.node, stays, 1);
      if (!has_room(without.node, demand)) break;
      after = std::move(without);
    }
  std::erase_if(victims, [](const auto& victim) { return victim.second == 0; });
  return victims;
}

MadeRoom Preemption::make_room(const WaitingJob& waiting) {
  const Demand& demand = core::demand_of(waiting);
  if (std::any_of(hopeless_.begin(), hopeless_.end(), [&demand](const Demand* one) {
        return one->priority >= demand.priority && alike(*one, demand) &&
               one->preempted_queues == demand.preempted_queues;
      }))
    return {};
  MadeRoom made;
  uint64_t left = waiting.wanted;
  std::map<size_t, Site> before;  // sites before a change, to undo it if a gang does not fit
  auto touch = [&](size_t i) {
    if (demand.gang) before.try_emplace(i, sites_[i]);
  };
  for (size_t i = 0; i < sites_.size() && left > 0; ++i) {
    uint32_t count = room_for(sites_[i].node, demand, left);
    if (count == 0) continue;
    touch(i);
    occupy(sites_[i].node, demand, count);
    made.places[sites_[i].node.node] += count;
    left -= count;
  }
  // (highest priority of the victims, number of victims, site), the cheapest on top.
  using Offer = std::tuple<int32_t, uint32_t, size_t>;
  std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers;
  auto offer = [&](size_t i) {
    looks_ += 1 + sites_[i].holders.size();
    auto victims = cheapest(sites_[i], demand);
    if (!victims) return;
    uint32_t count = 0;
    int32_t highest = INT32_MIN;
    for (auto [holder, slots] : *victims) {
      count += slots;
      highest = std::max(highest, demand_of(sites_[i].holders[holder]).priority);
    }
    offers.emplace(highest, count, i);
  };
  for (size_t i = 0; i < sites_.size() && left > 0; ++i) offer(i);
  for (; left > 0 && !offers.empty(); --left) {
    size_t i = std::get<2>(offers.top());
    offers.pop();
    Site& site = sites_[i];
    auto victims = cheapest(site, demand);
    touch(i);
    for (auto [number, count] : *victims) {
      Holder& holder = site.holders[number];
      holder.slots -= count;
      vacate(site, holder, count);
      made.victims[holder.job][holder.node] += count;
    }
    occupy(site.node, demand, 1);
    ++made.places[site.node.node];
    offer(i);
  }
  if (left == 0) return made;
  if (!demand.gang) {
    hopeless_.push_back(&demand);
    return made;
  }
  for (auto& [i, site] : before) sites_[i] = std::move(site);
  return {};
}

}  // namespace muster::core
