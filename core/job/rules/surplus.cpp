// Removes surplus pods, which count nowhere (job-semantics 4.3, 4.4).
#include "core/job/rules/sync.hpp"

#include <tuple>

namespace muster::core {

namespace {

// Lower ranks are removed first: not assigned to a node, not running, not ready, ready for a
// shorter time, more restarts, newer. The rest of the key makes the order total.
auto rank(const Pod& pod) {
  return std::make_tuple(pod.bound(), pod.started_at.has_value(), pod.ready(),
                         pod.ready() ? -*pod.started_at : 0, -pod.restarts, -pod.created_ms,
                         -static_cast<int64_t>(pod.key.index), pod.key);
}

}  // namespace

std::vector<PodKey> removal_order(const Job& job, uint32_t number, NodeId only, Steps steps) {
  std::vector<const Pod*> active;
  for (const auto& [key, pod] : job.state().open)
    if (pod.active() && (only == kNoNode || (pod.node == only && pod.steps == steps)))
      active.push_back(&pod);
  auto cut = active.begin() + std::min<size_t>(number, active.size());
  std::partial_sort(active.begin(), cut, active.end(),
                    [](const Pod* a, const Pod* b) { return rank(*a) < rank(*b); });
  std::vector<PodKey> keys;
  for (auto it = active.begin(); it != cut; ++it) keys.push_back((*it)->key);
  return keys;
}

std::set<NodeId> nodes_of_active(const Job& job) {
  std::set<NodeId> nodes;
  for (const auto& [key, pod] : job.state().open)
    if (pod.bound() && pod.active()) nodes.insert(pod.node);
  return nodes;
}

void stop_pods(Sync& sync, std::vector<PodsStopping::One> pods) {
  if (pods.empty()) return;
  std::vector<PodKey> stopped;
  for (const auto& one : pods) stopped.push_back(one.pod);
  sync.emit(PodsStopping{sync.now, std::move(pods), true, sync.state().backoff_failures,
                         sync.state().backoff_last_ms});
  kill_pods(sync, stopped);
}

void kill_pods(Sync& sync, const std::vector<PodKey>& pods) {
  KillPods kill = sync.job.kills(pods);
  if (!kill.pods.empty()) sync.order(std::move(kill));
}

bool remove_surplus(Sync& sync, uint32_t target) {
  const Job& job = sync.job;
  const JobState& s = sync.state();
  std::vector<PodsStopping::One> gone;
  if (job.indexed())  // out of range: always
    for (auto it = s.open.lower_bound({static_cast<uint32_t>(job.index_count()), 0});
         it != s.open.end(); ++it)
      if (it->second.active()) gone.push_back({it->first, Counted::released, false, std::nullopt});
  // Pods without a node are the first to go.
  const bool finishes = sync.knobs.surplus_finishes && !job.gang().together;
  const auto excess = [&job, target, finishes] {
    const uint32_t active = job.active();
    const size_t removable = finishes ? job.pending().size() : active;
    return static_cast<uint32_t>(std::min<size_t>(active - std::min(active, target), removable));
  };
  // A pod that has ended on its own is not surplus.
  if ((!gone.empty() || excess() > 0) && !sync.knows_ends(nodes_of_active(job))) return false;
  stop_pods(sync, gone);
  bool removed = !gone.empty();
  if (const uint32_t number = excess(); number > 0) {
    std::vector<PodsStopping::One> surplus;
    for (PodKey key : removal_order(job, number))
      surplus.push_back({key, Counted::released, false, std::nullopt});
    std::sort(surplus.begin(), surplus.end(),
              [](const auto& a, const auto& b) { return a.pod < b.pod; });
    stop_pods(sync, std::move(surplus));
    removed = true;
  }
  return removed;
}

}  // namespace muster::core
