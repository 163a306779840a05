#include "core/cluster/slots/waiting.hpp"

#include <algorithm>
#include <string>

namespace muster::core {

namespace {

// Equal for demands that are alike.
size_t hash_of(const Demand& demand) {
  size_t hash = 0;
  auto mix = [&hash](size_t value) {
    hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  };
  const std::hash<std::string> text;
  mix(static_cast<size_t>(demand.amounts.cpu_millis));
  mix(static_cast<size_t>(demand.amounts.memory_bytes));
  for (const auto& [name, count] : demand.amounts.named)
    mix(text(name) + static_cast<size_t>(count));
  for (const auto& [key, value] : demand.node_selector) mix(text(key) + 3 * text(value));
  for (const auto& [key, value] : demand.queue_selector) mix(text(key) + 5 * text(value));
  mix(text(demand.node_name));
  mix((demand.affinity.required ? demand.affinity.required->size() + 1 : 0) +
      16 * demand.tolerations.size());
  for (const NodeId node : demand.avoids) mix(node);
  mix(static_cast<size_t>(demand.stay.limit_ms.value_or(-1)));
  mix(static_cast<size_t>(demand.stay.grace_ms) + text(demand.stay.user));
  return hash;
}

}  // namespace

std::optional<uint64_t> own_places(const Allowance& limit, const WaitingJob& job) {
  if (limit.kept.pods == 0) return 0;
  const bool goes_first = demand_of(job).priority > limit.kept.priority;
  const bool ends_first =
      job.kept == 0 && job.runs_ms && std::max<Millis>(*job.runs_ms, 1) <= limit.kept.for_ms;
  return goes_first || ends_first ? std::nullopt : std::optional<uint64_t>(job.kept);
}

bool would_be_new(const WaitingJob& job) {
  return std::none_of(job.limits.begin(), job.limits.end(), [&job](const Allowance* limit) {
    return limit && limit->pods_of.contains(job_of(job.job));
  });
}

uint64_t allowed(const WaitingJob& job, uint64_t most) {
  if (!job.limited) return most;
  for (const Allowance* limit : job.limits)
    if (limit)
      most = limit->left(demand_of(job).amounts, would_be_new(job), most, own_places(*limit, job));
  return most;
}

bool is_large(const WaitingJob& job) {
  return demand_of(job).gang || job.cost >= 2;
}

bool may_have(const WaitingJob& job) {
  const uint64_t least = demand_of(job).gang ? job.wanted : 1;
  return allowed(job, least) == least;
}

bool is_full(const WaitingJob& job) {
  return job.limited &&
         std::any_of(job.limits.begin(), job.limits.end(), [](const Allowance* limit) {
           return limit && limit->max.pods && limit->pods >= *limit->max.pods;
         });
}

namespace {

void count_limits(WaitingJob& job, int64_t pods, int64_t places) {
  const bool counts = !steps_of(job.job).any();
  const bool kept_only = counts && job.kept > 0 && job.pods == 0;
  job.pods = static_cast<uint32_t>(int64_t{job.pods} + pods);
  job.kept = static_cast<uint32_t>(int64_t{job.kept} + places);
  const bool keeps_only = counts && job.kept > 0 && job.pods == 0;
  const Amounts& each = is_plain(job) ? kPlainDemand.amounts : demand_of(job).amounts;
  for (Allowance* limit : job.limits) {
    if (!limit) continue;
    limit->count(job_of(job.job), each, pods);
    if (places != 0) limit->count_kept(each, places);
    limit->kept.jobs += keeps_only;
    limit->kept.jobs -= kept_only;
  }
}

}  // namespace

void set_kept(WaitingJob& job, uint32_t places) {
  if (places == job.kept) return;
  for (Allowance* limit : job.limits) {
    if (!limit || places < job.kept) continue;
    const int32_t priority = demand_of(job).priority;
    limit->kept.priority =
        limit->kept.pods == 0 ? priority : std::max(limit->kept.priority, priority);
    limit->kept.for_ms = 0;  // until the next round knows better
  }
  count_limits(job, 0, int64_t{places} - job.kept);
}

void count_pods(WaitingJob& job, int64_t pods) {
  count_limits(job, pods, 0);
  const double more = static_cast<double>(pods) * job.real * job.cost;
  job.share += more;
  note_share(job);
  if (!job.user) return;
  job.user->held += more;
  if (job.user->queue) job.user->queue->held += more;
}

bool Pass::serves(const Pack& pack, size_t at) const {
  const Wish& wish = pack.wishes[at];
  if (wish.wanted == 0 || wish.out == number) return false;
  if (ends_within && std::max<Millis>(wish.runs_ms, 1) > *ends_within) return false;
  if (pack.kind && !pack.limited && !ends_within) return true;
  const WaitingJob& job = *pack.jobs[at];
  if (job.kind && job.kind->stuck == number) return false;
  if (ends_within && (job.reservation || wish.runs_ms == Wish::kUnknown)) return false;
  return !job.limited || allowed(job, 1) > 0;
}

void WaitingJobs::add(WaitingJob& job) {
  const int32_t priority = demand_of(job).priority;
  Line& line = lines_[priority];
  line.priority = priority;
  job.line = &line;
  job.ordinary = demand_of(job).placement == PlacementChoice::usual &&
                 demand_of(job).affinity.preferred.empty();
  large_ += is_large(job);
  if (demand_of(job).gang) {
    job.at = line.gangs.size();
    line.gangs.push_back(&job);
    return;
  }
  std::pair<uint32_t, uint32_t> key;
  if (job.user) key = {job.user->queue ? job.user->queue->number : 0, job.user->number};
  const bool plain = demand_of(job).amounts.none();
  Pack& pack = (plain ? line.plain : line.others)[key];
  pack.key = key;
  pack.plain = plain;
  pack.limited = job.limited;
  pack.user = job.user;
  pack.kind = pack.jobs.empty() || pack.kind == job.kind ? job.kind : nullptr;
  job.pack = &pack;
  job.at = pack.jobs.size();
  pack.jobs.push_back(&job);
  pack.wishes.push_back(
      {job.share, job.cost, job.turn, job.runs_ms.value_or(Wish::kUnknown), 0, job.wanted});
  pack.wanted += job.wanted * job.cost;
  pack.least_cost = std::min(pack.least_cost, job.cost);
}

void WaitingJobs::remove(WaitingJob& job) {
  if (!job.line) return;
  large_ -= is_large(job);
  auto& among = job.pack ? job.pack->jobs : job.line->gangs;
  among.back()->at = job.at;
  among[job.at] = among.back();
  among.pop_back();
  if (job.pack) {
    job.pack->wishes[job.at] = job.pack->wishes.back();
    job.pack->wishes.pop_back();
    job.pack->wanted -= job.wanted * job.cost;
    if (among.empty())
      (job.pack->plain ? job.line->plain : job.line->others).erase(std::pair(job.pack->key));
  }
  if (job.line->empty()) lines_.erase(job.line->priority);
  job.line = nullptr;
  job.pack = nullptr;
}

void WaitingJobs::set_wanted(WaitingJob& job, uint32_t wanted) {
  if (job.pack) {
    job.pack->wanted += (static_cast<double>(wanted) - job.wanted) * job.cost;
    job.pack->wishes[job.at].wanted = wanted;
  }
  job.wanted = wanted;
}

void WaitingJobs::set_cost(WaitingJob& job, double cost) {
  if (job.pack) {
    job.pack->wanted += job.wanted * (cost - job.cost);
    job.pack->wishes[job.at].cost = cost;
    job.pack->least_cost = std::min(job.pack->least_cost, cost);
  }
  large_ -= job.line && is_large(job);
  job.cost = cost;
  large_ += job.line && is_large(job);
}

void WaitingJobs::sum_up() {
  for (auto& [priority, line] : lines_)
    for (auto* packs : {&line.plain, &line.others})
      for (auto& [key, pack] : *packs) {
        pack.wanted = 0;
        for (const Wish& wish : pack.wishes) pack.wanted += wish.wanted * wish.cost;
      }
}

void WaitingJobs::set_kind(WaitingJob& job) {
  drop_kind(job);
  const size_t hash = hash_of(demand_of(job));
  auto [it, end] = kinds_.equal_range(hash);
  while (it != end && !alike(it->second->demand, demand_of(job))) ++it;
  if (it == end) {
    it = kinds_.emplace(hash, std::make_unique<Kind>());
    it->second->demand = demand_of(job);
  }
  job.kind = it->second.get();
  ++job.kind->jobs;
  if (Pack* pack = job.pack)
    pack->kind = pack->jobs.size() == 1 || pack->kind == job.kind ? job.kind : nullptr;
}

void WaitingJobs::drop_kind(WaitingJob& job) {
  if (!job.kind) return;
  Kind* kind = std::exchange(job.kind, nullptr);
  if (--kind->jobs > 0) return;
  auto [it, end] = kinds_.equal_range(hash_of(kind->demand));
  while (it != end && it->second.get() != kind) ++it;
  if (it != end) kinds_.erase(it);
}

}  // namespace muster::core
