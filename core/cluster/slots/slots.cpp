#include "core/cluster/slots/slots.hpp"

#include "core/cluster/slots/prefetch.hpp"
#include "core/spec/fields/owner.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace muster::core {

namespace {

// As many ends of a job's pods as its average covers, about.
constexpr uint32_t kRunTimesMax = 64;

// Grants of two calls, of which the second begins at `second`: one for each job and node.
void merge(std::vector<Slots::Granted>& grants, size_t second) {
  const auto key = [](const Slots::Granted& one) { return std::pair(one.job, one.node); };
  std::inplace_merge(grants.begin(), grants.begin() + static_cast<std::ptrdiff_t>(second),
                     grants.end(),
                     [&key](const auto& a, const auto& b) { return key(a) < key(b); });
  size_t kept = 0;
  for (const Slots::Granted& one : grants)
    if (kept > 0 && key(grants[kept - 1]) == key(one))
      grants[kept - 1].pods += one.pods;
    else
      grants[kept++] = one;
  grants.resize(kept);
}

}  // namespace

// ---- nodes

Slots::Site* Slots::site(NodeId node) const {
  return node < site_of_.size() ? site_of_[node] : nullptr;
}

// The next round looks at the node.
void Slots::open(Site& site) {
  if (!site.usable || std::exchange(site.listed, true)) return;
  open_.emplace_back(site.info.id, &site);
}

void Slots::set_node(const NodeInfo& info) {
  Site& site = sites_[info.id];
  if (info.id >= site_of_.size()) site_of_.resize(info.id + size_t{1}, nullptr);
  site_of_[info.id] = &site;
  if (capacity_of(site.info) != capacity_of(info) || site.info.slots != info.slots) {
    all_.add(capacity_of(site.info), -1);
    all_.add(capacity_of(info), 1);
    all_slots_ += info.slots - uint64_t{site.info.slots};
    costs_known_ = false;
  }
  site.info = info;
  if (StringMap labels = labels_of(info); site.labels != labels) {
    site.labels = std::move(labels);
    forget_nodeless();
  }
  set_ends(site, ends_of(info));
  open(site);
  std::vector<Taint> taints;
  for (const Taint& taint : info.spec.taints)
    if (taint.effect == "NoExecute") taints.push_back(taint);
  if (taints == site.taints) return;
  tainted_ += !taints.empty();
  tainted_ -= !site.taints.empty();
  site.taints = std::move(taints);
  site.tainted_ms = 0;  // the next round sets it
  site.look_ms = 0;
}

// What a pod asks of the time that is left is compared only while some node ends or is reserved.
void Slots::set_ends(Site& site, NodeEnds ends) {
  const bool before = ending_ > 0;
  ending_ += ends.any();
  ending_ -= site.ends.any();
  site.ends = std::move(ends);
  site.ending = site.ends.any();  // until the next round knows what is over
  if (before == (ending_ > 0)) return;
  for (auto& [id, client] : clients_) {
    client.need.stay = ending_ > 0 ? stay_of(*client.object) : Stay{};
    waiting_.set_kind(client);
  }
}

void Slots::set_usable(NodeId node, bool usable) {
  Site* s = site(node);
  if (!s || std::exchange(s->usable, usable) == usable) return;
  if (usable) open(*s);
}

void Slots::remove_node(NodeId node) {
  Site* gone = site(node);
  if (!gone) return;
  std::vector<Client*> changed = gone->tenants;
  places_ -= changed.size();
  for (Client* tenant : changed) {
    count_pods(*tenant, -int64_t{tenant->places.find(node)->pods});
    tenant->places.erase(node);
    tenant->leaving.erase(node);
  }
  for (auto it = avoiding_.begin(); it != avoiding_.end();) {
    Client& client = clients_.at(*it);
    const bool avoided = client.avoid_until.erase(node) > 0;
    if (avoided) {
      client.need.avoids.erase(node);
      waiting_.set_kind(client);
      changed.push_back(&client);
    }
    it = client.avoid_until.empty() ? avoiding_.erase(it) : std::next(it);
  }
  tainted_ -= !gone->taints.empty();
  set_ends(*gone, {});
  all_.add(capacity_of(gone->info), -1);
  all_slots_ -= gone->info.slots;
  costs_known_ = false;
  std::erase(open_, std::pair(node, gone));
  forget_nodeless();
  site_of_[node] = nullptr;
  sites_.erase(node);
  for (auto& [job, places] : reservations_)
    if (places.erase(node) > 0) changed.push_back(&clients_.at(job));
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  for (Client* client : changed) {
    settle(*client);
    forget_idle(*client);
  }
}

uint32_t Slots::used(NodeId node) const {
  const Site* s = site(node);
  return s ? s->used : 0;
}

// ---- jobs

Slots::Client& Slots::client(JobId job) {
  Client& client = clients_[job];
  client.job = job;
  client.turn = job;
  client.demand = &client.need;
  return client;
}

Slots::Uncounted Slots::uncount(Client& client) {
  const Uncounted was{client.pods, client.short_since};
  set_short_since(client, std::nullopt);
  count_pods(client, -int64_t{client.pods});
  const uint32_t pending = std::exchange(client.pending, 0);
  settle(client);
  client.pending = pending;
  return was;
}

void Slots::count_again(Client& client, const Uncounted& was) {
  client.share = 0;
  enrol(client);
  client.cost = cost(client.need);
  waiting_.set_kind(client);
  count_pods(client, was.pods);
  settle(client);
  if (client.line) set_short_since(client, was.since);
}

void Slots::learn(Client& client, const JobObjectPtr& object) {
  if (client.object == object) return;
  Uncounted was;
  Demand demand = demand_of(*object);
  if (client.object) {
    was = uncount(client);
    for (const Holding& holding : client.places)
      if (Site* s = site(holding.node)) {
        s->taken.add(client.need.amounts, -int64_t{holding.pods});
        s->taken.add(demand.amounts, holding.pods);
        s->look_ms = 0;
      }
  }
  client.object = object;
  client.facts = owner_of(object->meta.annotations);
  client.owner = owner_uid(object->meta.annotations);
  if (const auto name = object->meta.annotations.find(std::string(kOwnerKey));
      client.owner && name != object->meta.annotations.end())
    names_[*client.owner] = name->second;
  demand.avoids = std::move(client.need.avoids);
  if (ending_ == 0) demand.stay = {};
  client.template_priority = demand.priority;
  client.template_preempts = demand.preempts;
  client.need = std::move(demand);
  const bool arranged = client.need.gang || client.need.placement != PlacementChoice::usual;
  client.held = arranged ? &client.places : nullptr;
  set_runs(client, runs_ms(client));
  count_again(client, was);
}

// Keeps the books after a change in what the job wants or holds.
void Slots::settle(Client& client) {
  const uint32_t wanted = client.barred ? 0 : client.lacking();
  client.begun = !client.pack && client.need.gang && client.pods > 0;
  if ((wanted > 0) != (client.line != nullptr)) {
    for (Allowance* limit : client.limits)
      if (limit) limit->waiting += wanted > 0 ? 1 : -1;
    if (wanted > 0) {
      client.wanted = wanted;
      waiting_.add(client);
      wanting_.insert(client.job);
      if (client.needs_much() && !client.short_since) fresh_.push_back(client.job);
    } else {
      waiting_.remove(client);
      wanting_.erase(client.job);
      set_short_since(client, std::nullopt);
    }
  }
  if (client.line)
    waiting_.set_wanted(client, wanted);
  else
    client.wanted = 0;
  if (client.kept > 0 || !reservations_.empty()) count_kept(client);
  const bool active = client.pods > 0 || wanted > 0;
  if (std::exchange(client.active, active) != active) {
    const bool was = client.person->jobs > 0, others = client.sharer->jobs > 0;
    for (size_t* jobs : {&client.person->jobs, &client.sharer->jobs, &client.queue->jobs})
      *jobs += active ? 1 : -1;
    active_users_ += client.person->jobs > 0;
    active_users_ -= was;
    // What rounding has left of nothing.
    if (client.sharer->jobs == 0) client.sharer->share.held = 0;
    if (client.queue->jobs == 0) client.queue->share.held = 0;
    if ((client.sharer->jobs > 0) != others) weights_known_ = false;
  }
  std::optional<int32_t> rank;
  if (client.asked && client.pods > 0)
    rank = client.line ? client.line->priority : client.need.priority;
  if (rank == client.rank) return;
  if (client.rank && --ranks_[*client.rank] == 0) ranks_.erase(*client.rank);
  if (rank) ++ranks_[*rank];
  client.rank = rank;
}

// Of what count_pods() has counted.
void Slots::take(Client& client, NodeId node, uint32_t count, Millis now) {
  Site* s = site(node);
  if (!s) return;
  s->used += count;
  s->look_ms = 0;
  if (!is_plain(client)) s->taken.add(client.need.amounts, count);
  Holding& holding = client.places.at(node);
  if (holding.pods == 0) {
    s->tenants.push_back(&client);
    ++places_;
  }
  holding.pods += count;
  holding.since = now;
}

void Slots::release(Client& client, NodeId node, uint32_t count) {
  Holding* held = client.places.find(node);
  if (!held) return;
  count = std::min(count, held->pods);
  if (Site* s = site(node)) {
    s->used -= count;
    if (count == held->pods) places_ -= std::erase(s->tenants, &client);
    if (!is_plain(client)) s->taken.add(client.need.amounts, -int64_t{count});
    open(*s);
  }
  count_pods(client, -int64_t{count});
  if ((held->pods -= count) == 0) client.places.erase(node);
  if (client.leaving.empty()) return;
  auto leaving = client.leaving.find(node);
  if (leaving == client.leaving.end()) return;
  leaving->second.first -= std::min(leaving->second.first, count);
  if (leaving->second.first == 0) client.leaving.erase(leaving);
}

void Slots::hold(JobId job, const JobObjectPtr& object, const std::map<NodeId, uint32_t>& slots) {
  Client& holder = client(job);
  learn(holder, object);
  for (auto [node, count] : slots) {
    if (!site(node) || count == 0) continue;
    count_pods(holder, count);
    take(holder, node, count, 0);
  }
  settle(holder);
  forget_idle(holder);
}

void Slots::want(JobId job, uint32_t pending, uint64_t received, const JobObjectPtr& object) {
  auto it = clients_.find(job);
  if (it == clients_.end() && pending == 0) return;
  const bool fresh = it == clients_.end();
  Client& wants = fresh ? client(job) : it->second;
  if (fresh) wants.granted = received;  // it was forgotten while nothing was in flight
  learn(wants, object);
  if (!std::exchange(wants.asked, true) && tainted_ > 0)
    for (const Holding& one : wants.places) site(one.node)->look_ms = 0;
  wants.pending = pending;
  wants.received = received;
  settle(wants);
  if (!wants.line) drop_reservation(job);
  forget_idle(wants);
}

void Slots::freed(JobId job, const std::map<NodeId, uint32_t>& slots, const QuickEndsOfNodes& quick,
                  const RunTimes& ran, Millis now) {
  auto it = clients_.find(job);
  if (it == clients_.end()) return;
  Client& client = it->second;
  RunTimes& known = client.ran;
  if (ran.count > 0 && known.count >= kRunTimesMax) known = {known.count / 2, known.total_ms / 2};
  known.add(ran);
  set_runs(client, runs_ms(client));
  for (auto [node, count] : slots) release(client, node, count);
  for (const auto& [node, ends] : quick)
    if (Site* s = site(node)) {
      s->quick.emplace_back(now, ends);
      s->recent.count += ends.count;
      s->recent.ran_ms += ends.ran_ms;
      open(*s);
    }
  settle(client);
  forget_idle(client);
}

void Slots::avoid(JobId job, const std::vector<NodeId>& nodes, Millis now) {
  auto it = clients_.find(job);
  if (it == clients_.end() || nodes.empty()) return;
  Client& client = it->second;
  for (NodeId node : nodes) {
    client.avoid_until[node] = now + kAvoidMs;
    client.need.avoids.insert(node);
  }
  client.told_nowhere = false;
  avoiding_.insert(job);
  waiting_.set_kind(client);
}

void Slots::left(JobId job) {
  auto it = clients_.find(job);
  if (it == clients_.end()) return;
  Client& client = it->second;
  while (!client.places.empty()) release(client, client.places.begin()->node, UINT32_MAX);
  client.pending = 0;
  client.received = client.granted;
  client.avoid_until.clear();
  settle(client);
  drop_reservation(job);
  forget_idle(client);
}

// Whether a job of the line could get something, were there room.
bool Slots::any_may_have(const Line& line) const {
  auto may = [](const WaitingJob* job) { return job->wanted > 0 && may_have(*job); };
  for (const auto* packs : {&line.plain, &line.others})
    for (const auto& [key, pack] : *packs)
      if (!is_full(*pack.jobs.front()) && std::any_of(pack.jobs.begin(), pack.jobs.end(), may))
        return true;
  return std::any_of(line.gangs.begin(), line.gangs.end(), may);
}

bool Slots::lacks() const {
  return std::any_of(waiting_.lines().begin(), waiting_.lines().end(),
                     [this](const auto& one) { return any_may_have(one.second); });
}

bool Slots::must_share(JobId job) const {
  const auto found = clients_.find(job);
  if (found == clients_.end() || found->second.barred) return true;
  const Client& client = found->second;
  return std::any_of(client.limits.begin(), client.limits.end(), [&client](const Allowance* limit) {
    return limit && limit->limited && (limit->over() || limit->waiting > (client.line ? 1 : 0));
  });
}

bool Slots::is_limited(JobId job) const {
  const auto found = clients_.find(job);
  return found != clients_.end() && (found->second.limited || found->second.barred);
}

bool Slots::may_keep(JobId job) const {
  const Client& client = clients_.at(job);
  if (client.need.gang || must_share(job)) return false;
  for (const Holding& one : client.places) {
    const Site* s = site(one.node);
    if (!s || !s->usable || s->used > s->info.slots || s->ending ||
        !admits(s->info, s->labels, client.need))
      return false;
  }
  return true;
}

void Slots::forget_idle(Client& client) {
  if (!client.idle()) return;
  avoiding_.erase(client.job);
  leaving_.erase(client.job);
  waiting_.drop_kind(client);
  clients_.erase(client.job);
}

std::vector<Slots::Client*> Slots::by_id() {
  std::vector<Client*> clients;
  for (auto& [id, client] : clients_) clients.push_back(&client);
  std::sort(clients.begin(), clients.end(),
            [](const Client* a, const Client* b) { return a->job < b->job; });
  return clients;
}

// ---- placement

FreeNode Slots::free_node(const Site& site, Millis now) const {
  uint32_t slots = site.info.slots;
  FreeNode entry{site.info.id, slots > site.used ? slots - site.used : 0, capacity_of(site.info),
                 &site.info, &site.labels};
  entry.room.add(site.taken, -1);
  if (site.ending) entry.ends = &site.ends;
  entry.wall_ms = now + wall_ahead_ms_;
  return entry;
}

uint32_t Slots::prefetch_max(Site& site, Millis now) const {
  while (!site.quick.empty() && site.quick.front().first + kPrefetchSpanMs < now) {
    site.recent.count -= site.quick.front().second.count;
    site.recent.ran_ms -= site.quick.front().second.ran_ms;
    site.quick.pop_front();
  }
  return prefetch_of(site.recent, site.info.slots);
}

// Nodes that have neither are left alone until something ends there or they change.
void Slots::find_free(Millis now, std::vector<FreeNode>& free, std::vector<Ahead>& ahead) {
  std::sort(open_.begin(), open_.end());
  free.reserve(open_.size());
  ahead.reserve(open_.size());
  std::erase_if(open_, [&](const auto& one) {
    Site& site = *one.second;
    const uint32_t usual = prefetch_max(site, now);
    const uint32_t most = site.ending ? 0 : usual;  // pods would start later than is decided here
    const uint32_t beyond = site.used > site.info.slots ? site.used - site.info.slots : 0;
    if (!site.usable || (site.used >= site.info.slots && most <= beyond)) {
      site.listed = false;
      return true;
    }
    if (site.used < site.info.slots) free.push_back(free_node(site, now));
    if (most > beyond) ahead.push_back({most - beyond, &site});
    return false;
  });
}

// The one after that of the last round.
JobId Slots::next_served() const {
  const auto next = wanting_.upper_bound(first_served_);
  return next == wanting_.end() ? *wanting_.begin() : *next;
}

// Jobs with a reservation, which they know until the caller is done with them.
std::vector<WaitingJob*> Slots::reserved(Millis now) {
  std::vector<WaitingJob*> jobs;
  for (const auto& [id, places] : reservations_) {
    Client& client = clients_.at(id);
    if (!client.line) continue;
    client.reservation = &places;
    client.starts_in_ms.reset();
    if (id == patient_) client.starts_in_ms = std::max<Millis>(0, lend_until_ms_ - now);
    jobs.push_back(&client);
  }
  // Until when others may use what the limits leave for these.
  const std::vector<WaitingJob*>& all = jobs;
  for (const bool first : {true, false})
    for (const WaitingJob* job : all)
      for (Allowance* limit : job->limits) {
        if (!limit || job->kept == 0) continue;
        const int32_t priority = demand_of(*job).priority;
        const Millis for_ms = job->starts_in_ms.value_or(0);
        Allowance::Kept& kept = limit->kept;
        kept.priority = first ? priority : std::max(kept.priority, priority);
        kept.for_ms = first ? for_ms : std::min(kept.for_ms, for_ms);
      }
  return jobs;
}

// Adds to the grants of the round, which come in order for each call.
void Slots::grant(const std::vector<Placed>& placed, Millis now, Round& round) {
  // In the order of jobs: of what they hold, the most is far from what was used last.
  constexpr size_t kAhead = 8;
  struct Entry {
    JobId job;
    NodeId node;
    uint32_t at;  // in `placed`
    auto operator<=>(const Entry&) const = default;
  };
  std::vector<Entry> order;
  order.reserve(placed.size());
  for (const Placed& one : placed)
    order.push_back({one.job->job, one.node, static_cast<uint32_t>(order.size())});
  std::sort(order.begin(), order.end());
  auto client_of = [&](size_t i) -> Client& {
    return static_cast<Client&>(*placed[order[i].at].job);
  };
  round.grants.reserve(round.grants.size() + placed.size());
  for (size_t i = 0, end; i < order.size(); i = end) {
    Client& client = client_of(i);
    for (end = i; end < order.size() && order[end].job == client.job; ++end) {
      if (end + 2 * kAhead < order.size()) __builtin_prefetch(&client_of(end + 2 * kAhead).places);
      if (end + kAhead < order.size()) {
        client_of(end + kAhead).places.prefetch(order[end + kAhead].node);
        __builtin_prefetch(site(order[end + kAhead].node), 1);
      }
      const auto& [job, node, at] = order[end];
      const uint32_t count = placed[at].pods;
      round.grants.push_back({job, node, count});
      take(client, node, count, now);
      client.granted += count;
      use_reserved(job, node, count);
    }
    client.pause_ms = 0;
    settle(client);
    if (client.line && client.needs_much()) set_short_since(client, now);
    if (!client.line || client.job == patient_) drop_reservation(client.job);  // it has it all
  }
}

void Slots::use_reserved(JobId job, NodeId node, uint32_t count) {
  if (reservations_.empty()) return;
  const auto kept = reservations_.find(job);
  if (kept == reservations_.end()) return;
  auto place = kept->second.find(node);
  if (place == kept->second.end()) return;
  place->second -= std::min(place->second, count);
  if (place->second == 0) kept->second.erase(place);
  if (kept->second.empty()) reservations_.erase(kept);
}

// Notifies jobs that still hold slots there again, since pods may have been bound meanwhile.
void Slots::leave_tainted(Millis now, Round& round) {
  constexpr Millis kNotifyAgainMs = 1'000;
  constexpr Millis kNever = INT64_MAX;
  for (auto& [id, site] : sites_) {
    if (site.taints.empty()) continue;
    if (site.tainted_ms == 0) site.tainted_ms = now;
    if (site.used == 0) continue;
    if (site.look_ms <= now) {
      site.look_ms = kNever;
      for (const Client* client : site.tenants) {
        if (!client->asked) continue;
        auto stay = may_stay(site.info, client->need);
        if (!stay) continue;
        Millis due = std::max(site.tainted_ms + *stay, client->taint_notified_ms + kNotifyAgainMs);
        if (due <= now) {
          round.tainted[client->job].push_back(id);
          due = now + kNotifyAgainMs;
        }
        site.look_ms = std::min(site.look_ms, due);
      }
    }
    if (site.look_ms != kNever) round.again_in(site.look_ms - now);
  }
  for (const auto& [job, nodes] : round.tainted) clients_.at(job).taint_notified_ms = now;
}

// Likewise, for what is on a node that is reserved for others now.
void Slots::leave_reserved(Millis now, Round& round) {
  constexpr Millis kNotifyAgainMs = 1'000;
  const Millis wall = now + wall_ahead_ms_;
  std::set<JobId> told;
  for (auto& [id, site] : sites_) {
    site.ending = is_to_come(site.ends, wall);
    if (site.used == 0 || !is_reserved(site.ends, wall)) continue;
    for (const Client* client : site.tenants) {
      if (!client->asked || !must_leave(site.ends, client->need.stay, wall)) continue;
      const Millis due = client->reserved_notified_ms + kNotifyAgainMs;
      round.again_in(due > now ? due - now : kNotifyAgainMs);
      if (due > now) continue;
      round.tainted[client->job].push_back(id);
      told.insert(client->job);
    }
  }
  for (const JobId job : told) clients_.at(job).reserved_notified_ms = now;
}

// Whether a node that the job does not avoid could ever take one of its pods.
bool Slots::has_somewhere(const Client& client) const {
  return std::any_of(sites_.begin(), sites_.end(), [&client](const auto& one) {
    const Site& site = one.second;
    return site.info.slots > 0 && admits(site.info, site.labels, client.need) &&
           times_in(capacity_of(site.info), client.need.amounts, 1) > 0;
  });
}

void Slots::look_elsewhere(Millis now, Round& round) {
  const std::vector<JobId> jobs(avoiding_.begin(), avoiding_.end());
  for (const JobId job : jobs) {
    Client& client = clients_.at(job);
    if (std::erase_if(client.avoid_until, [&](const auto& one) {
          return one.second <= now && client.need.avoids.erase(one.first) > 0;
        }) > 0)
      waiting_.set_kind(client);
    if (client.avoid_until.empty()) avoiding_.erase(job);
    const bool wants = client.line;
    if (client.idle()) {
      forget_idle(client);
      continue;
    }
    if (!wants) continue;
    if (has_somewhere(client)) {
      for (const auto& [node, until] : client.avoid_until) round.again_in(until - now);
      continue;
    }
    if (!std::exchange(client.told_nowhere, true)) round.nowhere.push_back(job);
    if (client.tried_again_ms && now < *client.tried_again_ms + kNowhereAgainMs) {
      round.again_in(*client.tried_again_ms + kNowhereAgainMs - now);
      continue;
    }
    client.tried_again_ms = now;
    client.avoid_until.clear();
    client.need.avoids.clear();
    avoiding_.erase(job);
    waiting_.set_kind(client);
  }
}

Slots::Round Slots::place(Millis now) {
  Round round;
  if (!first_ms_) first_ms_ = now;
  note_use(now);
  look_elsewhere(now, round);
  if (tainted_ > 0) leave_tainted(now, round);
  if (ending_ > 0) leave_reserved(now, round);
  note_changes();
  // What takes long in a large cluster comes one after the other.
  bool more = noting_.has_value();
  if (!more && patient_ && now >= next_plan_ms_) more = plan_anew(now, round);
  begin_to_wait(now);
  if (more) round.again_in(1);
  if (!lacks()) return round;
  first_served_ = next_served();
  std::vector<FreeNode> free;
  std::vector<Ahead> ahead;
  find_free(now, free, ahead);
  if (!free.empty()) {
    const std::vector<WaitingJob*> first = reserved(now);
    const std::vector<Placed> placed =
        core::place(std::move(free), waiting_, first, first_served_, settings_.placement);
    for (WaitingJob* job : first) job->reservation = nullptr;
    grant(placed, now, round);
  }
  if (!more) more = be_patient(now, round);
  if (!more) preempt(now, round);
  if (more) round.again_in(1);
  const size_t free_slots = round.grants.size();
  if (!ahead.empty()) place_ahead(std::move(ahead), now, round);
  merge(round.grants, free_slots);
  return round;
}

// The nodes that lack most, with as many places as a round fills at most.
std::vector<FreeNode> Slots::first_ahead(std::vector<Ahead> ahead, Millis now, Round& round) const {
  const auto more = [](const Ahead& a, const Ahead& b) {
    return std::pair(b.pods, a.site->info.id) < std::pair(a.pods, b.site->info.id);
  };
  if (ahead.size() > kPrefetchPerRound) {
    const auto end = ahead.begin() + kPrefetchPerRound;
    std::nth_element(ahead.begin(), end, ahead.end(), more);
    ahead.erase(end, ahead.end());
    round.again_in(1);
  }
  std::sort(ahead.begin(), ahead.end(), more);
  std::vector<FreeNode> nodes;
  uint32_t left = kPrefetchPerRound;
  for (const auto& [pods, at] : ahead) {
    if (left < pods) round.again_in(1);
    if (left == 0) break;
    nodes.push_back(free_node(*at, now));
    nodes.back().free = std::min(pods, left);
    left -= nodes.back().free;
  }
  return nodes;
}

void Slots::place_ahead(std::vector<Ahead> ahead, Millis now, Round& round) {
  auto& lines = waiting_.lines();
  const auto top = std::find_if(lines.begin(), lines.end(),
                                [this](const auto& one) { return any_may_have(one.second); });
  if (top == lines.end() || top->second.plain.empty()) return;
  const std::vector<WaitingJob*> first = reserved(now);
  for (const WaitingJob* job : first)
    std::erase_if(
        ahead, [job](const Ahead& one) { return job->reservation->contains(one.site->info.id); });
  std::vector<Placed> placed;
  if (!ahead.empty())
    placed = place_plain(first_ahead(std::move(ahead), now, round), waiting_, top->second, first,
                         first_served_);
  for (WaitingJob* job : first) job->reservation = nullptr;
  grant(placed, now, round);
}

}  // namespace muster::core
