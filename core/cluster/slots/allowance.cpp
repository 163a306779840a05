#include "core/cluster/slots/allowance.hpp"

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
  max = std::move(limits);
  limited = max != QueueLimits{};
}

void Allowance::count(const Amounts& each, int64_t count) {
  pods += static_cast<uint64_t>(count);
  if (!each.none()) amounts.add(each, count);
}

uint64_t Allowance::left(const Amounts& each, bool new_job, uint64_t most) const {
  if (!limited) return most;
  if (new_job && max.jobs && jobs >= *max.jobs) return 0;
  if (max.pods) most = std::min<uint64_t>(most, *max.pods - std::min<uint64_t>(*max.pods, pods));
  auto lower = [&most](int64_t have, int64_t taken, int64_t one) {
    if (one > 0)
      most = std::min(most, static_cast<uint64_t>(std::max<int64_t>(have - taken, 0) / one));
  };
  if (max.cpu_millis) lower(*max.cpu_millis, amounts.cpu_millis, each.cpu_millis);
  if (max.memory_bytes) lower(*max.memory_bytes, amounts.memory_bytes, each.memory_bytes);
  for (const auto& [name, have] : max.named)
    lower(have, amount_of(amounts.named, name), amount_of(each.named, name));
  return most;
}

std::optional<Allowance::Shortage> Allowance::shortage(const Amounts& each, bool new_job,
                                                       uint64_t least, uint64_t wanted) const {
  std::optional<Shortage> found;
  auto look = [&](const std::string& resource, int64_t most, int64_t held, int64_t one) {
    if (found || one == 0 || one <= (most - held) / static_cast<int64_t>(least)) return;
    int64_t all = 0;
    if (__builtin_mul_overflow(one, static_cast<int64_t>(wanted), &all))
      all = std::numeric_limits<int64_t>::max();
    found = {resource, most, held, all};
  };
  if (max.pods) look("pods", *max.pods, static_cast<int64_t>(pods), 1);
  if (!found && max.jobs && new_job && jobs >= *max.jobs)
    found = Shortage{"jobs", *max.jobs, static_cast<int64_t>(jobs), 1};
  if (max.cpu_millis) look("cpu", *max.cpu_millis, amounts.cpu_millis, each.cpu_millis);
  if (max.memory_bytes) look("memory", *max.memory_bytes, amounts.memory_bytes, each.memory_bytes);
  for (const auto& [name, most] : max.named)
    look(name, most, amount_of(amounts.named, name), amount_of(each.named, name));
  return found;
}

bool Allowance::over() const {
  return (max.pods && pods > *max.pods) || (max.jobs && jobs > *max.jobs) ||
         (max.cpu_millis && amounts.cpu_millis > *max.cpu_millis) ||
         (max.memory_bytes && amounts.memory_bytes > *max.memory_bytes) ||
         std::any_of(max.named.begin(), max.named.end(), [this](const auto& one) {
           return amount_of(amounts.named, one.first) > one.second;
         });
}

}  // namespace muster::core
