// Reserving: for whom places are kept, because they waited long or made room by preemption.
#include "core/cluster/slots/slots.hpp"

#include <algorithm>
#include <bitset>
#include <iterator>
#include <limits>
#include <utility>

namespace muster::core {

namespace {

// A plan moves if it starts sooner by this much, by an eighth of the time until then and by a run
// of the pods that it then waits for.
constexpr Millis kSoonerMs = 100;
// Expected of a pod about which nothing is known, beyond what it has already run.
constexpr Millis kUnknownMs = 3'600'000;
// A plan that is this late is given up for as long.
constexpr Millis kLateMs = 3'600'000;
// The longest pause between two plans of a job that fits nowhere.
constexpr Millis kPauseMaxMs = 60'000;
// A look at this many jobs in vain puts the next one off by a millisecond.
constexpr size_t kLooksPerMs = 1'000;
// How long to wait for a victim after its grace, to allow for SIGKILL and the report.
constexpr Millis kReportMs = 30'000;
// In a large cluster, a preemption goes on elsewhere after this time.
constexpr Millis kNextLookMs = 5;
// Preemption gives up after this many jobs for which it cannot make room.
constexpr int kVainMax = 64;

// With more places that have pods, or more waiting jobs, no start is guessed: it would take too
// long.
constexpr size_t kLinePlacesMax = 20'000;
constexpr size_t kLineJobsMax = 2'000;
constexpr size_t kRivalKindsMax = 32, kRivalLooksMax = 20'000;

}  // namespace

// ---- patience

void Slots::drop_reservation(JobId job) {
  if (job == patient_) patient_.reset();
  if (reservations_.erase(job) == 0) return;
  if (const auto it = clients_.find(job); it != clients_.end()) count_kept(it->second);
}

void Slots::count_kept(Client& client) {
  uint64_t places = 0;
  if (const auto kept = reservations_.find(client.job); client.line && kept != reservations_.end())
    for (auto [node, count] : kept->second) places += count;
  set_kept(client, static_cast<uint32_t>(std::min<uint64_t>(places, client.lacking())));
}

void Slots::set_short_since(Client& client, std::optional<Millis> since) {
  if (client.short_since == since) return;
  if (client.short_since) {
    patience_.erase({-int64_t{client.need.priority}, *client.short_since, client.job});
    due_.erase({*client.short_since, client.job});
  }
  client.short_since = since;
  if (!since) return;
  patience_.insert({-int64_t{client.need.priority}, *since, client.job});
  due_.insert({*since, client.job});
}

// Whether all these places can still be used.
bool Slots::can_use(const Client& client, const Reservation& kept) const {
  uint64_t places = 0;
  for (auto [node, count] : kept) {
    const Site* s = site(node);
    if (!s || !s->usable || !admits(s->info, s->labels, client.need)) return false;
    places += count;
  }
  return places > 0 && (!client.need.gang || places == client.lacking());
}

// Of those who have waited long enough and may have a reservation, the one with the highest
// priority that has waited longest. None, if one of at least its priority has a reservation.
Slots::Client* Slots::most_patient(Millis now) {
  if (now < next_look_ms_) return nullptr;
  size_t looks = 0;
  for (auto it = patience_.begin(); it != patience_.end();) {
    const auto [rank, since, job] = *it;
    if (patient_ && -rank <= clients_.at(*patient_).need.priority) break;
    if (since + kPatienceMs > now) {  // so have the others of this priority
      it = patience_.upper_bound({rank, std::numeric_limits<Millis>::max(), UINT64_MAX});
      continue;
    }
    ++looks;
    ++it;
    Client& client = clients_.at(job);
    if (may_have(client) && !reservations_.contains(job) &&
        (client.begun || !has_its_share(client)))
      return &client;
  }
  next_look_ms_ = now + static_cast<Millis>(looks / kLooksPerMs);
  return nullptr;
}

// From now on, they are short of what they need.
void Slots::begin_to_wait(Millis now) {
  for (const JobId job : std::exchange(fresh_, {}))
    if (const auto it = clients_.find(job); it != clients_.end())
      if (Client& client = it->second; client.line && client.needs_much() && !client.short_since)
        set_short_since(client, now);
}

// Gives one job at a time a reservation. It is served before jobs of equal priority, so they cannot
// take its places. True: it has more to look at.
bool Slots::be_patient(Millis now, Round& round) {
  if (const auto next = due_.upper_bound({now - kPatienceMs, UINT64_MAX}); next != due_.end())
    round.again_in(next->first + kPatienceMs - now);
  Client* longest = most_patient(now);
  if (next_look_ms_ > now) round.again_in(next_look_ms_ - now);
  if (!longest) return false;
  if (now < next_plan_ms_) {
    round.again_in(next_plan_ms_ - now);
    return false;
  }
  if (patient_) drop_reservation(*patient_);
  patient_ = longest->job;
  patient_ms_ = now;
  lend_until_ms_ = std::numeric_limits<Millis>::max();
  due_ms_ = now;
  planning_.reset();
  return plan_anew(now, round);
}

// Nothing fits it: lets other jobs try first.
void Slots::give_up_plan(Client& client, Millis now) {
  const bool had = reservations_.contains(client.job);
  drop_reservation(client.job);
  if (had) return;
  client.pause_ms = std::clamp(2 * client.pause_ms, kPatienceMs, kPauseMaxMs);
  set_short_since(client, now + client.pause_ms - kPatienceMs);
}

// Keeps the reservation where it is, unless another place is clearly sooner. True: it has more to
// look at.
bool Slots::plan_anew(Millis now, Round& round) {
  auto it = clients_.find(*patient_);
  if (it == clients_.end() || !it->second.line || !may_have(it->second)) {
    drop_reservation(*patient_);
    return false;
  }
  Client& client = it->second;
  if (now > due_ms_ + kLateMs) {  // it waits for pods that do not end
    set_short_since(client, now + kLateMs);
    drop_reservation(*patient_);
    return false;
  }
  const Planning* planning = look_around(client, now);
  if (!planning) return true;
  const std::optional<Plan> best = planning->best();
  const std::optional<Due> due = planning->due_of_kept();
  const bool stays = can_use(client, planning->kept()) && due;
  planning_.reset();
  if (stays && (!best || due->start_ms - best->due.start_ms <=
                             std::max({kSoonerMs, (due->start_ms - now) / 8, best->due.doubt_ms})))
    expect_at(*due);
  else if (!best)
    give_up_plan(client, now);
  else if (!can_use(client, best->places))  // the nodes have changed
    round.again_in(next_plan_ms_ - now);
  else
    keep(client, *best);
  return false;
}

void Slots::keep(Client& client, const Plan& plan) {
  reservations_[client.job] = plan.places;
  count_kept(client);
  expect_at(plan.due);
}

// Looks at the next nodes, for a plan of this job; null: there are more, for the next round.
const Planning* Slots::look_around(const Client& client, Millis now) {
  static const Reservation kNone;
  const auto reserved = reservations_.find(client.job);
  const Reservation& kept = reserved == reservations_.end() ? kNone : reserved->second;
  const WaitingJob job{client.job, client.lacking(), &client.need};
  if (!planning_ || planned_job_ != client.job || !planning_->is_for(job, kept)) {
    planning_.emplace(job, kept, now);
    planned_job_ = client.job;
    next_planned_ = 0;
  }
  const size_t most = planning_->looked() + settings_.looks_max;
  for (auto at = sites_.lower_bound(next_planned_); at != sites_.end(); ++at) {
    if (planning_->looked() >= most) {
      next_planned_ = at->first;
      return nullptr;
    }
    if (at->second.usable) planning_->look(outlook(at->second, client, planning_->begun_ms()));
  }
  next_plan_ms_ = now + kPlanEveryMs + static_cast<Millis>(planning_->looked() / kPlacesPerMs);
  return &*planning_;
}

// A plan holds while it is met: from when on it is late is what was first expected. Of ends that
// are not known, nothing is expected.
void Slots::expect_at(Due due) {
  start_ms_ = due.start_ms;
  lend_until_ms_ = std::min(lend_until_ms_, start_ms_);
  due_ms_ = due.known ? std::max(patient_ms_, lend_until_ms_) : patient_ms_;
}

// What is free on the node, and when the pods of other jobs are likely to end there.
Outlook Slots::outlook(const Site& site, const Client& client, Millis now) const {
  Outlook outlook{free_node(site, now), {}};
  outlook.node.over = site.used > site.info.slots ? site.used - site.info.slots : 0;
  // What waits there for a slot runs first, as many at a time as there are slots.
  const auto rounds = static_cast<Millis>((outlook.node.over + site.info.slots - 1) /
                                          std::max(1u, site.info.slots));
  for (const Client* other : site.tenants) {
    if (other == &client) continue;
    const Holding& holding = *other->places.find(site.info.id);
    const Millis runs_ms = other->runs_ms.value_or(0);
    outlook.endings.push_back({ends_at(*other, holding, now) + rounds * runs_ms, holding.pods,
                               &other->need, other->runs_ms.has_value(), runs_ms});
  }
  return outlook;
}

// By when the job's pods there are likely to have ended.
Millis Slots::ends_at(const Client& client, const Holding& holding, Millis now) const {
  const Millis since = std::max(holding.since, first_ms_.value_or(now));
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
  if (const auto limit = client.need.time_limit_s) runs = *limit * 1000;
  if (client.ran.count > 0) {
    const Millis average = client.ran.total_ms / client.ran.count;
    runs = std::min(average, runs.value_or(average));
  }
  return runs;
}

std::optional<Slots::Awaited> Slots::awaited() const {
  if (!patient_ || !reservations_.contains(*patient_)) return std::nullopt;
  return Awaited{*patient_, start_ms_};
}

// ---- preemption

// Waiting jobs that may preempt pods of this priority, the highest first.
std::vector<Slots::Client*> Slots::preemptors(int32_t lowest) {
  std::vector<Client*> jobs;
  for (const auto& [priority, line] : waiting_.lines()) {
    if (priority <= lowest) break;
    const auto begin = static_cast<std::ptrdiff_t>(jobs.size());
    auto add = [&jobs](WaitingJob* job) {
      if (job->wanted > 0 && job->demand->preempts && may_have(*job))
        jobs.push_back(static_cast<Client*>(job));
    };
    for (const auto* packs : {&line.plain, &line.others})
      for (const auto& [key, pack] : *packs) std::for_each(pack.jobs.begin(), pack.jobs.end(), add);
    std::for_each(line.gangs.begin(), line.gangs.end(), add);
    std::sort(jobs.begin() + begin, jobs.end(), [this](const Client* a, const Client* b) {
      return a->turn - first_served_ < b->turn - first_served_;
    });
  }
  return jobs;
}

void Slots::preempt(Millis now, Round& round) {
  std::vector<Client*> waiting;
  if (!ranks_.empty()) waiting = preemptors(ranks_.begin()->first);
  if (!waiting.empty() && now < next_preempt_ms_) return round.again_in(next_preempt_ms_ - now);
  std::map<JobId, Reservation> before;
  for (auto it = reservations_.begin(); it != reservations_.end();) {
    const JobId job = it->first;
    Reservation& places = (it++)->second;
    if (job == patient_) continue;
    before.emplace(job, std::move(places));
    drop_reservation(job);
  }
  if (waiting.empty()) return;
  const bool whole = sites_.size() + places_ <= 2 * settings_.looks_max;
  Scope scope = look_for_victims(waiting, before, whole, now);
  if (!whole)
    std::erase_if(waiting, [&](const Client* one) {
      return one->need.gang && !before.contains(one->job) && one->job != scope.gang;
    });
  // Those who have made room before keep it.
  const auto rank = [&before](const Client* one) {
    return std::pair(-int64_t{one->need.priority}, !before.contains(one->job));
  };
  std::stable_sort(waiting.begin(), waiting.end(),
                   [&](const Client* a, const Client* b) { return rank(a) < rank(b); });
  next_preempt_ms_ = now + kPreemptEveryMs + static_cast<Millis>(places_ / kPreemptPlacesPerMs);
  if (!scope.all) {
    next_preempt_ms_ = now + kNextLookMs;
    round.again_in(kNextLookMs);
  }
  Preemption preemption(std::move(scope.nodes), std::move(scope.holders));
  make_room(preemption, waiting, now, round);
}

// Where a preemption looks. In a large cluster, at the places that it has chosen before, and at a
// part of the others: first of all at pods of the lowest priority on all nodes, one part after the
// other, then at those of higher ones.
Slots::Scope Slots::look_for_victims(const std::vector<Client*>& waiting,
                                     const std::map<JobId, Reservation>& before, bool whole,
                                     Millis now) {
  const int32_t highest = waiting.front()->need.priority;
  Scope scope;
  std::map<NodeId, int32_t> nodes;  // and below which priority pods may have to end there
  std::map<NodeId, std::pair<uint32_t, Amounts>> leaving;
  for (auto it = leaving_.begin(); it != leaving_.end();) {
    Client& client = clients_.at(*it);
    std::erase_if(client.leaving, [now](const auto& one) { return one.second.second < now; });
    for (const auto& [node, going] : client.leaving) {
      nodes.emplace(node, highest);
      const uint32_t gone = std::min(going.first, client.places.find(node)->pods);
      auto& [pods, amounts] = leaving[node];
      pods += gone;
      amounts.add(client.need.amounts, gone);
    }
    it = client.leaving.empty() ? leaving_.erase(it) : std::next(it);
  }
  if (whole) {
    for (const auto& [id, site] : sites_) nodes.emplace(id, highest);
  } else {
    for (const auto& [job, places] : before)
      for (const auto& [node, count] : places) nodes.emplace(node, highest);
    scope.all = look_further(search_, highest, nullptr, now);
    for (const NodeId node : search_.found) nodes.emplace(node, search_.found_below);
    search_.found.clear();
    if (Client* gang = next_gang(waiting, before)) {
      scope.all = look_further(gang_search_, gang->need.priority, gang, now);
      if (gang_search_.offered >= gang->wanted) {
        scope.gang = gang->job;
        for (const NodeId node : gang_search_.found) nodes.emplace(node, gang_search_.found_below);
        gang_search_.found.clear();
        gang_search_.offered = 0;
      }
    }
  }
  for (const auto& [id, below] : nodes) {
    const Site* s = site(id);
    if (!s || !s->usable) continue;
    FreeNode node = free_node(*s, now);
    int64_t free = int64_t{s->info.slots} - s->used;
    if (const auto it = leaving.find(id); it != leaving.end()) {
      free += it->second.first;
      node.room.add(it->second.second, 1);
    }
    node.free = free > 0 ? static_cast<uint32_t>(free) : 0;
    node.over = free < 0 ? static_cast<uint32_t>(-free) : 0;
    scope.nodes.push_back(std::move(node));
    add_holders(*s, below, scope.holders);
  }
  return scope;
}

// In the order of jobs.
void Slots::add_holders(const Site& site, int32_t below, std::vector<Holder>& holders) const {
  const auto first = static_cast<std::ptrdiff_t>(holders.size());
  for (const Client* client : site.tenants) {
    if (!client->asked || client->need.priority >= below) continue;
    uint32_t pods = client->places.find(site.info.id)->pods;
    if (const auto going = client->leaving.find(site.info.id); going != client->leaving.end())
      pods -= std::min(going->second.first, pods);
    if (pods > 0) holders.push_back({client->job, site.info.id, pods, &client->need});
  }
  std::sort(holders.begin() + first, holders.end(),
            [](const Holder& a, const Holder& b) { return a.job < b.job; });
}

// Finds the next nodes where pods may have to end, for this gang or else for anybody. For a gang,
// those that it has found stay until they offer enough. True: it has looked at all of them.
bool Slots::look_further(Search& search, int32_t highest, const Client* gang, Millis now) {
  if (search.below == INT32_MIN) search.below = above(INT32_MIN, highest);
  search.below = std::min(search.below, highest);
  search.found_below = search.below;
  size_t looks = 0;
  for (auto at = sites_.lower_bound(search.next); at != sites_.end(); ++at) {
    if (looks >= settings_.looks_max / 2 || (gang && search.offered >= gang->wanted)) {
      search.next = at->first;
      return false;
    }
    const Site& site = at->second;
    looks += 1 + site.tenants.size();
    if (!site.usable || (gang && !admits(site.info, site.labels, gang->need))) continue;
    FreeNode node = free_node(site, now);
    const uint32_t free = node.free;
    for (const Client* one : site.tenants) {
      if (!one->asked || one->need.priority >= search.below) continue;
      if (gang && !may_preempt(gang->need, one->need)) continue;
      const uint32_t pods = one->places.find(at->first)->pods;
      node.free += pods;
      node.room.add(one->need.amounts, pods);
    }
    node.free = std::min(node.free, site.info.slots);
    const uint32_t offers = gang ? room_for(node, gang->need, gang->wanted) : node.free - free;
    if (offers == 0) continue;
    search.found.push_back(at->first);
    search.offered += offers;
  }
  const bool enough = gang && search.offered >= gang->wanted;
  const bool all = search.below >= highest;
  search.next = 0;
  search.below = all ? INT32_MIN : above(search.below - 1, highest);
  if (!enough) search.offered = 0;
  if (gang && !enough) search.found.clear();
  return all;
}

// The lowest priority that is higher than that of some pods of more than `than`; at most `highest`.
int32_t Slots::above(int32_t than, int32_t highest) const {
  const auto lowest = ranks_.upper_bound(than);
  return lowest == ranks_.end() ? highest : std::min(lowest->first + 1, highest);
}

// The gang for which to look for room. None: there is none, or each has some.
Slots::Client* Slots::next_gang(const std::vector<Client*>& waiting,
                                const std::map<JobId, Reservation>& before) {
  Client *first = nullptr, *next = nullptr;
  bool passed = false;
  for (Client* one : waiting) {
    if (!one->need.gang || before.contains(one->job)) continue;
    if (one->job == gang_search_.job) {
      if (gang_search_.below != INT32_MIN) return one;  // it goes on
      passed = true;
      continue;
    }
    if (!first) first = one;
    if (passed && !next) next = one;
  }
  if (!next) next = first;
  if (!next)
    for (Client* one : waiting)
      if (one->job == gang_search_.job && !before.contains(one->job)) next = one;
  gang_search_ = {};
  if (next) gang_search_.job = next->job;
  return next;
}

void Slots::make_room(Preemption& preemption, const std::vector<Client*>& jobs, Millis now,
                      Round& round) {
  int in_vain = 0;
  for (Client* preemptor : jobs) {
    if (preemption.looks() > 2 * settings_.looks_max) {
      next_preempt_ms_ = now + kNextLookMs;
      return round.again_in(kNextLookMs);
    }
    if (!may_have(*preemptor)) continue;  // by now
    WaitingJob job = *preemptor;
    job.wanted = static_cast<uint32_t>(allowed(job, job.wanted));
    MadeRoom made = preemption.make_room(job);
    if (made.places.empty()) {
      if (++in_vain == kVainMax) break;
      continue;
    }
    if (job.job == patient_) patient_.reset();  // it gets this room instead
    reservations_[job.job] = std::move(made.places);
    count_kept(*preemptor);
    for (const auto& [victim, slots] : made.victims) {
      Client& client = clients_.at(victim);
      Millis grace_ms = client.object->spec.pod.termination_grace_s.value_or(30) * 1000;
      for (auto [node, count] : slots) {
        auto& going = client.leaving[node];
        going = {going.first + count, now + grace_ms + kReportMs};
        leaving_.insert(victim);
        round.victims[victim][node] += count;
      }
    }
  }
}

// ---- the line

// Whether all its pods that start together fit onto the nodes, were these empty.
bool Slots::could_ever_start(const Client& client) const {
  const uint32_t needed = client.need.gang ? client.wanted : 1;
  uint32_t places = 0;
  for (const auto& [id, site] : sites_) {
    if (!admits(site.info, site.labels, client.need)) continue;
    places += times_in(capacity_of(site.info), client.need.amounts,
                       std::min(site.info.slots, needed - places));
    if (places >= needed) return true;
  }
  return false;
}

// Of the jobs ahead of each, counts only those that could take a place on a node that it may use.
// As long as that costs little: else all of them count.
void Slots::count_rivals(std::vector<Expectation>& line) const {
  std::map<const Kind*, size_t> kinds;
  for (const Expectation& one : line) kinds.try_emplace(clients_.at(one.job).kind, kinds.size());
  if (kinds.size() < 2 || kinds.size() > kRivalKindsMax ||
      kinds.size() * sites_.size() > kRivalLooksMax)
    return;
  using Set = std::bitset<kRivalKindsMax>;
  std::vector<Set> rivals(kinds.size());
  for (const auto& [id, site] : sites_) {
    Set here;
    for (const auto& [kind, number] : kinds)
      here[number] = site.usable && admits(site.info, site.labels, kind->demand) &&
                     times_in(capacity_of(site.info), kind->demand.amounts, 1) > 0;
    for (size_t i = 0; i < rivals.size(); ++i)
      if (here[i]) rivals[i] |= here;
  }
  std::vector<size_t> kind_at;  // of each in the line
  for (const Expectation& one : line) kind_at.push_back(kinds.at(clients_.at(one.job).kind));
  std::vector<uint32_t> seen(kinds.size());  // of those counted so far, by kind
  size_t counted = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    for (; counted < line[i].ahead; ++counted) ++seen[kind_at[counted]];
    line[i].ahead = 0;
    for (size_t kind = 0; kind < seen.size(); ++kind)
      if (rivals[kind_at[i]][kind]) line[i].ahead += seen[kind];
  }
}

// The line of waiting jobs, as far as it is known (expected_start.hpp). A job that no place can be
// expected for is not in it.
std::vector<Expectation> Slots::line(Millis now) {
  if (wanting_.size() > kLineJobsMax) return {};
  note_changes();
  std::vector<WaitingJob> jobs;
  for (const JobId id : wanting_)
    if (const Client& client = clients_.at(id);
        may_have(client) && (!client.needs_much() || could_ever_start(client))) {
      jobs.push_back(client);
      const auto kept = reservations_.find(id);
      jobs.back().reservation = kept == reservations_.end() ? nullptr : &kept->second;
    }
  if (jobs.empty()) return {};
  std::vector<Outlook> nodes;
  for (const auto& [id, site] : sites_) {
    if (!site.usable || places_ > kLinePlacesMax) continue;
    Outlook one{free_node(site, now), {}};
    one.node.over = site.used > site.info.slots ? site.used - site.info.slots : 0;
    for (const auto& [job, kept] : reservations_) {
      const auto place = kept.find(id);
      const auto client = clients_.find(job);
      if (place == kept.end() || client == clients_.end()) continue;
      one.node.over += place->second - std::min(one.node.free, place->second);
      occupy(one.node, client->second.need, place->second);
    }
    for (const Client* client : site.tenants) {
      const Holding& holding = *client->places.find(id);
      // Much later than expected: nothing is known of it any more.
      if (client->runs_ms && now - holding.since <= 2 * *client->runs_ms)
        one.endings.push_back({ends_at(*client, holding, now), holding.pods, &client->need});
    }
    nodes.push_back(std::move(one));
  }
  std::vector<Expectation> line = expect(jobs, std::move(nodes), now);
  count_rivals(line);
  for (Expectation& one : line)
    if (one.job == patient_ && reservations_.contains(one.job))
      one.start_ms = std::max(start_ms_, now);
  return line;
}

}  // namespace muster::core
