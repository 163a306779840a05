#include "core/cluster/slots/placement.hpp"

#include "core/cluster/nodes/arrangement.hpp"
#include "core/cluster/slots/fair_share.hpp"
#include "core/spec/fields/affinity.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster::core {

namespace {

// How many demands that fit nowhere to remember, to skip jobs with the same demand.
constexpr size_t kStuckMax = 16;
// How often to divide anew what some jobs could not use.
constexpr int kDivisionsMax = 8;

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
  // Free places that wait for the rest of a reservation.
  struct Kept {
    size_t node;  // in `nodes`
    uint32_t slots;
    Amounts amounts;
    Millis for_ms;  // until then
  };
  std::vector<Kept> kept{};

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
      job.share += count * job.cost;
      if (job.user) job.user->held += count * job.cost;
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
    for (size_t i = 0; i < nodes.size(); ++i) {
      FreeNode& node = nodes[i];
      auto place = job.reservation->find(node.node);
      if (left == 0 || place == job.reservation->end()) continue;
      uint32_t count = place->second;
      if (mine != grants.end())
        if (auto got = mine->second.find(node.node); got != mine->second.end())
          count -= std::min(count, got->second);
      count = std::min(count, left);
      left -= count;
      const uint32_t slots = std::min(node.free, count);
      free -= slots;
      if (slots > 0 && job.starts_in_ms) {
        Amounts amounts;
        amounts.add(demand_of(job).amounts, count);
        kept.push_back({i, slots, std::move(amounts), *job.starts_in_ms});
      }
      occupy(node, demand_of(job), count);
    }
  }

  // Gives the job up to `most` slots. False: it can have no more.
  bool give(WaitingJob& job, uint64_t most) {
    most = allowed(job, std::min<uint64_t>({most, job.wanted, free}));
    return fill(job, most) == most && job.wanted > 0 && allowed(job, job.wanted) > 0;
  }

  // Divides what is free among these jobs.
  void share(std::vector<WaitingJob*> jobs) {
    for (int division = 0; free > 0 && !jobs.empty() && division < kDivisionsMax; ++division) {
      for (const auto& [job, pods] : shares_of(jobs, free))
        if (!give(*jobs[job], pods)) jobs[job] = nullptr;
      std::erase(jobs, nullptr);
    }
    for (WaitingJob* job : jobs)
      if (free > 0) give(*job, free);
  }

  // Lends kept places to jobs whose pods are likely to end before the reservation is complete.
  void backfill(const std::vector<WaitingJob*>& jobs) {
    for (Kept& one : kept) {
      std::vector<WaitingJob*> quick;
      std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(quick), [&](const WaitingJob* job) {
        return job->runs_ms && std::max<Millis>(*job->runs_ms, 1) <= one.for_ms &&
               !job->reservation && job->wanted > 0;
      });
      if (quick.empty()) continue;
      FreeNode& node = nodes[one.node];
      FreeNode lent = node;
      lent.free = one.slots;
      lent.room.add(one.amounts, 1);
      Placer placer{{std::move(lent)}, one.slots};
      placer.share(std::move(quick));
      for (const auto& [job, places] : placer.grants)
        for (auto [id, count] : places) grants[job][id] += count;
      // What is left can be lent on.
      one.slots = static_cast<uint32_t>(placer.free);
      one.amounts = placer.nodes.front().room;
      node.room.lower_to(one.amounts);
      one.amounts.add(node.room, -1);
    }
    std::erase_if(kept, [](const Kept& one) { return one.slots == 0; });
  }

  // Serves jobs of one priority.
  void serve(std::vector<WaitingJob*> jobs) {
    const auto others = std::stable_partition(jobs.begin(), jobs.end(),
                                              [](const WaitingJob* j) { return j->begun; });
    std::stable_partition(others, jobs.end(), [](const WaitingJob* j) { return j->reservation; });
    for (WaitingJob* one : jobs) {
      WaitingJob& job = *one;
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
    std::erase_if(jobs, [](const WaitingJob* j) { return j->wanted == 0 || demand_of(*j).gang; });
    share(jobs);
    backfill(jobs);
  }
};

}  // namespace

Grants place_all(std::vector<FreeNode> nodes, std::vector<WaitingJob>& jobs) {
  std::vector<WaitingJob*> order;
  for (WaitingJob& job : jobs)
    if (job.wanted > 0) order.push_back(&job);
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const FreeNode& a, const FreeNode& b) { return a.free > b.free; });
  std::stable_sort(order.begin(), order.end(), [](const WaitingJob* a, const WaitingJob* b) {
    return demand_of(*a).priority > demand_of(*b).priority;
  });
  Placer placer{std::move(nodes)};
  for (const FreeNode& n : placer.nodes) placer.free += n.free;
  for (auto it = order.begin(); it != order.end() && (placer.free > 0 || !placer.kept.empty());) {
    auto end = std::find_if(it, order.end(), [it](const WaitingJob* j) {
      return demand_of(*j).priority != demand_of(**it).priority;
    });
    placer.serve({it, end});
    it = end;
  }
  return std::move(placer.grants);
}

Grants place(std::vector<FreeNode> nodes, std::vector<WaitingJob> jobs) {
  return place_all(std::move(nodes), jobs);
}

}  // namespace muster::core
