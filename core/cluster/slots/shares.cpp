// What jobs, users and queues hold, in slots of the cluster, and their weights.
#include "core/cluster/slots/slots.hpp"

#include <algorithm>

namespace muster::core {

namespace {

// How often what users hold is added to their use.
constexpr Millis kNoteUseMs = 1'000;

}  // namespace

// Of a pod, in slots of the whole cluster: the resource of which it takes the largest part counts.
double Slots::cost(const Demand& demand) const {
  if (demand.amounts.none()) return 1;
  double part = 0;
  auto count = [&part](int64_t one, int64_t all) {
    if (one > 0 && all > 0) part = std::max(part, static_cast<double>(one) / all);
  };
  count(demand.amounts.cpu_millis, all_.cpu_millis);
  count(demand.amounts.memory_bytes, all_.memory_bytes);
  for (const auto& [name, one] : demand.amounts.named)
    if (auto all = all_.named.find(name); all != all_.named.end()) count(one, all->second);
  return std::max(1.0, part * static_cast<double>(all_slots_));
}

// Before a round: what depends on the nodes that there are and on who is there.
void Slots::note_changes() {
  if (!std::exchange(costs_known_, true)) {
    for (auto& [id, client] : clients_)
      if (!client.need.amounts.none()) waiting_.set_cost(client, cost(client.need));
    recount();
  }
  if (std::exchange(weights_known_, true)) return;
  queue_weights_ = 0;
  for (auto& [name, queue] : queues_) {
    queue.weights = 0;
    if (queue.jobs > 0) queue_weights_ += queue.share.weight;
    for (auto& [user, sharer] : queue.users) {
      if (sharer.jobs == 0) continue;
      sharer.share.weight = user ? use_.weight(*user, active_users_) : 1;
      queue.weights += sharer.share.weight;
    }
  }
}

// Adds up anew what everybody holds and wants, which also ends what rounding has left.
void Slots::recount() {
  for (auto& [name, queue] : queues_) {
    queue.share.held = 0;
    for (auto& [user, sharer] : queue.users) sharer.share.held = 0;
  }
  for (auto& [id, client] : clients_) {
    client.share = client.pods * client.real * client.cost;
    note_share(client);
    client.user->held += client.share;
    client.user->queue->held += client.share;
  }
  waiting_.sum_up();
}

std::map<UserId, double> Slots::held_by_users() const {
  std::map<UserId, double> held;
  const double all = std::max<double>(1, static_cast<double>(all_slots_));
  for (const auto& [id, client] : clients_)
    if (client.owner && client.pods > 0) held[*client.owner] += client.share / all;
  return held;
}

// Prefetched pods hold nothing yet; which of a node's pods those are is not known here.
void Slots::note_use(Millis now) {
  if (use_noted_ms_ && now < *use_noted_ms_ + kNoteUseMs) return;
  bool prefetched = false;
  std::vector<double> parts;  // by node: of its pods that have a slot
  for (const auto& [id, site] : sites_) {
    if (site.used <= site.info.slots) continue;
    prefetched = true;
    parts.resize(sites_.rbegin()->first + size_t{1}, 1);
    parts[id] = double(site.info.slots) / site.used;
  }
  for (auto& [id, client] : clients_) {
    double real = prefetched ? 0 : client.pods;
    if (prefetched)
      for (const Holding& holding : client.places) real += holding.pods * parts[holding.node];
    client.real = client.pods > 0 ? real / client.pods : 1;
    used_ |= client.pods > 0;
  }
  recount();
  if (use_noted_ms_) use_.pass(held_by_users(), now - *use_noted_ms_);
  use_noted_ms_ = now;
  weights_known_ = false;
}

// Whether the job holds at least what an equal division among queues, their users, and its user's
// jobs would give it.
bool Slots::has_its_share(const Client& client) const {
  const double share = static_cast<double>(all_slots_) * client.queue->share.weight /
                       queue_weights_ * client.user->weight / client.queue->weights /
                       static_cast<double>(client.sharer->jobs);
  return client.pods > 0 && client.share >= share;
}

std::vector<Slots::Standing> Slots::standings() const {
  std::map<UserId, Standing> found;
  for (const auto& [user, held] : held_by_users()) found[user].held = held;
  for (const auto& [user, use] : use_.all()) found[user].use = use;
  for (const auto& [id, client] : clients_)
    if (client.owner && client.lacking() > 0) found[*client.owner].waiting += client.lacking();
  size_t active = 0;
  for (const auto& [user, one] : found) active += one.held > 0 || one.waiting > 0;
  std::vector<Standing> standings;
  for (auto& [user, one] : found) {
    one.user = user;
    if (const auto name = names_.find(user); name != names_.end()) one.name = name->second;
    one.weight = use_.weight(user, std::max<size_t>(active, 1));
    standings.push_back(one);
  }
  return standings;
}

}  // namespace muster::core
