// SlotsPlay: a cluster whose jobs are only counts of waiting and running pods, to test Slots over
// time.
#pragma once

#include "core/cluster/slots/prefetch.hpp"
#include "core/cluster/slots/slots.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace muster::core {

struct SlotsPlay {
  struct JobState {
    JobObjectPtr object;
    uint32_t pending = 0;
    uint64_t received = 0;
    std::map<NodeId, uint32_t> runs;
  };
  explicit SlotsPlay(uint32_t user_pods_max = 0, PlacementChoice site = PlacementChoice::pack)
      : SlotsPlay(SlotsSettings{.user_pods_max = user_pods_max, .placement = site}) {}
  explicit SlotsPlay(SlotsSettings settings) : slots(settings) {}
  Slots slots;
  std::map<NodeId, NodeInfo> nodes;
  std::map<JobId, JobState> jobs;
  Millis now = 1000;
  bool deaf = false;  // preempted pods do not end at once
  std::map<JobId, std::map<NodeId, uint32_t>> notified;

  void node(NodeId id, uint32_t count, uint64_t cpu_millis = 0) {
    NodeInfo info;
    info.id = id;
    info.name = "n" + std::to_string(id);
    info.slots = count;
    info.cpu_millis = cpu_millis;
    nodes[id] = info;
    slots.set_node(info);
    slots.set_usable(id, true);
  }
  void job(JobId id, uint32_t pods, int32_t priority = 0, bool gang = false,
           const std::string& cpu = "", std::optional<uint32_t> owner = {}) {
    jobs[id] = {object_of(priority, gang, cpu, owner), pods, 0, {}};
    want(id);
  }
  static std::shared_ptr<JobObject> object_of(std::optional<int32_t> priority, bool gang,
                                              const std::string& cpu,
                                              std::optional<uint32_t> owner) {
    auto object = std::make_shared<JobObject>();
    object->spec.pod.priority = priority;
    Container container;
    if (!cpu.empty()) container.resources.requests["cpu"] = cpu;
    object->spec.pod.containers.push_back(container);
    if (gang) object->meta.annotations["muster.dev/gang"] = "true";
    if (owner) object->meta.annotations["muster.dev/owner-uid"] = std::to_string(*owner);
    return object;
  }
  void want(JobId id) {
    const JobState& job = jobs.at(id);
    slots.want(id, job.pending, job.received, job.object);
  }
  void receive(const Slots::Granted& granted) {
    const auto& [id, node, count] = granted;
    JobState& job = jobs.at(id);
    job.received += count;
    const uint32_t used = std::min(count, job.pending);
    job.pending -= used;
    if (used > 0) job.runs[node] += used;
    want(id);
    if (count > used) slots.freed(id, {{node, count - used}}, {}, {}, now);
  }
  // `quick_ms`: how long each pod ran; absent if the pods were not short. `ran_ms`: likewise, of
  // all.
  void end(JobId id, NodeId node, uint32_t count, bool again,
           std::optional<Millis> quick_ms = kPrefetchSpanMs, std::optional<Millis> ran_ms = {}) {
    JobState& job = jobs.at(id);
    ASSERT_GE(job.runs[node], count);
    if ((job.runs[node] -= count) == 0) job.runs.erase(node);
    if (again) job.pending += count;
    want(id);
    std::map<NodeId, uint32_t> freed{{node, count}};
    QuickEndsOfNodes ends;
    RunTimes ran;
    if (!ran_ms) ran_ms = quick_ms;
    if (ran_ms) ran = {count, count * *ran_ms};
    if (quick_ms) ends[node] = {count, count * *quick_ms};
    slots.freed(id, freed, ends, ran, now);
  }
  Slots::Round round(Millis later = 100) {
    now += later;
    Slots::Round round = slots.place(now);
    for (const Slots::Granted& granted : round.grants) receive(granted);
    for (const auto& [id, victims] : round.victims)
      for (auto [node, count] : victims) {
        notified[id][node] += count;
        if (!deaf) end(id, node, count, true);
      }
    return round;
  }
  uint64_t running(JobId id) const {
    uint64_t n = 0;
    for (auto [node, count] : jobs.at(id).runs) n += count;
    return n;
  }
  uint64_t victims(JobId id) const {
    uint64_t n = 0;
    if (auto it = notified.find(id); it != notified.end())
      for (auto [node, count] : it->second) n += count;
    return n;
  }
};

}  // namespace muster::core
