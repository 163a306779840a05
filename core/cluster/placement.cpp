#include "core/cluster/placement.hpp"

#include <algorithm>
#include <span>

namespace muster::core {

namespace {

const Demand kPlain;

const Demand& demand_of(const WaitingJob& job) {
  return job.demand ? *job.demand : kPlain;
}

uint32_t room_for(const FreeNode& node, const Demand& demand, uint64_t most) {
  auto count = static_cast<uint32_t>(std::min<uint64_t>(most, node.free));
  if (count == 0) return 0;
  if (node.info && node.labels && !admits(*node.info, *node.labels, demand)) return 0;
  return demand.amounts.none() ? count : times_in(node.room, demand.amounts, count);
}

struct Placer {
  std::vector<FreeNode> nodes;
  Grants grants{};
  uint64_t free = 0;

  void take(FreeNode& node, WaitingJob& job, uint32_t count) {
    grants[job.job][node.node] += count;
    node.free -= count;
    if (!demand_of(job).amounts.none()) node.room.add(demand_of(job).amounts, -int64_t{count});
    job.wanted -= count;
    free -= count;
  }

  // Up to `most` slots for this job; how many it got.
  uint64_t fill(WaitingJob& job, uint64_t most) {
    uint64_t left = most;
    bool reluctant = false;
    for (FreeNode& node : nodes) {
      if (left == 0) return most;
      if (node.info && reluctance(*node.info, demand_of(job)) > 0) {
        reluctant = true;
        continue;
      }
      if (uint32_t count = room_for(node, demand_of(job), left); count > 0) {
        take(node, job, count);
        left -= count;
      }
    }
    if (!reluctant) return most - left;
    for (FreeNode& node : nodes) {
      if (left == 0) return most;
      if (uint32_t count = room_for(node, demand_of(job), left); count > 0) {
        take(node, job, count);
        left -= count;
      }
    }
    return most - left;
  }

  bool has_room_for_all(const WaitingJob& job) const {
    uint64_t room = 0;
    for (const FreeNode& node : nodes) room += room_for(node, demand_of(job), job.wanted - room);
    return room >= job.wanted;
  }

  // Jobs of one priority.
  void serve(std::vector<WaitingJob> jobs) {
    for (WaitingJob& job : jobs)
      if (demand_of(job).gang && has_room_for_all(job)) fill(job, job.wanted);
    std::erase_if(jobs, [](const WaitingJob& j) { return j.wanted == 0 || demand_of(j).gang; });
    bool progress = true;
    while (progress && free > 0 && !jobs.empty()) {
      progress = false;
      uint64_t share = std::max<uint64_t>(1, free / jobs.size());
      for (WaitingJob& job : jobs)
        if (fill(job, std::min<uint64_t>({share, job.wanted, free})) > 0) progress = true;
      std::erase_if(jobs, [](const WaitingJob& j) { return j.wanted == 0; });
    }
  }
};

}  // namespace

Grants place(std::vector<FreeNode> nodes, std::vector<WaitingJob> jobs) {
  std::erase_if(jobs, [](const WaitingJob& j) { return j.wanted == 0; });
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const FreeNode& a, const FreeNode& b) { return a.free > b.free; });
  std::stable_sort(jobs.begin(), jobs.end(), [](const WaitingJob& a, const WaitingJob& b) {
    return demand_of(a).priority > demand_of(b).priority;
  });
  Placer placer{std::move(nodes)};
  for (const FreeNode& n : placer.nodes) placer.free += n.free;
  for (auto it = jobs.begin(); it != jobs.end() && placer.free > 0;) {
    auto end = std::find_if(it, jobs.end(), [it](const WaitingJob& j) {
      return demand_of(j).priority != demand_of(*it).priority;
    });
    placer.serve({it, end});
    it = end;
  }
  return std::move(placer.grants);
}

Grants preempt(std::vector<FreeNode> nodes, const WaitingJob& waiting,
               std::vector<Holder> holders) {
  const Demand& demand = demand_of(waiting);
  std::erase_if(holders, [&demand](const Holder& h) {
    return h.slots == 0 || (h.demand ? h.demand->priority : 0) >= demand.priority;
  });
  std::stable_sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) {
    return (a.demand ? a.demand->priority : 0) < (b.demand ? b.demand->priority : 0);
  });
  Grants victims;
  uint64_t left = waiting.wanted;
  for (FreeNode& node : nodes) {
    if (left == 0) break;
    uint32_t have = room_for(node, demand, left);
    left -= have;
    node.free -= have;
    node.room.add(demand.amounts, -int64_t{have});
    if (node.info && node.labels && !admits(*node.info, *node.labels, demand)) continue;
    // One victim after the other until one more fits; what did not lead to a place is not taken.
    std::map<JobId, uint32_t> taken;
    for (Holder& holder : holders) {
      while (holder.node == node.node && holder.slots > 0 && left > 0) {
        --holder.slots;
        ++taken[holder.job];
        ++node.free;
        if (holder.demand) node.room.add(holder.demand->amounts, 1);
        if (room_for(node, demand, 1) == 0) continue;
        --left;
        --node.free;
        node.room.add(demand.amounts, -1);
        for (auto [job, count] : taken) victims[job][node.node] += count;
        taken.clear();
      }
    }
  }
  if (demand.gang && left > 0) return {};
  return victims;
}

}  // namespace muster::core
