#include "core/cluster/slots/placement.hpp"

#include "core/cluster/nodes/arrangement.hpp"
#include "core/cluster/slots/fair_share.hpp"
#include "core/spec/fields/affinity.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace muster::core {

namespace {

// How often to divide anew what some jobs could not use.
constexpr int kDivisionsMax = 8;
// How many jobs ahead of the one that is served memory is asked for the next: most jobs are far
// from what was used last.
constexpr size_t kAhead = 8;

void prefetch(const WaitingJob& job) {
  constexpr size_t kLine = 64;
  for (size_t at = 0; at < sizeof job; at += kLine)
    __builtin_prefetch(reinterpret_cast<const char*>(&job) + at, 1);
}

// Whether `wanted` pods fit on all nodes together.
bool has_room_for_all(const std::vector<FreeNode>& nodes, const Demand& demand, uint64_t wanted) {
  uint64_t room = 0;
  for (const FreeNode& node : nodes) {
    room += room_for(node, demand, wanted - room);
    if (room >= wanted) return true;
  }
  return false;
}

struct Placer {
  WaitingJobs& waiting;
  const std::vector<WaitingJob*>& reserved;
  std::vector<FreeNode> nodes;
  Pass pass{};
  PlacementChoice site = PlacementChoice::spread;  // in which order `nodes` are
  bool fresh = true;                               // no job or kind has turned out to fit nowhere
  uint64_t free = 0;
  std::vector<Placed> placed{};
  Grants noted{};    // of jobs for which it matters where they were placed before
  size_t first = 0;  // nodes before this one have no slot left
  // Free places that wait for the rest of a reservation.
  struct Kept {
    size_t node;  // in `nodes`
    uint32_t slots;
    Amounts amounts;
    Millis for_ms;  // until then
  };
  std::vector<Kept> kept{};

  void add_up() {
    for (const FreeNode& n : nodes) free += n.free;
  }

  bool is_stuck(const WaitingJob& job) const { return job.kind->stuck == pass.number; }

  // Pods that start together also work together: a gang takes as few nodes as it can.
  PlacementChoice choice_of(const WaitingJob& job) const {
    if (job.ordinary && job.pack) return PlacementChoice::usual;
    const Demand& demand = demand_of(job);
    if (demand.placement != PlacementChoice::usual) return demand.placement;
    const bool packs =
        demand.gang && site == PlacementChoice::pack && demand.affinity.preferred.empty();
    return packs ? site : PlacementChoice::usual;
  }

  bool reluctant(const FreeNode& node, const Demand& demand) const {
    return node.info && reluctance(*node.info, demand) > 0;
  }

  uint32_t pods_on(const WaitingJob& job, NodeId node) const {
    uint32_t pods = 0;
    if (auto now = noted.find(job.job); now != noted.end())
      if (auto there = now->second.find(node); there != now->second.end()) pods = there->second;
    if (job.held)
      if (const Holding* before = job.held->find(node)) pods += before->pods;
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

  // The nodes for a job that is packed or spread by itself, in its order, with the number of pods,
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
      const std::vector<uint32_t> counts = arrange(choice_of(job), places, most);
      for (size_t i = 0; i < at.size(); ++i) {
        if (counts[i] == 0) continue;
        chosen.emplace_back(at[i], counts[i]);
        most -= counts[i];
      }
    }
    return chosen;
  }

  // Calls `take` for one node after another until nothing is `left`.
  template <class Take>
  void take_in_turn(const WaitingJob& job, const uint64_t& left, const Take& take) {
    const Demand& demand = job.kind->demand;
    // Others leave whole nodes to jobs that need much.
    const bool backwards = site == PlacementChoice::spread && !pass.only_plain &&
                           waiting.any_large() && !is_large(job);
    auto nth = [&](size_t i) -> FreeNode& { return nodes[backwards ? nodes.size() - 1 - i : i]; };
    // Nodes only fill up in a pass, so where such a pod no longer fits is not looked at again.
    Kind& kind = *job.kind;
    if (kind.looked != pass.number) kind.full[0] = kind.full[1] = 0;
    kind.looked = pass.number;
    size_t& full = kind.full[backwards];
    if (!backwards) full = std::max(full, first);
    std::optional<size_t> reluctantly;
    for (size_t i = full; i < nodes.size() && left > 0; ++i) {
      if (reluctant(nth(i), demand)) {
        if (!reluctantly) reluctantly = i;
        continue;
      }
      take(nth(i), left);
      if (left > 0 && !reluctantly) full = i + 1;
    }
    for (size_t i = reluctantly.value_or(nodes.size()); i < nodes.size() && left > 0; ++i)
      take(nth(i), left);
  }

  // Grants the job up to `most` slots and returns how many it got. Fewer than `most`: no more fit.
  uint64_t fill(WaitingJob& job, uint64_t most) {
    most = allowed(job, most);
    if (most == 0 || is_stuck(job)) return 0;
    const Demand& demand = job.kind->demand;  // as the job's, but shared and thus at hand
    const PlacementChoice choice = choice_of(job);
    uint64_t left = most;
    auto take = [&](FreeNode& node, uint64_t at_most) {
      uint32_t count = room_for(node, demand, at_most);
      if (count == 0) return;
      placed.push_back({&job, node.node, count});
      if (job.reservation || choice != PlacementChoice::usual) noted[job.job][node.node] += count;
      occupy(node, demand, count);
      waiting.set_wanted(job, job.wanted - count);
      count_pods(job, count);
      if (job.kept > 0) set_kept(job, job.kept - std::min(job.kept, count));
      free -= count;
      left -= count;
    };
    while (first < nodes.size() && nodes[first].free == 0) ++first;
    if (choice != PlacementChoice::usual) {
      for (auto [node, count] : arranged(job, left)) take(nodes[node], count);
    } else if (!job.ordinary) {
      for (size_t i : preferred(demand_of(job))) take(nodes[i], left);
    } else {
      take_in_turn(job, left, take);
    }
    if (left > 0) {
      job.kind->stuck = pass.number;
      fresh = false;
    }
    return most - left;
  }

  // Occupies the rest of the job's reservation, so that later jobs do not get it.
  void reserve(const WaitingJob& job) {
    auto mine = noted.find(job.job);
    auto left = static_cast<uint32_t>(allowed(job, job.wanted));
    for (size_t i = 0; i < nodes.size(); ++i) {
      FreeNode& node = nodes[i];
      auto place = job.reservation->find(node.node);
      if (left == 0 || place == job.reservation->end()) continue;
      uint32_t count = place->second;
      if (mine != noted.end())
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

  // Divides what is free among jobs of the line.
  void share(const Line& line) {
    for (int division = 0; free > 0 && division < kDivisionsMax; ++division) {
      const std::vector<Share> shares = shares_of(line, pass, free, fresh);
      if (shares.empty()) return;
      for (size_t i = 0; i < shares.size(); ++i) {
        if (i + kAhead < shares.size()) prefetch(*shares[i + kAhead].job);
        const auto [job, pods] = shares[i];
        if (give(*job, pods) || job->wanted == 0) continue;
        pass.take_out(*job);
        fresh = false;
      }
    }
    if (free > 0) give_rest(line);
  }

  void give_rest(const Line& line) {
    std::vector<WaitingJob*> jobs;
    for (const auto* packs : {&line.plain, &line.others}) {
      if (pass.only_plain && packs == &line.others) continue;
      for (const auto& [key, pack] : *packs) {
        if (!pass.serves(pack)) continue;
        for (size_t i = 0; i < pack.jobs.size(); ++i)
          if (pass.serves(pack, i)) jobs.push_back(pack.jobs[i]);
      }
    }
    std::sort(jobs.begin(), jobs.end(), [this](const WaitingJob* a, const WaitingJob* b) {
      return pass.order(*a) < pass.order(*b);
    });
    for (WaitingJob* job : jobs)
      if (free > 0) give(*job, free);
  }

  // Lends kept places to jobs whose pods are likely to end before the reservation is complete.
  void backfill(const Line& line) {
    for (size_t begin = 0, end; begin < kept.size(); begin = end) {
      std::vector<FreeNode> lent;
      for (end = begin; end < kept.size() && kept[end].for_ms == kept[begin].for_ms; ++end) {
        lent.push_back(nodes[kept[end].node]);
        lent.back().free = kept[end].slots;
        lent.back().room.add(kept[end].amounts, 1);
      }
      Placer placer{waiting, reserved, std::move(lent), pass, site, false};
      placer.pass.number = waiting.next_pass();
      placer.pass.ends_within = kept[begin].for_ms;
      placer.noted = noted;
      placer.add_up();
      placer.share(line);
      placed.insert(placed.end(), placer.placed.begin(), placer.placed.end());
      noted = std::move(placer.noted);
      // What is left can be lent on.
      for (size_t i = begin; i < end; ++i) {
        const FreeNode& left = placer.nodes[i - begin];
        Kept& one = kept[i];
        FreeNode& node = nodes[one.node];
        one.slots = left.free;
        one.amounts = left.room;
        node.room.lower_to(one.amounts);
        one.amounts.add(node.room, -1);
      }
    }
    std::erase_if(kept, [](const Kept& one) { return one.slots == 0; });
  }

  // Those that are served before others of their priority, in order.
  std::vector<WaitingJob*> served_first(const Line& line) const {
    std::vector<WaitingJob*> jobs;
    for (WaitingJob* job : line.gangs)
      if (!pass.only_plain && job->wanted > 0 && (job->wanted <= free || job->reservation) &&
          may_have(*job))
        jobs.push_back(job);
    for (WaitingJob* job : reserved)
      if (job->line == &line && job->pack && job->wanted > 0 && may_have(*job) &&
          (job->pack->plain || !pass.only_plain))
        jobs.push_back(job);
    auto key = [this](const WaitingJob* job) {
      return std::tuple(!job->begun, !job->reservation, pass.order(*job));
    };
    std::sort(jobs.begin(), jobs.end(),
              [&key](const WaitingJob* a, const WaitingJob* b) { return key(a) < key(b); });
    return jobs;
  }

  // Serves jobs of one priority.
  void serve(const Line& line) {
    for (WaitingJob* one : served_first(line)) {
      WaitingJob& job = *one;
      if (!may_have(job)) continue;  // by now
      if (demand_of(job).gang) {
        if (job.wanted <= free && has_room_for_all(nodes, demand_of(job), job.wanted))
          fill(job, job.wanted);
      } else {
        uint64_t places = 0;
        for (auto [node, count] : *job.reservation) places += count;
        fill(job, std::min<uint64_t>(places, job.wanted));
      }
      if (job.reservation) reserve(job);
    }
    share(line);
    backfill(line);
  }
};

bool is_idle(const FreeNode& node) {
  return node.info && node.free >= node.info->slots;
}

std::vector<FreeNode> in_order(std::vector<FreeNode> nodes, PlacementChoice site) {
  // Of those that compare equal, the first one stays first.
  std::vector<std::pair<uint64_t, size_t>> order;
  order.reserve(nodes.size());
  for (const FreeNode& node : nodes) {
    const uint64_t key = site == PlacementChoice::spread
                             ? UINT32_MAX - node.free
                             : uint64_t{is_idle(node)} << 32 | node.free;
    order.emplace_back(key, order.size());
  }
  std::sort(order.begin(), order.end());
  std::vector<FreeNode> sorted;
  sorted.reserve(nodes.size());
  for (const auto& [key, at] : order) sorted.push_back(std::move(nodes[at]));
  return sorted;
}

}  // namespace

std::vector<Placed> place(std::vector<FreeNode> nodes, WaitingJobs& waiting,
                          const std::vector<WaitingJob*>& reserved, uint64_t first_turn,
                          PlacementChoice site) {
  Placer placer{
      waiting, reserved, in_order(std::move(nodes), site), {waiting.next_pass(), first_turn}, site};
  placer.add_up();
  for (const auto& [priority, line] : waiting.lines()) {
    if (placer.free == 0 && placer.kept.empty()) break;
    placer.serve(line);
  }
  return std::move(placer.placed);
}

std::vector<Placed> place_plain(std::vector<FreeNode> nodes, WaitingJobs& waiting, Line& line,
                                const std::vector<WaitingJob*>& reserved, uint64_t first_turn) {
  Placer placer{waiting,
                reserved,
                in_order(std::move(nodes), PlacementChoice::spread),
                {waiting.next_pass(), first_turn, true}};
  placer.add_up();
  placer.serve(line);
  return std::move(placer.placed);
}

Grants place(std::vector<FreeNode> nodes, std::vector<WaitingJob> jobs, PlacementChoice site) {
  WaitingJobs waiting;
  std::vector<WaitingJob*> reserved;
  std::map<const UserShare*, uint32_t> users;
  for (WaitingJob& job : jobs) {
    job.turn = static_cast<uint64_t>(&job - jobs.data());
    if (job.user) {
      users.try_emplace(job.user, static_cast<uint32_t>(users.size() + 1));
      job.user->number = users.at(job.user);
    }
    if (job.wanted == 0) continue;
    waiting.set_kind(job);
    waiting.add(job);
    if (job.reservation) reserved.push_back(&job);
  }
  Grants grants;
  for (const auto& [job, node, pods] : place(std::move(nodes), waiting, reserved, 0, site))
    grants[job->job][node] += pods;
  return grants;
}

}  // namespace muster::core
