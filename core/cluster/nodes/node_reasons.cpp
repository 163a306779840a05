#include "core/cluster/nodes/node_reasons.hpp"

#include <algorithm>

namespace muster::core {

namespace {

bool has(const NodeSpec& spec, const Taint& taint) {
  return std::find(spec.taints.begin(), spec.taints.end(), taint) != spec.taints.end();
}

std::string written(const Taint& taint) {
  return taint.key + (taint.value.empty() ? "" : "=" + taint.value) + ":" + taint.effect;
}

std::string why(const NodeSpec& spec, const std::string& what) {
  const NodeReason* const reason = reason_of(spec, what);
  return reason == nullptr || reason->text.empty() ? "" : ": " + reason->text;
}

}  // namespace

std::string taint_name(const Taint& taint) {
  return taint.key + ":" + taint.effect;
}

const NodeReason* reason_of(const NodeSpec& spec, const std::string& what) {
  const auto found = std::ranges::find(spec.reasons, what, &NodeReason::what);
  return found == spec.reasons.end() ? nullptr : &*found;
}

std::vector<NodeReason> reasons_after(const NodeSpec& before, const NodeSpec& now,
                                      const GivenReasons& given, const std::string& by,
                                      Millis at_ms) {
  std::vector<NodeReason> reasons;
  const auto keep = [&](const std::string& what, bool is_new,
                        const std::optional<std::string>& said) {
    const NodeReason* const known = is_new ? nullptr : reason_of(before, what);
    if (known != nullptr && (!said || *said == known->text))
      reasons.push_back(*known);
    else if (is_new || said)
      reasons.push_back({what, by, at_ms, said.value_or("")});
  };
  if (now.unschedulable) keep(kCordon, !before.unschedulable, given.cordon);
  const bool adds = std::ranges::any_of(
      now.taints, [&before](const Taint& taint) { return !has(before, taint); });
  for (const Taint& taint : now.taints) {
    const bool is_new = !has(before, taint);
    keep(taint_name(taint), is_new, is_new || !adds ? given.taint : std::nullopt);
  }
  return reasons;
}

std::vector<NodeNews> news_of(const NodeSpec& before, const NodeSpec& now, const std::string& by) {
  std::vector<NodeNews> news;
  if (now.unschedulable && !before.unschedulable)
    news.push_back({"NodeNotSchedulable", by + " cordoned the node" + why(now, kCordon)});
  if (before.unschedulable && !now.unschedulable)
    news.push_back({"NodeSchedulable", by + " uncordoned the node"});
  for (const Taint& taint : now.taints)
    if (!has(before, taint))
      news.push_back(
          {"TaintAdded", by + " added the taint " + written(taint) + why(now, taint_name(taint))});
  for (const Taint& taint : before.taints)
    if (!has(now, taint))
      news.push_back({"TaintRemoved", by + " removed the taint " + written(taint)});
  if (news.size() > kNodeNewsMax) news.resize(kNodeNewsMax);
  return news;
}

std::string who_and_why(const NodeReason& reason) {
  return reason.by + (reason.text.empty() ? "" : ": " + reason.text);
}

}  // namespace muster::core
