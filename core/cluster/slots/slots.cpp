#include "core/cluster/slots/slots.hpp"

#include "core/cluster/slots/prefetch.hpp"
#include "core/spec/fields/owner.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

namespace muster::core {

namespace {

// A plan moves if it starts sooner by this much, or by an eighth of the time until then.
constexpr Millis kSoonerMs = 100;
// Expected of a pod about which nothing is known, beyond what it has already run.
constexpr Millis kUnknownMs = 3'600'000;
// As many ends of a job's pods as its average covers, about.
constexpr uint32_t kRunTimesMax = 64;
// The longest pause between two plans of a job that fits nowhere.
constexpr Millis kPauseMaxMs = 60'000;
// How often what users hold is added to their use.
constexpr Millis kNoteUseMs = 1'000;

// How long to wait for a victim after its grace, to allow for SIGKILL and the report.
constexpr Millis kReportMs = 30'000;
// Preemption gives up after this many jobs for which it cannot make room.
constexpr int kVainMax = 64;

// Whether a user who may have `left` more pods may have at least one of these; for a gang, all.
bool within(uint32_t left, const Demand& demand, uint32_t wanted) {
  return demand.gang ? wanted <= left : left > 0;
}

}  // namespace

// ---- nodes

Slots::Site* Slots::site(NodeId node) {
  auto it = sites_.find(node);
  return it == sites_.end() ? nullptr : &it->second;
}

void Slots::set_node(const NodeInfo& info) {
  Site& site = sites_[info.id];
  if (capacity_of(site.info) != capacity_of(info) || site.info.slots != info.slots) {
    all_.add(capacity_of(site.info), -1);
    all_.add(capacity_of(info), 1);
    all_slots_ += info.slots - uint64_t{site.info.slots};
    ++all_changes_;
  }
  site.info = info;
  site.labels = labels_of(info);
  set_ends(site, ends_of(info));
  std::vector<Taint> taints;
  for (const Taint& taint : info.spec.taints)
    if (taint.effect == "NoExecute") taints.push_back(taint);
  if (taints == site.taints) return;
  tainted_ += !taints.empty();
  tainted_ -= !site.taints.empty();
  site.taints = std::move(taints);
  site.tainted_ms = 0;  // the next round sets it
}

// What a pod asks of the time that is left is compared only while some node ends or is reserved.
void Slots::set_ends(Site& site, NodeEnds ends) {
  const bool before = ending_ > 0;
  ending_ += ends.any();
  ending_ -= site.ends.any();
  site.ends = std::move(ends);
  site.ending = site.ends.any();  // until the next round knows what is over
  if (before == (ending_ > 0)) return;
  for (auto& [id, client] : clients_)
    client.demand.stay = ending_ > 0 ? stay_of(*client.object) : Stay{};
}

void Slots::set_usable(NodeId node, bool usable) {
  if (Site* s = site(node)) s->usable = usable;
}

void Slots::remove_node(NodeId node) {
  Site* gone = site(node);
  if (!gone) return;
  tainted_ -= !gone->taints.empty();
  set_ends(*gone, {});
  all_.add(capacity_of(gone->info), -1);
  all_slots_ -= gone->info.slots;
  ++all_changes_;
  sites_.erase(node);
  for (auto& [job, places] : reservations_) places.erase(node);
  for (auto it = clients_.begin(); it != clients_.end();) {
    if (const auto held = it->second.held.find(node); held != it->second.held.end()) {
      it->second.pods -= held->second;
      it->second.held.erase(held);
    }
    it->second.since.erase(node);
    it->second.leaving.erase(node);
    it->second.avoid_until.erase(node);
    it->second.demand.avoids.erase(node);
    it = it->second.idle() ? clients_.erase(it) : std::next(it);
  }
}

uint32_t Slots::used(NodeId node) const {
  auto it = sites_.find(node);
  return it == sites_.end() ? 0 : it->second.used;
}

// ---- jobs

void Slots::learn(Client& client, const JobObjectPtr& object) {
  if (client.object == object) return;
  Demand demand = demand_of(*object);
  if (client.object && demand.amounts != client.demand.amounts)  // recount what it holds
    for (auto [node, count] : client.held)
      if (Site* s = site(node)) {
        s->taken.add(client.demand.amounts, -int64_t{count});
        s->taken.add(demand.amounts, count);
      }
  client.object = object;
  client.owner = owner_uid(object->meta.annotations);
  if (const auto name = object->meta.annotations.find(std::string(kOwnerKey));
      client.owner && name != object->meta.annotations.end())
    names_[*client.owner] = name->second;
  client.sharing = &sharing_[client.owner];
  client.costed = 0;
  demand.avoids = std::move(client.demand.avoids);
  if (ending_ == 0) demand.stay = {};
  client.demand = std::move(demand);
}

void Slots::take(Client& client, NodeId node, uint32_t count, Millis now) {
  Site* s = site(node);
  if (!s) return;
  client.pods += count;
  client.since[node] = now;
  s->used += count;
  if (!client.demand.amounts.none()) s->taken.add(client.demand.amounts, count);
  client.held[node] += count;
}

void Slots::release(Client& client, NodeId node, uint32_t count) {
  auto held = client.held.find(node);
  if (held == client.held.end()) return;
  count = std::min(count, held->second);
  if (Site* s = site(node)) {
    s->used -= count;
    if (!client.demand.amounts.none()) s->taken.add(client.demand.amounts, -int64_t{count});
  }
  client.pods -= count;
  if ((held->second -= count) == 0) {
    client.held.erase(held);
    client.since.erase(node);
  }
  auto leaving = client.leaving.find(node);
  if (leaving == client.leaving.end()) return;
  leaving->second.first -= std::min(leaving->second.first, count);
  if (leaving->second.first == 0) client.leaving.erase(leaving);
}

void Slots::hold(JobId job, const JobObjectPtr& object, const std::map<NodeId, uint32_t>& slots) {
  Client& client = clients_[job];
  learn(client, object);
  for (auto [node, count] : slots) take(client, node, count, 0);
  forget_idle(job);
}

void Slots::want(JobId job, uint32_t pending, uint64_t received, const JobObjectPtr& object) {
  if (pending == 0 && !clients_.contains(job)) return;
  auto [it, fresh] = clients_.try_emplace(job);
  Client& client = it->second;
  if (fresh) client.granted = received;  // it was forgotten while nothing was in flight
  client.asked = true;
  learn(client, object);
  client.pending = pending;
  client.received = received;
  if (client.wanted() == 0) {
    drop_reservation(job);
    client.short_since.reset();
  }
  forget_idle(job);
}

void Slots::freed(JobId job, const std::map<NodeId, uint32_t>& slots, const QuickEndsOfNodes& quick,
                  const RunTimes& ran, Millis now) {
  auto it = clients_.find(job);
  if (it == clients_.end()) return;
  RunTimes& known = it->second.ran;
  if (ran.count > 0 && known.count >= kRunTimesMax) known = {known.count / 2, known.total_ms / 2};
  known.add(ran);
  for (auto [node, count] : slots) release(it->second, node, count);
  for (const auto& [node, ends] : quick)
    if (Site* s = site(node)) s->quick.emplace_back(now, ends);
  forget_idle(job);
}

void Slots::avoid(JobId job, const std::vector<NodeId>& nodes, Millis now) {
  auto it = clients_.find(job);
  if (it == clients_.end()) return;
  for (NodeId node : nodes) {
    it->second.avoid_until[node] = now + kAvoidMs;
    it->second.demand.avoids.insert(node);
  }
}

void Slots::left(JobId job) {
  auto it = clients_.find(job);
  if (it == clients_.end()) return;
  while (!it->second.held.empty()) release(it->second, it->second.held.begin()->first, UINT32_MAX);
  drop_reservation(job);
  clients_.erase(it);
}

bool Slots::lacks() {
  if (user_pods_max_ > 0) survey();  // grants have changed what users may have
  return std::any_of(clients_.begin(), clients_.end(), [this](const auto& one) {
    return one.second.wanted() > 0 && may_have(one.second);
  });
}

bool Slots::may_keep(JobId job) const {
  const Client& client = clients_.at(job);
  if (client.demand.gang) return false;
  if (client.owner && user_pods_max_ > 0)
    if (client.sharing->over || client.sharing->wanting > (client.wanted() > 0 ? 1 : 0))
      return false;
  return std::all_of(client.held.begin(), client.held.end(), [&](const auto& held) {
    auto found = sites_.find(held.first);
    if (found == sites_.end()) return false;
    const Site& site = found->second;
    return site.usable && site.used <= site.info.slots && !site.ending &&
           admits(site.info, site.labels, client.demand);
  });
}

void Slots::forget_idle(JobId job) {
  auto it = clients_.find(job);
  if (it != clients_.end() && it->second.idle()) clients_.erase(it);
}

// ---- placement

FreeNode Slots::free_node(NodeId node, const Site& site, Millis now) const {
  uint32_t slots = site.info.slots;
  FreeNode entry{node, slots > site.used ? slots - site.used : 0, capacity_of(site.info),
                 &site.info, &site.labels};
  entry.room.add(site.taken, -1);
  if (site.ending) entry.ends = &site.ends;
  entry.wall_ms = now + wall_ahead_ms_;
  return entry;
}

uint32_t Slots::prefetch_max(Site& site, Millis now) const {
  while (!site.quick.empty() && site.quick.front().first + kPrefetchSpanMs < now)
    site.quick.pop_front();
  QuickEnds recent;
  for (const auto& [at, ends] : site.quick) {
    recent.count += ends.count;
    recent.ran_ms += ends.ran_ms;
  }
  return prefetch_of(recent, site.info.slots);
}

// Counts what users hold and want.
void Slots::survey() {
  for (auto& [user, sharing] : sharing_) sharing = Sharing{{}, 0, 0, user_pods_max_};
  size_t users = 0;
  for (auto& [id, client] : clients_) {
    if (std::exchange(client.costed, all_changes_) != all_changes_)
      client.cost = cost(client.demand);
    const bool wants = client.wanted() > 0;
    if (client.pods == 0 && !wants) continue;
    Sharing& sharing = *client.sharing;
    users += sharing.jobs == 0;
    ++sharing.jobs;
    sharing.wanting += wants;
    sharing.share.held += share_of(client);
    sharing.over = sharing.over || client.pods > sharing.left;
    sharing.left -= std::min(sharing.left, client.pods);
  }
  weights_ = 0;
  for (auto& [user, sharing] : sharing_) {
    if (sharing.jobs == 0) continue;
    if (user) sharing.share.weight = use_.weight(*user, users);
    weights_ += sharing.share.weight;
  }
}

bool Slots::may_have(const Client& client) const {
  if (!client.owner || user_pods_max_ == 0) return true;
  return within(client.sharing->left, client.demand, client.wanted());
}

// Leaves out jobs whose user may have no more pods: they wait for the limit, not for slots.
std::vector<WaitingJob> Slots::waiting() {
  std::vector<WaitingJob> jobs;
  jobs.reserve(clients_.size());
  auto add = [&](JobId id, Client& client) {
    if (client.wanted() == 0 || !may_have(client)) return;
    WaitingJob job{id, client.wanted(), &client.demand};
    job.begun = client.demand.gang && client.pods > 0;
    job.cost = client.cost;
    job.share = share_of(client);
    job.user = &client.sharing->share;
    job.runs_ms = runs_ms(client);
    if (client.demand.placement != PlacementChoice::usual) job.held = &client.held;
    if (client.owner && user_pods_max_ > 0) {
      job.user_left = &client.sharing->left;
      job.wanted = std::min(job.wanted, *job.user_left);
    }
    jobs.push_back(job);
  };
  auto first = clients_.upper_bound(last_served_);
  for (auto it = first; it != clients_.end(); ++it) add(it->first, it->second);
  for (auto it = clients_.begin(); it != first; ++it) add(it->first, it->second);
  return jobs;
}

// They come and go within a round. Jobs whose user may have no more pods by now want nothing.
void Slots::renew_reservations(std::vector<WaitingJob>& jobs, Millis now) const {
  for (WaitingJob& job : jobs) {
    if (job.user_left && !within(*job.user_left, *job.demand, job.wanted)) job.wanted = 0;
    job.reservation = nullptr;
    job.starts_in_ms.reset();
    const auto found = reservations_.find(job.job);
    if (found == reservations_.end()) continue;
    job.reservation = &found->second;
    if (job.job == patient_) job.starts_in_ms = std::max<Millis>(0, lend_until_ms_ - now);
  }
}

void Slots::grant(const Grants& grants, Millis now, Round& round) {
  for (const auto& [job, slots] : grants) {
    Client& client = clients_.at(job);
    for (auto [node, count] : slots) {
      take(client, node, count, now);
      client.granted += count;
      round.grants[job][node] += count;
      if (const auto kept = reservations_.find(job); kept != reservations_.end()) {
        auto place = kept->second.find(node);
        if (place == kept->second.end()) continue;
        place->second -= std::min(place->second, count);
        if (place->second == 0) kept->second.erase(place);
        if (kept->second.empty()) reservations_.erase(kept);
      }
    }
    client.short_since.reset();
    client.pause_ms = 0;
    if (client.wanted() == 0 || job == patient_) drop_reservation(job);  // it has what it needs
  }
}

// Notifies jobs that still hold slots there again, since pods may have been bound meanwhile.
void Slots::leave_tainted(Millis now, Round& round) {
  constexpr Millis kNotifyAgainMs = 1'000;
  for (auto& [id, site] : sites_) {
    if (site.taints.empty()) continue;
    if (site.tainted_ms == 0) site.tainted_ms = now;
    for (auto& [job, client] : clients_) {
      if (!client.asked || !client.held.contains(id)) continue;
      auto stay = may_stay(site.info, client.demand);
      if (!stay) continue;
      Millis due = std::max(site.tainted_ms + *stay, client.taint_notified_ms + kNotifyAgainMs);
      if (due > now) {
        round.again_in(due - now);
        continue;
      }
      round.tainted[job].push_back(id);
      round.again_in(kNotifyAgainMs);
    }
  }
  for (const auto& [job, nodes] : round.tainted) clients_.at(job).taint_notified_ms = now;
}

// Likewise, for what is on a node that is reserved for others now.
void Slots::leave_reserved(Millis now, Round& round) {
  constexpr Millis kNotifyAgainMs = 1'000;
  std::set<JobId> told;
  for (auto& [id, site] : sites_) {
    site.ending = is_to_come(site.ends, now + wall_ahead_ms_);
    if (!site.ending || site.ends.windows.empty()) continue;
    for (auto& [job, client] : clients_) {
      if (!client.asked || !client.held.contains(id) ||
          !must_leave(site.ends, client.demand.stay, now + wall_ahead_ms_))
        continue;
      const Millis due = client.reserved_notified_ms + kNotifyAgainMs;
      round.again_in(due > now ? due - now : kNotifyAgainMs);
      if (due > now) continue;
      round.tainted[job].push_back(id);
      told.insert(job);
    }
  }
  for (const JobId job : told) clients_.at(job).reserved_notified_ms = now;
}

// Whether a node that the job does not avoid could ever take one of its pods.
bool Slots::has_somewhere(const Client& client) const {
  return std::any_of(sites_.begin(), sites_.end(), [&client](const auto& one) {
    const Site& site = one.second;
    return site.info.slots > 0 && admits(site.info, site.labels, client.demand) &&
           times_in(capacity_of(site.info), client.demand.amounts, 1) > 0;
  });
}

void Slots::look_elsewhere(Millis now, Round& round) {
  for (auto it = clients_.begin(); it != clients_.end();) {
    const JobId job = it->first;
    Client& client = it->second;
    if (client.avoid_until.empty()) {
      ++it;
      continue;
    }
    std::erase_if(client.avoid_until, [&](const auto& one) {
      return one.second <= now && client.demand.avoids.erase(one.first) > 0;
    });
    it = client.idle() ? clients_.erase(it) : std::next(it);
    if (!clients_.contains(job) || client.wanted() == 0) continue;
    if (has_somewhere(client)) {
      for (const auto& [node, until] : client.avoid_until) round.again_in(until - now);
      continue;
    }
    client.avoid_until.clear();
    client.demand.avoids.clear();
    round.nowhere.push_back(job);
  }
}

Slots::Round Slots::place(Millis now) {
  Round round;
  if (!first_ms_) first_ms_ = now;
  note_use(now);
  look_elsewhere(now, round);
  if (tainted_ > 0) leave_tainted(now, round);
  if (ending_ > 0) leave_reserved(now, round);
  std::vector<FreeNode> free, ahead;
  for (auto& [id, site] : sites_) {
    uint32_t most = prefetch_max(site, now);
    if (site.ending) most = 0;  // pods would start later than is decided here
    if (!site.usable) continue;
    uint32_t beyond = site.used > site.info.slots ? site.used - site.info.slots : 0;
    if (site.used >= site.info.slots && most <= beyond) continue;
    FreeNode entry = free_node(id, site, now);
    if (entry.free > 0) free.push_back(entry);
    entry.free = most - std::min(most, beyond);
    if (entry.free > 0) ahead.push_back(std::move(entry));
  }
  survey();
  if (patient_ && now >= next_plan_ms_) plan_anew(now);
  std::vector<WaitingJob> jobs = waiting();
  if (jobs.empty()) return round;
  last_served_ = jobs.front().job;
  if (!free.empty()) {
    renew_reservations(jobs, now);
    grant(place_all(std::move(free), jobs), now, round);
  }
  renew_reservations(jobs, now);
  std::erase_if(jobs, [](const WaitingJob& job) { return job.wanted == 0; });
  be_patient(jobs, now, round);
  preempt(jobs, now, round);
  if (!ahead.empty()) place_ahead(std::move(ahead), std::move(jobs), now, round);
  return round;
}

// ---- shares

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

std::map<UserId, double> Slots::held_by_users() const {
  std::map<UserId, double> held;
  const double all = std::max<double>(1, static_cast<double>(all_slots_));
  for (const auto& [id, client] : clients_)
    if (client.owner && client.pods > 0) held[*client.owner] += share_of(client) / all;
  return held;
}

// Prefetched pods hold nothing yet; which of a node's pods those are is not known here.
void Slots::note_use(Millis now) {
  if (use_noted_ms_ && now < *use_noted_ms_ + kNoteUseMs) return;
  for (auto& [id, client] : clients_) {
    double real = 0;
    for (auto [node, count] : client.held)
      if (const Site* s = site(node))
        real += s->used > s->info.slots ? double(count) * s->info.slots / s->used : count;
    client.real = client.pods > 0 ? real / client.pods : 1;
    used_ |= client.pods > 0;
  }
  if (use_noted_ms_) use_.pass(held_by_users(), now - *use_noted_ms_);
  use_noted_ms_ = now;
}

// Whether the job holds at least what an equal division among users, and among its user's jobs,
// would give it.
bool Slots::has_its_share(const Client& client) const {
  const Sharing& own = *client.sharing;
  const double share =
      static_cast<double>(all_slots_) * own.share.weight / weights_ / static_cast<double>(own.jobs);
  return client.pods > 0 && share_of(client) >= share;
}

void Slots::drop_reservation(JobId job) {
  reservations_.erase(job);
  if (job == patient_) patient_.reset();
}

std::vector<Slots::Standing> Slots::standings() const {
  std::map<UserId, Standing> found;
  for (const auto& [user, held] : held_by_users()) found[user].held = held;
  for (const auto& [user, use] : use_.all()) found[user].use = use;
  for (const auto& [id, client] : clients_)
    if (client.owner && client.wanted() > 0) found[*client.owner].waiting += client.wanted();
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

// ---- patience

// Whether all places reserved for the job can still be used.
bool Slots::still_good(JobId job) const {
  const auto kept = reservations_.find(job);
  if (kept == reservations_.end()) return false;
  const Client& client = clients_.at(job);
  uint64_t places = 0;
  for (auto [node, count] : kept->second) {
    auto it = sites_.find(node);
    if (it == sites_.end() || !it->second.usable ||
        !admits(it->second.info, it->second.labels, client.demand))
      return false;
    places += count;
  }
  return places > 0 && (!client.demand.gang || places == client.wanted());
}

// Gives one job at a time a reservation: the one with the highest priority that has waited longest.
// It is served before jobs of equal priority, so they cannot take its places.
void Slots::be_patient(const std::vector<WaitingJob>& waiting, Millis now, Round& round) {
  std::optional<JobId> longest;
  for (const WaitingJob& job : waiting) {
    if (!job.demand->gang && job.demand->amounts.none()) continue;
    Client& client = clients_.at(job.job);
    if (!client.short_since) client.short_since = now;
    if (const Millis due = *client.short_since + kPatienceMs; due > now) {
      round.again_in(due - now);
      continue;
    }
    const bool begun = client.demand.gang && client.pods > 0;
    if (reservations_.contains(job.job) || (!begun && has_its_share(client))) continue;
    if (longest) {
      const Client& other = clients_.at(*longest);
      if (std::pair(-other.demand.priority, *other.short_since) <=
          std::pair(-client.demand.priority, *client.short_since))
        continue;
    }
    longest = job.job;
  }
  if (!longest) return;
  if (patient_ && clients_.at(*longest).demand.priority <= clients_.at(*patient_).demand.priority)
    return;
  if (now < next_plan_ms_) return round.again_in(next_plan_ms_ - now);
  if (patient_) drop_reservation(*patient_);
  patient_ = longest;
  patient_ms_ = now;
  lend_until_ms_ = std::numeric_limits<Millis>::max();
  plan_anew(now);
  if (patient_) return;
  // Nothing fits it: let other jobs try first.
  Client& client = clients_.at(*longest);
  client.pause_ms = std::clamp(2 * client.pause_ms, kPatienceMs, kPauseMaxMs);
  client.short_since = now + client.pause_ms - kPatienceMs;
}

// Keeps the reservation where it is, unless another place is clearly sooner.
void Slots::plan_anew(Millis now) {
  auto it = clients_.find(*patient_);
  if (it == clients_.end() || it->second.wanted() == 0 || !may_have(it->second))
    return drop_reservation(*patient_);
  if (now - patient_ms_ > kUnknownMs) {  // it waits for pods that do not end
    it->second.short_since = now + kUnknownMs;
    return drop_reservation(*patient_);
  }
  Client& client = it->second;
  const std::vector<Outlook> nodes = outlook(client, now);
  const WaitingJob job{it->first, client.wanted(), &client.demand};
  const std::optional<Plan> best = plan(nodes, job, now);
  if (still_good(job.job)) {
    const std::optional<Millis> start_ms = start_of(reservations_.at(job.job), nodes, job, now);
    if (start_ms &&
        (!best || *start_ms - best->start_ms <= std::max(kSoonerMs, (*start_ms - now) / 8))) {
      start_ms_ = *start_ms;
      lend_until_ms_ = std::min(lend_until_ms_, start_ms_);
      return;
    }
  }
  if (!best) return drop_reservation(job.job);
  reservations_[job.job] = best->places;
  start_ms_ = best->start_ms;
  lend_until_ms_ = std::min(lend_until_ms_, start_ms_);
}

// What is free on each node, and when the pods of other jobs are likely to end there.
std::vector<Outlook> Slots::outlook(const Client& client, Millis now) {
  std::map<NodeId, std::vector<Ending>> endings;
  size_t places = 0;
  for (const auto& [id, other] : clients_) {
    if (&other == &client) continue;
    places += other.held.size();
    for (auto [node, count] : other.held)
      endings[node].push_back({ends_at(other, node, now), count, &other.demand});
  }
  next_plan_ms_ = now + kPlanEveryMs + static_cast<Millis>(places / kPlacesPerMs);
  std::vector<Outlook> nodes;
  for (const auto& [id, site] : sites_) {
    if (!site.usable) continue;
    Outlook outlook{free_node(id, site, now), {}};
    outlook.node.over = site.used > site.info.slots ? site.used - site.info.slots : 0;
    if (auto found = endings.find(id); found != endings.end())
      outlook.endings = std::move(found->second);
    nodes.push_back(std::move(outlook));
  }
  return nodes;
}

// By when the job's pods on the node are likely to have ended.
Millis Slots::ends_at(const Client& client, NodeId node, Millis now) const {
  const Millis since = std::max(client.since.at(node), first_ms_.value_or(now));
  const Millis ran_ms = std::max<Millis>(0, now - since);
  const std::optional<Millis> runs = runs_ms(client);
  if (!runs) return now + kUnknownMs + ran_ms;
  // Those that seem to have run longer than expected are expected to run as long again. They may
  // also be later ones: a job need not tell which of its slots it reuses.
  return ran_ms <= *runs ? since + *runs : now + std::min(ran_ms - *runs, *runs);
}

// The average of its recent pods, or at least not longer than their time limit.
std::optional<Millis> Slots::runs_ms(const Client& client) const {
  std::optional<Millis> runs;
  if (const auto limit = client.object->spec.pod.active_deadline_s) runs = *limit * 1000;
  if (client.ran.count > 0) {
    const Millis average = client.ran.total_ms / client.ran.count;
    runs = std::min(average, runs.value_or(average));
  }
  return runs;
}

std::optional<Slots::Awaited> Slots::awaited() const {
  return patient_ ? std::optional(Awaited{*patient_, start_ms_}) : std::nullopt;
}

// ---- preemption

void Slots::preempt(const std::vector<WaitingJob>& all, Millis now, Round& round) {
  if (all.empty()) return;
  int32_t lowest = INT32_MAX;
  for (const auto& [id, client] : clients_)
    if (client.asked && !client.held.empty()) lowest = std::min(lowest, client.demand.priority);
  std::vector<WaitingJob> waiting;
  std::copy_if(all.begin(), all.end(), std::back_inserter(waiting), [lowest](const auto& job) {
    return job.demand->preempts && job.demand->priority > lowest;
  });
  if (!waiting.empty() && preempted_ms_ && now < *preempted_ms_ + kPreemptEveryMs) {
    round.again_in(*preempted_ms_ + kPreemptEveryMs - now);
    return;
  }
  std::erase_if(reservations_, [this](const auto& one) { return one.first != patient_; });
  if (waiting.empty()) return;
  preempted_ms_ = now;

  std::map<NodeId, int64_t> leaving;
  std::map<NodeId, Amounts> freeing;
  std::vector<Holder> holders;
  for (auto& [id, client] : clients_) {
    std::erase_if(client.leaving, [now](const auto& one) { return one.second.second < now; });
    for (auto [node, count] : client.held) {
      auto going = client.leaving.find(node);
      uint32_t gone = going == client.leaving.end() ? 0 : std::min(going->second.first, count);
      if (gone > 0) {
        leaving[node] += gone;
        freeing[node].add(client.demand.amounts, gone);
      }
      if (client.asked && count > gone) holders.push_back({id, node, count - gone, &client.demand});
    }
  }
  std::vector<FreeNode> nodes;
  for (const auto& [id, site] : sites_) {
    if (!site.usable) continue;
    FreeNode node = free_node(id, site, now);
    int64_t free = int64_t{site.info.slots} - site.used;
    if (auto it = leaving.find(id); it != leaving.end()) {
      free += it->second;
      node.room.add(freeing[id], 1);
    }
    node.free = free > 0 ? static_cast<uint32_t>(free) : 0;
    node.over = free < 0 ? static_cast<uint32_t>(-free) : 0;
    nodes.push_back(std::move(node));
  }
  std::stable_sort(waiting.begin(), waiting.end(), [](const WaitingJob& a, const WaitingJob& b) {
    return a.demand->priority > b.demand->priority;
  });
  Preemption preemption(std::move(nodes), std::move(holders));
  int in_vain = 0;
  for (WaitingJob& job : waiting) {
    if (job.user_left) {
      if (!within(*job.user_left, *job.demand, job.wanted)) continue;
      job.wanted = std::min(job.wanted, *job.user_left);
    }
    MadeRoom made = preemption.make_room(job);
    if (made.places.empty()) {
      if (++in_vain == kVainMax) break;
      continue;
    }
    for (auto [node, count] : made.places)
      if (job.user_left) *job.user_left -= std::min(*job.user_left, count);
    if (job.job == patient_) patient_.reset();  // it gets this room instead
    reservations_[job.job] = std::move(made.places);
    for (const auto& [victim, slots] : made.victims) {
      Client& client = clients_.at(victim);
      Millis grace_ms = client.object->spec.pod.termination_grace_s.value_or(30) * 1000;
      for (auto [node, count] : slots) {
        auto& going = client.leaving[node];
        going = {going.first + count, now + grace_ms + kReportMs};
        round.victims[victim][node] += count;
      }
    }
  }
}

// ---- prefetch

void Slots::place_ahead(std::vector<FreeNode> nodes, std::vector<WaitingJob> jobs, Millis now,
                        Round& round) {
  renew_reservations(jobs, now);
  if (jobs.empty()) return;
  int32_t top = INT32_MIN;
  for (const WaitingJob& job : jobs) {
    top = std::max(top, job.demand->priority);
    if (!job.reservation) continue;
    std::erase_if(nodes, [&job](const FreeNode& n) { return job.reservation->contains(n.node); });
  }
  std::erase_if(jobs, [top](const WaitingJob& job) {
    return job.demand->gang || !job.demand->amounts.none() || job.demand->priority < top;
  });
  if (!jobs.empty() && !nodes.empty())
    grant(core::place(std::move(nodes), std::move(jobs)), now, round);
}

}  // namespace muster::core
