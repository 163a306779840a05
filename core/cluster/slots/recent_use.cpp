#include "core/cluster/slots/recent_use.hpp"

#include <algorithm>
#include <cmath>

namespace muster::core {

namespace {

// However much a user has had, at least this much of a full weight remains.
constexpr double kLeastWeight = 1.0 / 64;

}  // namespace

// Which part of an average is left after this time.
double RecentUse::kept(Millis span_ms) const {
  return std::exp2(-static_cast<double>(std::max<Millis>(span_ms, 0)) /
                   static_cast<double>(half_life_ms_));
}

void RecentUse::pass(const std::map<UserId, double>& held, Millis span_ms) {
  if (half_life_ms_ == 0) return;
  const double part = kept(span_ms);
  for (auto& [user, use] : uses_) use *= part;
  for (const auto& [user, now] : held) uses_[user] += std::clamp(now, 0.0, 1.0) * (1 - part);
  std::erase_if(uses_, [](const auto& one) { return one.second < kForgotten; });
}

void RecentUse::restore(UserId user, double use, Millis span_ms) {
  if (half_life_ms_ == 0) return;
  uses_[user] = std::clamp(use, 0.0, 1.0) * kept(span_ms);
}

double RecentUse::of(UserId user) const {
  const auto it = uses_.find(user);
  return it == uses_.end() ? 0 : it->second;
}

double RecentUse::weight(UserId user, size_t users, double own) const {
  return own * std::max(kLeastWeight, std::exp2(-of(user) * static_cast<double>(users) / own));
}

}  // namespace muster::core
