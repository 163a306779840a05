// Reserving: for whom places are kept, because they waited long or made room by preemption.
#include "core/cluster/slots/slots.hpp"

#include <algorithm>
#include <bitset>
#include <iterator>
#include <limits>
#include <utility>

namespace muster::core {

namespace {

// A plan moves if it starts sooner by this much, or by an eighth of the time until then.
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

// Whether all places reserved for the job can still be used.
bool Slots::still_good(JobId job) const {
  const auto kept = reservations_.find(job);
  if (kept == reservations_.end()) return false;
  const Client& client = clients_.at(job);
  uint64_t places = 0;
  for (auto [node, count] : kept->second) {
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
// take its places.
void Slots::be_patient(Millis now, Round& round) {
  if (const auto next = due_.upper_bound({now - kPatienceMs, UINT64_MAX}); next != due_.end())
    round.again_in(next->first + kPatienceMs - now);
  Client* longest = most_patient(now);
  if (next_look_ms_ > now) round.again_in(next_look_ms_ - now);
  if (!longest) return;
  if (now < next_plan_ms_) return round.again_in(next_plan_ms_ - now);
  if (patient_) drop_reservation(*patient_);
  patient_ = longest->job;
  patient_ms_ = now;
  lend_until_ms_ = std::numeric_limits<Millis>::max();
  due_ms_ = now;
  plan_anew(now);
  if (patient_) return;
  // Nothing fits it: let other jobs try first.
  longest->pause_ms = std::clamp(2 * longest->pause_ms, kPatienceMs, kPauseMaxMs);
  set_short_since(*longest, now + longest->pause_ms - kPatienceMs);
}

// Keeps the reservation where it is, unless another place is clearly sooner.
void Slots::plan_anew(Millis now) {
  auto it = clients_.find(*patient_);
  if (it == clients_.end() || !it->second.line || !may_have(it->second))
    return drop_reservation(*patient_);
  if (now > due_ms_ + kLateMs) {  // it waits for pods that do not end
    set_short_since(it->second, now + kLateMs);
    return drop_reservation(*patient_);
  }
  Client& client = it->second;
  const std::vector<Outlook> nodes = outlook(client, now);
  const WaitingJob job{it->first, client.lacking(), &client.need};
  const std::optional<Plan> best = plan(nodes, job, now);
  if (still_good(job.job)) {
    const std::optional<Due> due = start_of(reservations_.at(job.job), nodes, job, now);
    if (due && (!best || due->start_ms - best->due.start_ms <=
                             std::max(kSoonerMs, (due->start_ms - now) / 8)))
      return expect_at(*due);
  }
  if (!best) return drop_reservation(job.job);
  reservations_[job.job] = best->places;
  count_kept(client);
  expect_at(best->due);
}

// A plan holds while it is met: from when on it is late is what was first expected. Of ends that
// are not known, nothing is expected.
void Slots::expect_at(Due due) {
  start_ms_ = due.start_ms;
  lend_until_ms_ = std::min(lend_until_ms_, start_ms_);
  due_ms_ = due.known ? std::max(patient_ms_, lend_until_ms_) : patient_ms_;
}

// What is free on each node, and when the pods of other jobs are likely to end there.
std::vector<Outlook> Slots::outlook(const Client& client, Millis now) {
  std::map<NodeId, std::vector<Ending>> endings;
  size_t places = 0;
  for (const Client* other : by_id()) {
    if (other == &client) continue;
    places += other->places.size();
    for (const Holding& holding : other->places)
      endings[holding.node].push_back(
          {ends_at(*other, holding, now), holding.pods, &other->need, other->runs_ms.has_value()});
  }
  next_plan_ms_ = now + kPlanEveryMs + static_cast<Millis>(places / kPlacesPerMs);
  std::vector<Outlook> nodes;
  for (const auto& [id, site] : sites_) {
    if (!site.usable) continue;
    Outlook outlook{free_node(site, now), {}};
    outlook.node.over = site.used > site.info.slots ? site.used - site.info.slots : 0;
    if (auto found = endings.find(id); found != endings.end())
      outlook.endings = std::move(found->second);
    nodes.push_back(std::move(outlook));
  }
  return nodes;
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
  return patient_ ? std::optional(Awaited{*patient_, start_ms_}) : std::nullopt;
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
  if (!waiting.empty() && preempted_ms_ && now < *preempted_ms_ + kPreemptEveryMs) {
    round.again_in(*preempted_ms_ + kPreemptEveryMs - now);
    return;
  }
  std::vector<JobId> old;
  for (const auto& [job, places] : reservations_)
    if (job != patient_) old.push_back(job);
  for (const JobId job : old) drop_reservation(job);
  if (waiting.empty()) return;
  preempted_ms_ = now;

  std::map<NodeId, int64_t> leaving;
  std::map<NodeId, Amounts> freeing;
  std::vector<Holder> holders;
  for (Client* one : by_id()) {
    Client& client = *one;
    std::erase_if(client.leaving, [now](const auto& one) { return one.second.second < now; });
    for (const auto& [node, pods, since] : client.places) {
      auto going = client.leaving.find(node);
      uint32_t gone = going == client.leaving.end() ? 0 : std::min(going->second.first, pods);
      if (gone > 0) {
        leaving[node] += gone;
        freeing[node].add(client.need.amounts, gone);
      }
      if (client.asked && pods > gone)
        holders.push_back({client.job, node, pods - gone, &client.need});
    }
  }
  std::vector<FreeNode> nodes;
  for (const auto& [id, site] : sites_) {
    if (!site.usable) continue;
    FreeNode node = free_node(site, now);
    int64_t free = int64_t{site.info.slots} - site.used;
    if (auto it = leaving.find(id); it != leaving.end()) {
      free += it->second;
      node.room.add(freeing[id], 1);
    }
    node.free = free > 0 ? static_cast<uint32_t>(free) : 0;
    node.over = free < 0 ? static_cast<uint32_t>(-free) : 0;
    nodes.push_back(std::move(node));
  }
  Preemption preemption(std::move(nodes), std::move(holders));
  make_room(preemption, waiting, now, round);
}

void Slots::make_room(Preemption& preemption, const std::vector<Client*>& jobs, Millis now,
                      Round& round) {
  int in_vain = 0;
  for (Client* preemptor : jobs) {
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
  count_rivals(line);
  for (Expectation& one : line)
    if (one.job == patient_) one.start_ms = std::max(start_ms_, now);
  return line;
}

}  // namespace muster::core
