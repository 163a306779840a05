// muster-bench-placement: what one decision about slots costs, by number of nodes. No disk, no
// processes, no actors.
//
// Every node has 100 slots, and three jobs of one user, or ten thousand of a thousand users and a
// gang as large as a tenth of the cluster, want more than all of them. First all slots are
// assigned. Then, repeatedly, pods end on nodes all over the cluster and their slots are assigned
// again, as many at a time as end in a few milliseconds at 50,000 ends/s. Pods are short, so
// prefetch is part of each decision.
#include "base/check.hpp"
#include "core/cluster/slots/slots.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace muster {
namespace {

using core::Slots;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kSlots = 100;          // per node
constexpr uint32_t kWanted = 10'000'000;  // by each job, at all times
constexpr uint32_t kEnds = 250;           // per decision: 5 ms at 50,000 ends/s
constexpr Millis kRanMs = 20;
constexpr Millis kStepMs = 1;  // between decisions
constexpr int kDecisions = 400;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Without users, all jobs are of one.
core::JobObjectPtr job_object(JobId id, uint32_t users, bool gang) {
  auto object = std::make_shared<core::JobObject>();
  object->meta.ns = "default";
  object->meta.name = "job-" + std::to_string(id);
  object->spec.pod.containers.resize(1);
  if (users > 0) object->meta.annotations["muster.dev/owner-uid"] = std::to_string(id % users);
  if (gang) object->meta.annotations["muster.dev/gang"] = "true";
  return object;
}

class Simulation {
 public:
  Simulation(NodeId nodes, JobId jobs, uint32_t users) : nodes_(nodes), jobs_(jobs) {
    for (NodeId id = 1; id <= nodes; ++id) {
      core::NodeInfo info;
      info.id = id;
      info.name = "node-" + std::to_string(id);
      info.slots = kSlots;
      info.cpu_millis = 1'000 * kSlots;
      info.memory_bytes = 256ull << 30;
      info.health = core::NodeInfo::Health::ready;
      slots_.set_node(info);
      slots_.set_usable(id, true);
    }
    known_.resize(jobs_ + 1);
    for (JobId id = 1; id <= jobs_; ++id) known_[id].object = job_object(id, users, false);
    if (users > 0) gang_ = job_object(jobs_ + 1, users, true);
    for (JobId id = 1; id <= jobs_; ++id) changed_.insert(id);
  }

  // Returns how many milliseconds it took.
  double decide() {
    const auto begin = Clock::now();
    for (const JobId id : changed_)
      slots_.want(id, kWanted, known_[id].received, known_[id].object);
    if (gang_) slots_.want(jobs_ + 1, nodes_ * kSlots / 10, 0, gang_);
    changed_.clear();
    Slots::Round round = slots_.place(now_ += kStepMs);
    const double ms = ms_since(begin);
    for (const auto& [job, node, count] : round.grants) {
      granted_ += count;
      if (job > jobs_) {
        gang_ = nullptr;
        continue;
      }
      changed_.insert(job);
      known_[job].held[node] += count;
      known_[job].received += count;
    }
    return ms;
  }

  // Returns how many milliseconds it took.
  double end_some() {
    std::map<JobId, std::map<NodeId, uint32_t>> ended;
    for (uint32_t left = kEnds; left > 0;) {
      const JobId job = 1 + chance_() % jobs_;
      const NodeId node = 1 + static_cast<NodeId>(chance_() % nodes_);
      auto& nodes = known_[job].held;
      if (nodes.empty()) continue;
      auto at = nodes.lower_bound(node);
      if (at == nodes.end()) at = nodes.begin();
      const NodeId there = at->first;
      uint32_t& held = at->second;
      if (--held == 0) nodes.erase(at);
      --left;
      changed_.insert(job);
      ++ended[job][there];
    }
    std::map<JobId, core::QuickEndsOfNodes> quick;
    for (const auto& [job, slots] : ended)
      for (auto [node, count] : slots) quick[job][node] = {count, count * kRanMs};
    const auto begin = Clock::now();
    for (const auto& [job, slots] : ended)
      slots_.freed(job, slots, quick[job], {kEnds, kEnds * kRanMs}, now_);
    return ms_since(begin);
  }

  uint64_t granted() const { return granted_; }

 private:
  struct Job {
    core::JobObjectPtr object;
    uint64_t received = 0;
    std::map<NodeId, uint32_t> held;
  };
  const NodeId nodes_;
  const JobId jobs_;
  core::JobObjectPtr gang_;  // null: there is none, or it has started
  std::set<JobId> changed_;
  Slots slots_;
  std::vector<Job> known_;  // by id
  std::mt19937_64 chance_{1};
  Millis now_ = 1'000;
  uint64_t granted_ = 0;
};

void run(NodeId nodes, JobId jobs, uint32_t users) {
  Simulation simulation(nodes, jobs, users);
  const double first = simulation.decide();
  MUSTER_CHECK(simulation.granted() >= uint64_t{nodes} * kSlots, simulation.granted());
  const uint64_t before = simulation.granted();
  std::vector<double> ms;
  double total = 0;
  for (int i = 0; i < kDecisions; ++i) {
    ms.push_back(simulation.end_some() + simulation.decide());
    total += ms.back();
  }
  std::sort(ms.begin(), ms.end());
  const double placed = static_cast<double>(simulation.granted() - before);
  std::printf("%8u %12u %8llu %8u %14.1f %12.2f %12.2f %14.0f\n", nodes, nodes * kSlots,
              static_cast<unsigned long long>(jobs), std::max(users, 1u), first, ms[ms.size() / 2],
              ms[ms.size() * 99 / 100], placed / total * 1e3);
  std::fflush(stdout);
}

}  // namespace
}  // namespace muster

int main() {
  std::printf("%8s %12s %8s %8s %14s %12s %12s %14s\n", "nodes", "slots", "jobs", "users",
              "first, ms", "p50, ms", "p99, ms", "pods/s");
  for (muster::NodeId nodes : {10u, 100u, 1'000u, 10'000u}) muster::run(nodes, 3, 0);
  for (muster::NodeId nodes : {100u, 1'000u, 10'000u}) muster::run(nodes, 10'000, 1'000);
  return 0;
}
