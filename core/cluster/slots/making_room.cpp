// Making room: which waiting jobs preempt others, and what is kept for them.
#include "core/cluster/slots/slots.hpp"

#include <algorithm>
#include <iterator>

namespace muster::core {

namespace {

// How long to wait for a victim after its grace, to allow for SIGKILL and the report.
constexpr Millis kReportMs = 30'000;
// Preemption gives up after this many jobs for which it cannot make room.
constexpr int kVainMax = 64;

}  // namespace

// Waiting jobs that may preempt pods of this priority, the highest first.
std::vector<Slots::Client*> Slots::preemptors(int32_t lowest) {
  std::vector<Client*> jobs;
  for (const auto& [priority, line] : waiting_.lines()) {
    if (priority <= lowest) break;
    const auto begin = static_cast<std::ptrdiff_t>(jobs.size());
    auto add = [&jobs](WaitingJob* job) {
      if (job->wanted > 0 && job->demand->preempts && may_have(*job))
        jobs.push_back(static_cast<Client*>(job));
    };
    for (const auto* packs : {&line.plain, &line.others})
      for (const auto& [key, pack] : *packs) std::for_each(pack.jobs.begin(), pack.jobs.end(), add);
    std::for_each(line.gangs.begin(), line.gangs.end(), add);
    std::sort(jobs.begin() + begin, jobs.end(), [this](const Client* a, const Client* b) {
      return a->turn - first_served_ < b->turn - first_served_;
    });
  }
  return jobs;
}

void Slots::preempt(Millis now, Round& round) {
  std::vector<Client*> waiting;
  if (!ranks_.empty()) waiting = preemptors(ranks_.begin()->first);
  if (!waiting.empty() && preempted_ms_ && now < *preempted_ms_ + kPreemptEveryMs) {
    round.again_in(*preempted_ms_ + kPreemptEveryMs - now);
    return;
  }
  std::erase_if(reservations_, [this](const auto& one) { return one.first != patient_; });
  if (waiting.empty()) return;
  preempted_ms_ = now;

  std::map<NodeId, int64_t> leaving;
  std::map<NodeId, Amounts> freeing;
  std::vector<Holder> holders;
  for (Client* one : by_id()) {
    Client& client = *one;
    std::erase_if(client.leaving, [now](const auto& one) { return one.second.second < now; });
    for (const auto& [node, pods, since] : client.places) {
      auto going = client.leaving.find(node);
      uint32_t gone = going == client.leaving.end() ? 0 : std::min(going->second.first, pods);
      if (gone > 0) {
        leaving[node] += gone;
        freeing[node].add(client.need.amounts, gone);
      }
      if (client.asked && pods > gone)
        holders.push_back({client.job, node, pods - gone, &client.need});
    }
  }
  std::vector<FreeNode> nodes;
  for (const auto& [id, site] : sites_) {
    if (!site.usable) continue;
    FreeNode node = free_node(site);
    int64_t free = int64_t{site.info.slots} - site.used;
    if (auto it = leaving.find(id); it != leaving.end()) {
      free += it->second;
      node.room.add(freeing[id], 1);
    }
    node.free = free > 0 ? static_cast<uint32_t>(free) : 0;
    node.over = free < 0 ? static_cast<uint32_t>(-free) : 0;
    nodes.push_back(std::move(node));
  }
  Preemption preemption(std::move(nodes), std::move(holders));
  make_room(preemption, waiting, now, round);
}

void Slots::make_room(Preemption& preemption, const std::vector<Client*>& jobs, Millis now,
                      Round& round) {
  std::vector<std::pair<Client*, uint32_t>> counted;
  int in_vain = 0;
  for (Client* preemptor : jobs) {
    if (!may_have(*preemptor)) continue;  // by now
    WaitingJob job = *preemptor;
    job.wanted = static_cast<uint32_t>(allowed(job, job.wanted));
    MadeRoom made = preemption.make_room(job);
    if (made.places.empty()) {
      if (++in_vain == kVainMax) break;
      continue;
    }
    uint32_t places = 0;
    for (auto [node, count] : made.places) places += count;
    count_limits(*preemptor, places);
    counted.emplace_back(preemptor, places);
    if (job.job == patient_) patient_.reset();  // it gets this room instead
    reservations_[job.job] = std::move(made.places);
    for (const auto& [victim, slots] : made.victims) {
      Client& client = clients_.at(victim);
      Millis grace_ms = client.object->spec.pod.termination_grace_s.value_or(30) * 1000;
      for (auto [node, count] : slots) {
        auto& going = client.leaving[node];
        going = {going.first + count, now + grace_ms + kReportMs};
        round.victims[victim][node] += count;
      }
    }
  }
  // They do not have these pods yet.
  for (auto [preemptor, places] : counted) count_limits(*preemptor, -int64_t{places});
}

}  // namespace muster::core
