// What jobs, users and queues hold, in slots of the cluster, and their weights.
#include "core/cluster/slots/slots.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace muster::core {

namespace {

// How often what users hold is added to their use.
constexpr Millis kNoteUseMs = 1'000;
// A round looks at about this many places for that. Looking at a job costs as much as looking at
// so many places.
constexpr size_t kNotedPerRound = 25'000, kLooksPerJob = 32;

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
      sharer.share.weight = user ? weight_of(queue, *user, active_users_) : 1;
      queue.weights += sharer.share.weight;
    }
  }
}

// Adds up anew what everybody holds and wants.
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

// Of the whole cluster. What rounding leaves of nothing is nothing.
double Slots::part(double slots) const {
  const double part = slots / std::max<double>(1, static_cast<double>(all_slots_));
  return part < RecentUse::kForgotten ? 0 : part;
}

// Of a user among those of the queue, of whom `users` are active in the cluster.
double Slots::weight_of(const InQueue& queue, UserId user, size_t users) const {
  double own = 1;
  if (queue.stored && !queue.stored->user_weights.empty())
    if (const auto name = names_.find(user); name != names_.end()) {
      const auto& weights = queue.stored->user_weights;
      if (const auto found = weights.find(name->second); found != weights.end())
        own = found->second;
    }
  return use_.weight(user, users, own);
}

std::map<UserId, double> Slots::held_by_users() const {
  std::map<UserId, double> held;
  for (const auto& [name, queue] : queues_)
    for (const auto& [user, sharer] : queue.users)
      if (const double part = this->part(sharer.share.held); user && part > 0) held[*user] += part;
  return held;
}

// Prefetched pods hold nothing yet; which of a node's pods those are is not known here. Of many
// jobs, a round looks at a part.
void Slots::note_use(Millis now) {
  if (!noting_) {
    if (use_noted_ms_ && now < *use_noted_ms_ + kNoteUseMs) return;
    noting_ = Noting{};
    for (const auto& [id, site] : sites_) {
      if (site.used <= site.info.slots) continue;
      noting_->parts.resize(sites_.rbegin()->first + size_t{1}, 1);
      noting_->parts[id] = double(site.info.slots) / site.used;
    }
  }
  if (!note_parts(*noting_)) return;
  noting_.reset();
  if (use_noted_ms_) use_.pass(held_by_users(), now - *use_noted_ms_);
  use_noted_ms_ = now;
  weights_known_ = false;
}

// What the next jobs really hold. False: there are more.
bool Slots::note_parts(Noting& noting) {
  if (std::exchange(noting.buckets, clients_.bucket_count()) != clients_.bucket_count())
    noting.next = 0;  // they have moved
  const std::vector<double>& parts = noting.parts;
  for (size_t looks = 0; noting.next < noting.buckets && looks < kNotedPerRound; ++noting.next) {
    for (auto it = clients_.begin(noting.next); it != clients_.end(noting.next); ++it) {
      Client& client = it->second;
      double real = parts.empty() ? client.pods : 0;
      looks += kLooksPerJob;
      if (!parts.empty()) {
        looks += client.places.size();
        for (const Holding& holding : client.places)
          real += holding.pods * (holding.node < parts.size() ? parts[holding.node] : 1);
      }
      client.real = client.pods > 0 ? real / client.pods : 1;
      used_ |= client.pods > 0;
      const double before = std::exchange(client.share, client.pods * client.real * client.cost);
      note_share(client);
      client.user->held += client.share - before;
      client.user->queue->held += client.share - before;
    }
  }
  return noting.next == noting.buckets;
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
  std::unordered_map<const Sharer*, uint64_t> waiting;
  for (const auto& [id, client] : clients_)
    if (const uint32_t lacking = client.lacking(); lacking > 0) waiting[client.sharer] += lacking;
  std::vector<Standing> standings;
  std::set<UserId> users;
  for (const auto& [name, queue] : queues_)
    for (const auto& [user, sharer] : queue.users) {
      const auto wants = waiting.find(&sharer);
      Standing one{.user = user.value_or(0), .queue = name, .held = part(sharer.share.held)};
      if (wants != waiting.end()) one.waiting = wants->second;
      if (!user || (one.held == 0 && one.waiting == 0)) continue;
      one.queue_level = part(queue.share.held) / queue.share.weight;
      one.use = use_.of(*user);
      users.insert(*user);
      standings.push_back(std::move(one));
    }
  for (const auto& [user, use] : use_.all())
    if (!users.contains(user)) standings.push_back({.user = user, .use = use});
  const size_t active = std::max<size_t>(users.size(), 1);
  for (Standing& one : standings) {
    if (const auto name = names_.find(one.user); name != names_.end()) one.name = name->second;
    const auto queue = queues_.find(one.queue);
    one.weight = queue == queues_.end() ? use_.weight(one.user, active)
                                        : weight_of(queue->second, one.user, active);
  }
  return standings;
}

}  // namespace muster::core
