#include "core/job/fold/hosts.hpp"

#include <algorithm>

namespace muster::core {

HostList hosts_of(const Job& job) {
  HostList list{job.object_ptr(), 0, {}, {}};
  if (job.finished()) return list;
  const JobState& state = job.state();
  list.count = static_cast<uint32_t>(std::max(
      0, std::min(job.spec().completions.value_or(0), job.spec().parallelism.value_or(1))));
  for (const auto& [key, pod] : state.open) {
    if (!pod.bound() || !pod.active()) continue;
    const HostList::Host host{key, pod.node, pod.started_at.has_value()};
    if (!list.hosts.empty() && list.hosts.back().pod.index == key.index)
      list.hosts.back() = host;
    else
      list.hosts.push_back(host);
  }
  list.over = state.completed;
  list.over.insert_all(state.failed_indexes);
  return list;
}

}  // namespace muster::core
