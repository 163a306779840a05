// Nodes that start nothing: when one is closed, what it gets then, and when it is open again
// (start_watch.hpp).
#include "core/cluster/rules/turn.hpp"
#include "core/spec/values/duration.hpp"

#include <algorithm>

namespace muster::core::cluster {
namespace {

// After this time, a probe that nobody could use is the whole node: pods that start together, or
// take several slots, fit into no single one.
constexpr Millis kProbeUnusedMs = 60'000;

}  // namespace

void Turn::note_failed_starts(const Freed& event) {
  for (const auto& [id, failed] : event.failed_starts) {
    const Cluster::Node* node = cluster.node(id);
    if (!node || node->info.gone) continue;
    record(StartsFailed{id, job_of(event.job), event.user, failed.pods, failed.why, now.up_ms});
  }
}

// Both counts are of the same session.
void Turn::note_started(NodeId id, std::optional<uint64_t> before, std::optional<uint64_t> now_is) {
  if (!before || !now_is || *now_is <= *before) return;
  reopen(id, "a pod has started there");
}

void Turn::reopen(NodeId id, const std::string& why) {
  const StartWatch& starts = cluster.node(id)->starts;
  const bool closed = starts.closed();
  if (!closed && starts.failed.empty()) return;
  record(StartsCleared{id, now.wall_ms});
  if (!closed) return;
  log(Log::Level::info, named(id) + " gets pods again: " + why);
  show(id);
  place_soon();
}

void Turn::judge_starts() {
  std::vector<std::pair<NodeId, JobId>> old;
  std::vector<std::pair<NodeId, std::string>> black;
  bool probe = false;
  for (const auto& [id, node] : cluster.nodes()) {
    const StartWatch& starts = node.starts;
    if (node.info.gone || (starts.failed.empty() && !starts.closed())) continue;
    if (starts.closed()) {
      probe |= starts.probe_up_ms <= now.up_ms;
      continue;
    }
    for (const auto& [job, of] : starts.failed)
      if (of.last_ms + StartWatch::kForgetMs <= now.up_ms) old.emplace_back(id, job);
    // An agent that does not say what starts could never show that the node has recovered.
    if (!starts.started) continue;
    if (std::string why = starts.verdict(); !why.empty()) black.emplace_back(id, std::move(why));
  }
  for (auto [id, job] : old) record(StartsForgiven{id, job});
  for (auto& [id, why] : black) {
    const StartWatch& starts = cluster.node(id)->starts;
    if (starts.verdict().empty()) continue;  // it was of what is old
    log(Log::Level::warn, named(id) + " gets no new pods (StartsFailing): " + why +
                              (starts.owned() ? ": " + starts.why : "") +
                              "; one is let through in " + duration_text(StartWatch::kProbeMinMs));
    record(NodeClosed{id, std::move(why), now.up_ms + StartWatch::kProbeMinMs, now.wall_ms});
    show(id);
  }
  if (probe) place_soon();
}

std::map<NodeId, uint32_t> Turn::let_probes_through() {
  std::map<NodeId, uint32_t> probed;
  Slots& slots = cluster.slots();
  for (const NodeId id : cluster.closed()) {
    const Cluster::Node& node = *cluster.node(id);
    if (node.starts.probe_up_ms > now.up_ms) continue;
    const uint32_t used = slots.used(id);
    if (!node.link || !is_healthy(node.info) || used >= node.info.slots) continue;
    NodeInfo narrow = node.info;
    if (now.up_ms < node.starts.probe_up_ms + kProbeUnusedMs) narrow.slots = used + 1;
    slots.set_node(narrow);
    slots.set_usable(id, true);
    probed.emplace(id, used);
  }
  return probed;
}

void Turn::close_after(const std::map<NodeId, uint32_t>& probed) {
  Slots& slots = cluster.slots();
  for (auto [id, used] : probed) {
    const Cluster::Node& node = *cluster.node(id);
    slots.set_node(node.info);
    slots.set_usable(id, false);
    if (slots.used(id) <= used) continue;
    const Millis wait_ms = node.starts.next_wait_ms();
    const uint32_t more = slots.used(id) - used;
    log(Log::Level::info, named(id) + " gets " +
                              (more == 1 ? "one pod" : std::to_string(more) + " pods") +
                              ", to see whether " + (more == 1 ? "it starts" : "they start") +
                              "; the next in " + duration_text(wait_ms));
    record(ProbeSent{id, wait_ms, now.up_ms + wait_ms});
  }
}

void Turn::forgive(JobId job) {
  std::vector<NodeId> blamed;
  for (const auto& [id, node] : cluster.nodes())
    if (!node.info.gone && node.starts.failed.contains(job)) blamed.push_back(id);
  for (NodeId id : blamed) {
    record(StartsForgiven{id, job});
    const StartWatch& starts = cluster.node(id)->starts;
    if (starts.closed() && starts.verdict().empty())
      reopen(id, "the job whose pods did not start there cannot start anywhere");
  }
}

}  // namespace muster::core::cluster
