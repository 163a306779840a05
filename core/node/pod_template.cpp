#include "core/node/pod_template.hpp"

#include <algorithm>
#include <utility>

namespace muster::core::node {

namespace {

// Whether it runs beside all later containers.
bool stays(const PodTemplate& job, size_t container) {
  return container >= job.init_containers ||
         std::find(job.sidecars.begin(), job.sidecars.end(), container) != job.sidecars.end();
}

}  // namespace

uint32_t whole_cpus(uint64_t request_millis, uint64_t limit_millis) {
  if (limit_millis != 0 && limit_millis != request_millis) return 0;
  if (request_millis % 1000 != 0 || request_millis / 1000 > kCpuNumberMax) return 0;
  return static_cast<uint32_t>(request_millis / 1000);
}

PodPlanPtr plan_of(const PodTemplate& job, const HookLimits& hooks) {
  DeviceCounts beside, devices;
  std::vector<DeviceCounts> inits;  // of each other init container, with the sidecars before it
  for (size_t i = 0; i < job.containers.size(); ++i) {
    if (!stays(job, i)) inits.push_back(beside);
    DeviceCounts& counts = stays(job, i) ? beside : inits.back();
    for (const auto& [name, count] : job.containers[i].devices) counts[name] += count;
  }
  devices = beside;
  for (const DeviceCounts& init : inits)
    for (const auto& [name, count] : init) devices[name] = std::max(devices[name], count);
  bool plain = !job.restarts && job.init_containers == 0 && job.containers.size() <= 1 &&
               !job.active_deadline_ms && !job.fence_after_ms && devices.empty() &&
               job.mpi.empty() && job.volumes.empty() && !job.private_tmp && !hooks.prolog_ms &&
               !hooks.epilog_ms;
  if (plain) return nullptr;
  return std::make_shared<const PodPlan>(
      PodPlan{.init_containers = static_cast<uint16_t>(job.init_containers),
              .sidecars = job.sidecars,
              .containers = static_cast<uint16_t>(job.containers.size() - job.init_containers),
              .restarts = job.restarts,
              .restart_delay_ms = job.restart_delay_ms,
              .deadline_ms = job.active_deadline_ms,
              .signal = job.signal,
              .fence_after_ms = job.fence_after_ms,
              .prolog_ms = hooks.prolog_ms,
              .epilog_ms = hooks.epilog_ms,
              .devices = std::move(devices)});
}

DeviceMap devices_of(const PodTemplate& job, size_t container, const DeviceMap& of_pod) {
  DeviceMap out;
  for (const auto& [name, count] : job.containers[container].devices) {
    auto held = of_pod.find(name);
    if (held == of_pod.end()) continue;
    size_t from = 0;
    for (size_t i = 0; i < container; ++i) {
      if (!stays(job, i)) continue;
      auto other = job.containers[i].devices.find(name);
      if (other != job.containers[i].devices.end()) from += other->second;
    }
    const auto& numbers = held->second;
    from = std::min(from, numbers.size());
    size_t to = std::min(from + count, numbers.size());
    out[name].assign(numbers.begin() + static_cast<ptrdiff_t>(from),
                     numbers.begin() + static_cast<ptrdiff_t>(to));
  }
  return out;
}

}  // namespace muster::core::node
