#include "core/cluster/placement.hpp"

#include <algorithm>

namespace muster::core {

namespace {

bool fits(const WaitingJob& job, const FreeNode& node) {
  if (!job.node_selector) return true;
  for (const auto& [key, value] : *job.node_selector) {
    if (!node.labels) return false;
    auto it = node.labels->find(key);
    if (it == node.labels->end() || it->second != value) return false;
  }
  return true;
}

}  // namespace

std::map<JobId, std::map<NodeId, uint32_t>> place(std::vector<FreeNode> nodes,
                                                  std::vector<WaitingJob> jobs) {
  std::map<JobId, std::map<NodeId, uint32_t>> grants;
  std::erase_if(jobs, [](const WaitingJob& j) { return j.wanted == 0; });
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const FreeNode& a, const FreeNode& b) { return a.free > b.free; });
  uint64_t free = 0;
  for (const FreeNode& n : nodes) free += n.free;
  bool progress = true;
  while (progress && free > 0 && !jobs.empty()) {
    progress = false;
    uint64_t share = std::max<uint64_t>(1, free / jobs.size());
    for (WaitingJob& job : jobs) {
      uint64_t left = std::min<uint64_t>({share, job.wanted, free});
      for (FreeNode& node : nodes) {
        if (left == 0) break;
        if (node.free == 0 || !fits(job, node)) continue;
        auto count = static_cast<uint32_t>(std::min<uint64_t>(left, node.free));
        grants[job.job][node.node] += count;
        node.free -= count;
        job.wanted -= count;
        left -= count;
        free -= count;
        progress = true;
      }
    }
    std::erase_if(jobs, [](const WaitingJob& j) { return j.wanted == 0; });
  }
  return grants;
}

}  // namespace muster::core
