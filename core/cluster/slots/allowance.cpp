#include "core/cluster/slots/allowance.hpp"

#include "base/check.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/values/quantity.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace muster::core {

namespace {

int64_t amount_of(const std::map<std::string, int64_t>& amounts, const std::string& name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? 0 : found->second;
}

}  // namespace

void Allowance::set_max(QueueLimits limits) {
  MUSTER_CHECK(pods == 0 || max.jobs.has_value() == limits.jobs.has_value(), pods);
  max = std::move(limits);
  limited = max != QueueLimits{};
}

void Allowance::count(JobId job, const Amounts& each, int64_t count) {
  if (count == 0) return;
  pods += static_cast<uint64_t>(count);
  if (!each.none()) amounts.add(each, count);
  if (!max.jobs) return;
  const auto of = pods_of.try_emplace(job, 0).first;
  of->second += static_cast<uint64_t>(count);
  if (of->second == 0) pods_of.erase(of);
}

void Allowance::count_kept(const Amounts& each, int64_t count) {
  kept.pods += static_cast<uint64_t>(count);
  if (!each.none()) kept.amounts.add(each, count);
}

Allowance::Taken Allowance::taken(const Amounts& each, bool new_job,
                                  std::optional<uint64_t> own) const {
  Taken all{static_cast<int64_t>(pods), static_cast<int64_t>(pods_of.size()), amounts.cpu_millis,
            amounts.memory_bytes};
  if (!own || kept.pods == 0) return all;
  const auto mine = static_cast<int64_t>(*own);
  all.pods += static_cast<int64_t>(kept.pods) - mine;
  all.jobs += static_cast<int64_t>(kept.jobs) - (new_job && *own > 0);
  all.cpu_millis += kept.amounts.cpu_millis - mine * each.cpu_millis;
  all.memory_bytes += kept.amounts.memory_bytes - mine * each.memory_bytes;
  return all;
}

int64_t Allowance::taken_of(const std::string& name, int64_t each,
                            std::optional<uint64_t> own) const {
  const int64_t granted = amount_of(amounts.named, name);
  if (!own || kept.pods == 0) return granted;
  return granted + amount_of(kept.amounts.named, name) - static_cast<int64_t>(*own) * each;
}

uint64_t Allowance::left(const Amounts& each, bool new_job, uint64_t most,
                         std::optional<uint64_t> own) const {
  if (!limited) return most;
  const Taken all = taken(each, new_job, own);
  if (new_job && max.jobs && all.jobs >= int64_t{*max.jobs}) return 0;
  auto lower = [&most](int64_t have, int64_t held, int64_t one) {
    if (one > 0)
      most = std::min(most, static_cast<uint64_t>(std::max<int64_t>(have - held, 0) / one));
  };
  if (max.pods) lower(*max.pods, all.pods, 1);
  if (max.cpu_millis) lower(*max.cpu_millis, all.cpu_millis, each.cpu_millis);
  if (max.memory_bytes) lower(*max.memory_bytes, all.memory_bytes, each.memory_bytes);
  for (const auto& [name, have] : max.named) {
    const int64_t one = amount_of(each.named, name);
    lower(have, taken_of(name, one, own), one);
  }
  return most;
}

std::optional<Allowance::Shortage> Allowance::shortage(const Amounts& each, bool new_job,
                                                       uint64_t least, uint64_t wanted,
                                                       std::optional<uint64_t> own) const {
  std::optional<Shortage> found;
  auto look = [&](const std::string& resource, int64_t most, int64_t held, int64_t granted,
                  int64_t one) {
    if (found || one == 0 || one <= (most - held) / static_cast<int64_t>(least)) return;
    int64_t all = 0;
    if (__builtin_mul_overflow(one, static_cast<int64_t>(wanted), &all))
      all = std::numeric_limits<int64_t>::max();
    found = {resource, most, held, all, held - granted};
    int64_t together = 0;  // `least` of them
    if (__builtin_mul_overflow(one, static_cast<int64_t>(least), &together) || together > most)
      found->never = together;
  };
  const Taken all = taken(each, new_job, own), had = taken(each, new_job, std::nullopt);
  if (max.pods) look("pods", *max.pods, all.pods, had.pods, 1);
  if (!found && max.jobs && new_job && all.jobs >= int64_t{*max.jobs})
    found = Shortage{"jobs", *max.jobs, all.jobs, 1, all.jobs - had.jobs, *max.jobs == 0 ? 1 : 0};
  if (max.cpu_millis) look("cpu", *max.cpu_millis, all.cpu_millis, had.cpu_millis, each.cpu_millis);
  if (max.memory_bytes)
    look("memory", *max.memory_bytes, all.memory_bytes, had.memory_bytes, each.memory_bytes);
  for (const auto& [name, most] : max.named) {
    const int64_t one = amount_of(each.named, name);
    look(name, most, taken_of(name, one, own), taken_of(name, one, std::nullopt), one);
  }
  return found;
}

std::string limit_text(const std::string& resource, int64_t amount) {
  if (resource == "cpu") return canonical_quantity(std::to_string(amount) + "m");
  if (resource == "memory") return canonical_quantity(std::to_string(amount));
  return std::to_string(amount);
}

void fit_limits(const JobMeta& meta, const JobSpec& spec, const QueueSet& queues,
                Violations& found) {
  const Queue* const queue = queues.find(queue_of(meta.annotations));
  if (!queue || spec.parallelism == 0) return;
  JobObject object;
  object.meta = meta;
  object.spec = spec;
  const Demand demand = demand_of(object);
  const int64_t together =
      demand.gang ? std::min<int64_t>(spec.parallelism.value_or(1), spec.completions.value_or(1))
                  : 1;
  auto look = [&](const QueueLimits& limits, bool per_user) {
    Allowance all;
    all.set_max(limits);
    const auto least = static_cast<uint64_t>(std::max<int64_t>(together, 1));
    const auto lack = all.shortage(demand.amounts, true, least, least);
    if (!lack) return false;
    const std::string flag = per_user ? " --user-limit " : " --limit ";
    found.forbidden(
        "metadata.annotations[" + std::string(kQueueKey) + "]",
        (demand.gang ? "a gang of " + std::to_string(least) + " pods takes " : "a pod takes ") +
            limit_text(lack->resource, lack->wanted) + " " +
            (lack->resource == "pods" && lack->wanted == 1 ? "pod" : lack->resource) +
            ", and queue " + queue->name + " allows " + (per_user ? "each user " : "") +
            limit_text(lack->resource, lack->max) +
            "; an operator may raise the limit (muster queue " + queue->name + flag +
            lack->resource + "=N)");
    return true;
  };
  if (!look(queue->total, false) && owner_uid(meta.annotations)) look(queue->per_user, true);
}

bool Allowance::over() const {
  return (max.pods && pods > *max.pods) || (max.jobs && pods_of.size() > *max.jobs) ||
         (max.cpu_millis && amounts.cpu_millis > *max.cpu_millis) ||
         (max.memory_bytes && amounts.memory_bytes > *max.memory_bytes) ||
         std::any_of(max.named.begin(), max.named.end(), [this](const auto& one) {
           return amount_of(amounts.named, one.first) > one.second;
         });
}

}  // namespace muster::core
