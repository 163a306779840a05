// The line of waiting jobs, as far as it is known (expected_start.hpp).
#include "core/cluster/slots/slots.hpp"

namespace muster::core {

namespace {

// Beyond so many places with pods, or waiting jobs, nothing is guessed: looking at them would cost
// too much.
constexpr size_t kLinePlacesMax = 20'000;
constexpr size_t kLineJobsMax = 2'000;

}  // namespace

std::vector<Expectation> Slots::line(Millis now) {
  if (wanting_.size() > kLineJobsMax) return {};
  note_changes();
  std::vector<WaitingJob> jobs;
  for (const JobId id : wanting_)
    if (const Client& client = clients_.at(id); may_have(client)) {
      jobs.push_back(client);
      const auto kept = reservations_.find(id);
      jobs.back().reservation = kept == reservations_.end() ? nullptr : &kept->second;
    }
  if (jobs.empty()) return {};
  std::map<NodeId, std::vector<Ending>> endings;
  size_t places = 0;
  for (const Client* client : by_id()) {
    places += client->places.size();
    if (!client->runs_ms || places > kLinePlacesMax) continue;
    for (const Holding& holding : client->places) {
      // Much later than expected: nothing is known of it any more.
      if (now - holding.since <= 2 * *client->runs_ms)
        endings[holding.node].push_back(
            {ends_at(*client, holding, now), holding.pods, &client->need});
    }
  }
  std::vector<Outlook> nodes;
  for (const auto& [id, site] : sites_) {
    if (!site.usable || places > kLinePlacesMax) continue;
    Outlook one{free_node(site, now), {}};
    one.node.over = site.used > site.info.slots ? site.used - site.info.slots : 0;
    for (const auto& [job, kept] : reservations_) {
      const auto place = kept.find(id);
      const auto client = clients_.find(job);
      if (place == kept.end() || client == clients_.end()) continue;
      one.node.over += place->second - std::min(one.node.free, place->second);
      occupy(one.node, client->second.need, place->second);
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
