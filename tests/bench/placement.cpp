// muster-bench-placement: what one decision about slots costs, by number of nodes. No disk, no
// processes, no actors.
//
// Every node has 100 slots, and three jobs of one user, or ten thousand of a thousand users and a
// gang as large as a tenth of the cluster, want more than all of them. Once all jobs are there, all
// slots are assigned. Then, repeatedly, pods end on nodes all over the cluster and their slots are
// assigned again, as many at a time as end in 5 ms at 50,000 ends/s. Pods are short, so prefetch is
// part of each decision.
//
// Then, decisions that look at what others hold: nodes of 16 slots, full of pods of one CPU, of
// 10^4 jobs of 10^3 users that all want more. Jobs of higher priority come, one pod of a whole node
// each or a gang of them, and preempt some of them; or a gang waits until enough nodes are free.
#include "base/check.hpp"
#include "core/cluster/slots/slots.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace muster {
namespace {

using core::Slots;

// The time that this thread has been running: others on the machine do not count.
struct Clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock, duration>;
  static time_point now() {
    timespec at{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return time_point(std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec));
  }
};

constexpr uint32_t kSlots = 100;          // per node
constexpr uint32_t kWanted = 10'000'000;  // by each job, at all times
constexpr uint32_t kEnds = 250;           // per decision: 5 ms at 50,000 ends/s
constexpr Millis kRanMs = 20;
constexpr Millis kStepMs = 5;  // between decisions
constexpr int kDecisions = 400;
constexpr uint32_t kSmall = 16;  // slots per node where pods are preempted

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Without users, all jobs are of one.
core::JobObjectPtr job_object(JobId id, uint32_t users, bool gang, uint32_t cpus = 0) {
  auto object = std::make_shared<core::JobObject>();
  object->meta.ns = "default";
  object->meta.name = "job-" + std::to_string(id);
  object->spec.pod.containers.resize(1);
  if (cpus > 0) object->spec.pod.containers[0].resources.requests["cpu"] = std::to_string(cpus);
  if (users > 0) object->meta.annotations["muster.dev/owner-uid"] = std::to_string(id % users);
  if (gang) object->meta.annotations["muster.dev/gang"] = "true";
  return object;
}

// A CPU for each slot.
void add_nodes(Slots& slots, NodeId nodes, uint32_t slots_each) {
  for (NodeId id = 1; id <= nodes; ++id) {
    core::NodeInfo info;
    info.id = id;
    info.name = "node-" + std::to_string(id);
    info.slots = slots_each;
    info.cpu_millis = uint64_t{1'000} * slots_each;
    info.memory_bytes = 256ull << 30;
    info.health = core::NodeInfo::Health::ready;
    slots.set_node(info);
    slots.set_usable(id, true);
  }
}

class Simulation {
 public:
  Simulation(NodeId nodes, JobId jobs, uint32_t users) : nodes_(nodes), jobs_(jobs) {
    add_nodes(slots_, nodes, kSlots);
    known_.resize(jobs_ + 1);
    for (JobId id = 1; id <= jobs_; ++id) known_[id].object = job_object(id, users, false);
    if (users > 0) gang_ = job_object(jobs_ + 1, users, true);
    for (JobId id = 1; id <= jobs_; ++id) changed_.insert(id);
    want();
  }

  // Returns how many milliseconds it took.
  double decide() {
    const auto begin = Clock::now();
    want();
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
  void want() {
    for (const JobId id : changed_)
      slots_.want(id, kWanted, known_[id].received, known_[id].object);
    if (gang_) slots_.want(jobs_ + 1, nodes_ * kSlots / 10, 0, gang_);
    changed_.clear();
  }

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

enum class Arrives { pods, gangs, one_gang };

// Every node is full of pods of jobs that want more.
class Crowd {
 public:
  Crowd(NodeId nodes, JobId jobs, uint32_t users, Arrives arrives)
      : nodes_(nodes), jobs_(jobs), arrives_(arrives) {
    add_nodes(slots_, nodes, kSmall);
    for (JobId id = 1; id <= jobs; ++id) {
      known_[id].object = job_object(id, users, false, 1);
      std::map<NodeId, uint32_t>& held = known_[id].held;
      for (uint32_t i = 0; i < nodes * kSmall / jobs; ++i)
        ++held[1 + static_cast<NodeId>((id + i * jobs) % nodes)];
      slots_.hold(id, known_[id].object, held);
      slots_.want(id, 1'000, 0, known_[id].object);
      // So that it is known how long its pods run, about.
      slots_.freed(id, {}, {}, {1, 60'000 + static_cast<Millis>(chance_() % 600'000)}, now_);
    }
  }

  // A round in which some pods end and others arrive. Returns how many milliseconds the decision
  // took.
  double decide(int number) {
    for (int i = 0; i < 20; ++i) end_one();
    if (arrives_ == Arrives::pods || (arrives_ == Arrives::gangs && number % 20 == 0) ||
        number == 0)
      arrive();
    const auto begin = Clock::now();
    Slots::Round round = slots_.place(now_ += kStepMs);
    const double ms = ms_since(begin);
    for (const auto& [job, node, count] : round.grants) {
      Job& one = known_.at(job);
      one.held[node] += count;
      one.received += count;
      placed_ += job > jobs_ ? count : 0;
      slots_.want(job, job > jobs_ ? one.pending -= count : 1'000, one.received, one.object);
    }
    for (const auto& [job, nodes] : round.victims)
      for (const auto& [node, count] : nodes) {
        preempted_ += count;
        end(job, node, count);
      }
    return ms;
  }
  uint64_t placed() const { return placed_; }  // pods that have arrived
  uint64_t preempted() const { return preempted_; }

 private:
  struct Job {
    core::JobObjectPtr object;
    uint32_t pending = 0;
    uint64_t received = 0;
    std::map<NodeId, uint32_t> held;
  };
  void end(JobId job, NodeId node, uint32_t count) {
    uint32_t& held = known_.at(job).held.at(node);
    if ((held -= count) == 0) known_.at(job).held.erase(node);
    slots_.freed(job, {{node, count}}, {}, {}, now_);
  }
  void end_one() {
    const JobId job = 1 + chance_() % jobs_;
    const auto& held = known_.at(job).held;
    auto at = held.lower_bound(1 + static_cast<NodeId>(chance_() % nodes_));
    if (at == held.end()) at = held.begin();
    if (at != held.end()) end(job, at->first, 1);
  }
  void arrive() {
    const JobId id = jobs_ + ++arrived_;
    auto object =
        std::make_shared<core::JobObject>(*job_object(id, 0, arrives_ != Arrives::pods, kSmall));
    if (arrives_ != Arrives::one_gang) object->spec.pod.priority = 10;
    const uint32_t pods = arrives_ == Arrives::pods ? 1 : nodes_ / 100;
    known_[id] = {object, pods, 0, {}};
    slots_.want(id, pods, 0, object);
  }

  const NodeId nodes_;
  const JobId jobs_;
  const Arrives arrives_;
  Slots slots_;
  std::map<JobId, Job> known_;
  std::mt19937_64 chance_{1};
  Millis now_ = 1'000;
  JobId arrived_ = 0;
  uint64_t placed_ = 0, preempted_ = 0;
};

void run_crowd(NodeId nodes, JobId jobs, uint32_t users, Arrives arrives) {
  constexpr const char* kWhat[] = {"pods of whole nodes", "gangs of whole nodes",
                                   "a gang that waits"};
  Crowd crowd(nodes, jobs, users, arrives);
  crowd.decide(0);  // as at a start
  std::vector<double> ms;
  for (int i = 1; i < 4 * kDecisions; ++i) ms.push_back(crowd.decide(i));
  std::sort(ms.begin(), ms.end());
  std::printf("%8u %12u %8llu %8u %20s %8.2f %8.2f %8.2f %10llu %10llu\n", nodes, nodes * kSmall,
              static_cast<unsigned long long>(jobs), users, kWhat[static_cast<int>(arrives)],
              ms[ms.size() / 2], ms[ms.size() * 99 / 100], ms.back(),
              static_cast<unsigned long long>(crowd.placed()),
              static_cast<unsigned long long>(crowd.preempted()));
  std::fflush(stdout);
}

}  // namespace
}  // namespace muster

int main() {
  std::printf("%8s %12s %8s %8s %14s %12s %12s %14s\n", "nodes", "slots", "jobs", "users",
              "first, ms", "p50, ms", "p99, ms", "pods/s");
  for (muster::NodeId nodes : {10u, 100u, 1'000u, 10'000u}) muster::run(nodes, 3, 0);
  for (muster::NodeId nodes : {100u, 1'000u, 10'000u}) muster::run(nodes, 10'000, 1'000);
  std::printf("\n%8s %12s %8s %8s %20s %8s %8s %8s %10s %10s\n", "nodes", "slots", "jobs", "users",
              "what comes", "p50, ms", "p99, ms", "most, ms", "placed", "preempted");
  for (muster::NodeId nodes : {1'000u, 10'000u})
    for (const auto arrives :
         {muster::Arrives::pods, muster::Arrives::gangs, muster::Arrives::one_gang})
      muster::run_crowd(nodes, 10'000, 1'000, arrives);
  return 0;
}
