#include "core/cluster/slots/placement.hpp"

#include "core/cluster/nodes/arrangement.hpp"
#include "core/spec/fields/affinity.hpp"

#include <algorithm>

namespace muster::core {

namespace {

// How many demands that fit nowhere to remember, to skip jobs with the same demand.
constexpr size_t kStuckMax = 16;

// Whether `wanted` pods fit on all nodes together.
bool has_room_for_all(const std::vector<FreeNode>& nodes, const Demand& demand, uint64_t wanted) {
  uint64_t room = 0;
  for (const FreeNode& node : nodes) {
    room += room_for(node, demand, wanted - room);
    if (room >= wanted) return true;
  }
  return false;
}

// `most`, limited to the number of pods that the job's user may still have.
uint64_t allowed(const WaitingJob& job, uint64_t most) {
  return job.user_left ? std::min<uint64_t>(most, *job.user_left) : most;
}

struct Placer {
  std::vector<FreeNode> nodes;
  uint64_t free = 0;
  Grants grants{};
  size_t first = 0;                    // nodes before this one have no slot left
  std::vector<const Demand*> stuck{};  // demands that fit nowhere: room only shrinks

  bool is_stuck(const WaitingJob& job) const {
    return std::any_of(stuck.begin(), stuck.end(),
                       [&job](const Demand* one) { return alike(*one, demand_of(job)); });
  }

  bool reluctant(const FreeNode& node, const Demand& demand) const {
    return node.info && reluctance(*node.info, demand) > 0;
  }

  uint32_t pods_on(const WaitingJob& job, NodeId node) const {
    uint32_t pods = 0;
    if (auto now = grants.find(job.job); now != grants.end())
      if (auto there = now->second.find(node); there != now->second.end()) pods = there->second;
    if (job.held)
      if (auto before = job.held->find(node); before != job.held->end()) pods += before->second;
    return pods;
  }

  // All nodes that may have a free slot, in the order that a job with preferences wants.
  std::vector<size_t> preferred(const Demand& demand) const {
    struct Choice {
      size_t node;
      bool last;
      int64_t weight;
    };
    std::vector<Choice> choices;
    for (size_t i = first; i < nodes.size(); ++i) {
      const FreeNode& node = nodes[i];
      const bool known = node.info && node.labels;
      choices.push_back({i, reluctant(node, demand),
                         known ? preference(demand.affinity, node.info->name, *node.labels) : 0});
    }
    std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return a.last != b.last ? b.last : a.weight > b.weight;
    });
    std::vector<size_t> order;
    for (const Choice& one : choices) order.push_back(one.node);
    return order;
  }

  // The nodes for a job that chose to be packed or spread, in its order, with the number of pods,
  // of `most`, that go to each.
  std::vector<std::pair<size_t, uint32_t>> arranged(const WaitingJob& job, uint64_t most) const {
    const Demand& demand = demand_of(job);
    std::vector<std::pair<size_t, uint32_t>> chosen;
    for (bool last_choice : {false, true}) {
      std::vector<size_t> at;
      std::vector<Place> places;
      for (size_t i = first; i < nodes.size(); ++i) {
        if (reluctant(nodes[i], demand) != last_choice) continue;
        at.push_back(i);
        places.push_back({room_for(nodes[i], demand, nodes[i].free), pods_on(job, nodes[i].node)});
      }
      const std::vector<uint32_t> counts = arrange(demand.placement, places, most);
      for (size_t i = 0; i < at.size(); ++i) {
        if (counts[i] == 0) continue;
        chosen.emplace_back(at[i], counts[i]);
        most -= counts[i];
      }
    }
    return chosen;
  }

  // Grants the job up to `most` slots and returns how many it got. Fewer than `most`: no more fit.
  uint64_t fill(WaitingJob& job, uint64_t most) {
    most = allowed(job, most);
    if (most == 0 || is_stuck(job)) return 0;
    const Demand& demand = demand_of(job);
    uint64_t left = most;
    bool some_reluctant = false;
    auto take = [&](FreeNode& node, uint64_t at_most) {
      uint32_t count = room_for(node, demand, at_most);
      if (count == 0) return;
      grants[job.job][node.node] += count;
      occupy(node, demand, count);
      job.wanted -= count;
      if (job.user_left) *job.user_left -= count;
      free -= count;
      left -= count;
    };
    while (first < nodes.size() && nodes[first].free == 0) ++first;
    if (demand.placement != PlacementChoice::usual) {
      for (auto [node, count] : arranged(job, left)) take(nodes[node], count);
    } else if (!demand.affinity.preferred.empty()) {
      for (size_t i : preferred(demand)) take(nodes[i], left);
    } else {
      for (size_t i = first; i < nodes.size() && left > 0; ++i) {
        if (reluctant(nodes[i], demand))
          some_reluctant = true;
        else
          take(nodes[i], left);
      }
      for (size_t i = first; some_reluctant && i < nodes.size() && left > 0; ++i)
        take(nodes[i], left);
    }
    if (left > 0 && stuck.size() < kStuckMax) stuck.push_back(&demand);
    return most - left;
  }

  // Occupies the rest of the job's reservation, so that later jobs do not get it.
  void reserve(const WaitingJob& job) {
    auto mine = grants.find(job.job);
    auto left = static_cast<uint32_t>(allowed(job, job.wanted));
    for (FreeNode& node : nodes) {
      auto place = job.reservation->find(node.node);
      if (left == 0 || place == job.reservation->end()) continue;
      uint32_t count = place->second;
      if (mine != grants.end())
        if (auto got = mine->second.find(node.node); got != mine->second.end())
          count -= std::min(count, got->second);
      count = std::min(count, left);
      left -= count;
      free -= std::min(node.free, count);
      occupy(node, demand_of(job), count);
    }
  }

  // Serves jobs of one priority.
  void serve(std::vector<WaitingJob> jobs) {
    const auto others = std::stable_partition(jobs.begin(), jobs.end(),
                                              [](const WaitingJob& j) { return j.begun; });
    std::stable_partition(others, jobs.end(), [](const WaitingJob& j) { return j.reservation; });
    for (WaitingJob& job : jobs) {
      if (demand_of(job).gang) {
        if (job.wanted <= free && allowed(job, job.wanted) == job.wanted &&
            has_room_for_all(nodes, demand_of(job), job.wanted))
          fill(job, job.wanted);
      } else if (job.reservation) {
        uint64_t places = 0;
        for (auto [node, count] : *job.reservation) places += count;
        fill(job, std::min<uint64_t>(places, job.wanted));
      }
      if (job.reservation) reserve(job);
    }
    std::erase_if(jobs, [](const WaitingJob& j) { return j.wanted == 0 || demand_of(j).gang; });
    while (free > 0 && !jobs.empty()) {
      uint64_t share = std::max<uint64_t>(1, free / jobs.size());
      std::erase_if(jobs, [&](WaitingJob& job) {
        const uint64_t most = allowed(job, std::min<uint64_t>({share, job.wanted, free}));
        return most == 0 || fill(job, most) < most || job.wanted == 0;
      });
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

Reservation reservation_for(const std::vector<FreeNode>& nodes, const WaitingJob& waiting) {
  const Demand& demand = demand_of(waiting);
  uint64_t left = demand.gang ? waiting.wanted : std::min<uint32_t>(waiting.wanted, 1);
  Reservation reservation;
  for (const FreeNode& node : nodes) {
    if (left == 0) break;
    uint32_t count = room_for(node, demand, left);
    if (count == 0) continue;
    reservation[node.node] = count;
    left -= count;
  }
  if (left > 0) return {};
  return reservation;
}

}  // namespace muster::core
