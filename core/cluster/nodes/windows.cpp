#include "core/cluster/nodes/windows.hpp"

#include "core/spec/fields/owner.hpp"

#include <algorithm>

namespace muster::core {

namespace {

constexpr int64_t kLimitMaxS = 1'000'000'000;
// A time limit plus a grace, which cannot overflow.
constexpr int64_t kGraceMaxS = 1'000'000'000;

bool admits(const Window& window, const Stay& stay) {
  if (stay.user.empty()) return false;
  return std::ranges::find(window.users, stay.user) != window.users.end() ||
         std::ranges::any_of(window.groups, [&stay](const auto& group) {
           return std::ranges::find(stay.groups, group.second) != stay.groups.end();
         });
}

bool is_running(const Window& window, Millis now_ms) {
  return window.from_ms <= now_ms && now_ms < window.until_ms;
}

}  // namespace

Stay stay_of(const JobObject& object) {
  const PodTemplate& pod = object.spec.pod;
  Stay stay;
  if (const auto limit = pod.active_deadline_s)
    stay.limit_ms = std::clamp<int64_t>(*limit, 0, kLimitMaxS) * 1000;
  if (const auto grace = pod.termination_grace_s)
    stay.grace_ms = std::clamp<int64_t>(*grace, 0, kGraceMaxS) * 1000;
  if (auto owner = owner_of(object.meta.annotations)) {
    stay.user = std::move(owner->name);
    stay.groups = std::move(owner->groups);
    stay.groups.push_back(owner->gid);
  }
  return stay;
}

NodeEnds ends_of(const NodeInfo& node) {
  return {node.until_ms, windows_of(node.spec.annotations)};
}

std::optional<NodeEnd> first_conflict(const NodeEnds& ends, const Stay& stay, Millis now_ms) {
  std::optional<NodeEnd> first;
  const Millis over_ms = now_ms + stay.limit_ms.value_or(0) + stay.grace_ms;
  if (ends.agent_ms && over_ms > *ends.agent_ms) first = NodeEnd{*ends.agent_ms, nullptr};
  for (const Window& window : ends.windows) {
    if (window.until_ms <= now_ms || admits(window, stay)) continue;
    if (stay.limit_ms && over_ms <= window.from_ms) continue;
    if (!first || window.from_ms < first->at_ms) first = NodeEnd{window.from_ms, &window};
  }
  return first;
}

bool must_leave(const NodeEnds& ends, const Stay& stay, Millis now_ms) {
  return std::ranges::any_of(ends.windows, [&](const Window& window) {
    return is_running(window, now_ms) && !admits(window, stay);
  });
}

bool is_reserved(const NodeEnds& ends, Millis now_ms) {
  return std::ranges::any_of(ends.windows,
                             [now_ms](const Window& window) { return is_running(window, now_ms); });
}

bool is_to_come(const NodeEnds& ends, Millis now_ms) {
  return ends.agent_ms || std::ranges::any_of(ends.windows, [now_ms](const Window& window) {
           return now_ms < window.until_ms;
         });
}

bool window_turns(const NodeEnds& ends, Millis before_ms, Millis now_ms) {
  auto passed = [&](Millis at_ms) { return before_ms < at_ms && at_ms <= now_ms; };
  return std::ranges::any_of(ends.windows, [&](const Window& window) {
    return passed(window.from_ms) || passed(window.until_ms);
  });
}

}  // namespace muster::core
