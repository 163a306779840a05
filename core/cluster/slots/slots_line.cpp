// The line of waiting jobs, as far as it is known (expected_start.hpp).
#include "core/cluster/slots/slots.hpp"

namespace muster::core {

namespace {

// Beyond so many places with pods, no start is guessed: looking at them would cost too much.
constexpr size_t kLinePlacesMax = 20'000;

}  // namespace

std::vector<Expectation> Slots::line(Millis now) {
  survey();
  std::vector<WaitingJob> jobs = waiting();
  if (jobs.empty()) return {};
  renew_reservations(jobs, now);
  std::map<NodeId, std::vector<Ending>> endings;
  size_t places = 0;
  for (const auto& [id, client] : clients_) {
    places += client.held.size();
    const std::optional<Millis> runs = runs_ms(client);
    if (!runs) continue;
    for (auto [node, count] : client.held) {
      // Much later than expected: nothing is known of it any more.
      if (now - client.since.at(node) <= 2 * *runs)
        endings[node].push_back({ends_at(client, node, now), count, &client.demand});
    }
  }
  std::vector<Outlook> nodes;
  for (const auto& [id, site] : sites_) {
    if (!site.usable || places > kLinePlacesMax) continue;
    Outlook one{free_node(id, site, now), {}};
    one.node.over = site.used > site.info.slots ? site.used - site.info.slots : 0;
    for (const auto& [job, kept] : reservations_) {
      const auto place = kept.find(id);
      const auto client = clients_.find(job);
      if (place == kept.end() || client == clients_.end()) continue;
      one.node.over += place->second - std::min(one.node.free, place->second);
      occupy(one.node, client->second.demand, place->second);
    }
    if (auto found = endings.find(id); found != endings.end())
      one.endings = std::move(found->second);
    nodes.push_back(std::move(one));
  }
  std::vector<Expectation> line = expect(jobs, std::move(nodes), now);
  for (Expectation& one : line)
    if (one.job == patient_) one.start_ms = std::max(start_ms_, now);
  return line;
}

}  // namespace muster::core
