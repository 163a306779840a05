#include "api/view/render/misfits.hpp"

#include "api/view/query/object_json.hpp"
#include "base/text/time_text.hpp"
#include "core/cluster/nodes/node_reasons.hpp"
#include "core/cluster/slots/free_node.hpp"
#include "core/job/shown/hold_text.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/values/duration.hpp"

#include <algorithm>

namespace muster::api {
namespace {

std::optional<Shortage> shortage(const core::Amounts& room, const core::Amounts& each) {
  if (room.cpu_millis < each.cpu_millis) return Shortage{"cpu", each.cpu_millis, room.cpu_millis};
  if (room.memory_bytes < each.memory_bytes)
    return Shortage{"memory", each.memory_bytes, room.memory_bytes};
  for (const auto& [name, wanted] : each.named) {
    const auto it = room.named.find(name);
    const int64_t there = it == room.named.end() ? 0 : it->second;
    if (there < wanted) return Shortage{name, wanted, there};
  }
  return std::nullopt;
}

// "64", "500m", "16Gi", as in a manifest; memory in whole Mi, rounded down.
std::string amount_text(const std::string& resource, int64_t amount) {
  constexpr int64_t kKi = 1024;
  amount = std::max<int64_t>(amount, 0);  // negative: overcommitted
  if (resource == "cpu" && amount % 1000 == 0) return std::to_string(amount / 1000);
  if (resource == "cpu") return std::to_string(amount) + "m";
  if (resource != "memory" || amount < kKi) return std::to_string(amount);
  if (amount < kKi * kKi) return std::to_string(amount / kKi) + "Ki";
  if (amount % (kKi * kKi * kKi) == 0) return std::to_string(amount / (kKi * kKi * kKi)) + "Gi";
  return std::to_string(amount / (kKi * kKi)) + "Mi";
}

// Why one more such pod does not fit on a node now. Nodes with the same `brief` and `text` are
// listed together; a shortage is reported for the node that has most.
struct Misfit {
  std::string brief;  // for the summary: "full"
  std::string text;   // for the details: "all 2 slots are in use"
  std::optional<Shortage> shortage{};
};

std::string limit_text(const core::Stay& stay) {
  if (!stay.limit_ms) return "the job's pods have no time limit (--time)";
  return "the job's pods may run " + core::duration_text(*stay.limit_ms) + " and take " +
         core::duration_text(stay.grace_ms) + " to end";
}

// "olga: replace DIMM, since 2027-01-31T08:15:00Z". Whole minutes, so that nodes that were closed
// together are listed together.
std::string given_text(const core::NodeReason& reason) {
  constexpr Millis kMinuteMs = 60'000;
  return core::who_and_why(reason) + ", since " +
         time_text(reason.at_ms - reason.at_ms % kMinuteMs);
}

// The node ends, or is reserved for others, before such a pod would have ended.
std::optional<Misfit> ends_too_soon(const core::NodeInfo& node, const core::Stay& stay,
                                    Millis now) {
  const core::NodeEnds ends = core::ends_of(node);
  const auto end = core::first_conflict(ends, stay, now);
  if (!end) return std::nullopt;
  if (end->window == nullptr)
    return Misfit{"ending",
                  "ending at " + time_text(end->at_ms) + "; " +
                      (stay.limit_ms ? limit_text(stay)
                                     : "the job's pods take " + core::duration_text(stay.grace_ms) +
                                           " to end")};
  const core::Window& window = *end->window;
  const std::string what = "(" + window.name + (window.by.empty() ? "" : " by " + window.by) +
                           (window.reason.empty() ? "" : ": " + window.reason) + ")";
  if (window.from_ms <= now)
    return Misfit{"reserved", "reserved until " + time_text(window.until_ms) + " " + what};
  return Misfit{"reserved", "reserved from " + time_text(window.from_ms) + " " + what + "; " +
                                limit_text(stay)};
}

// nullopt: it fits.
std::optional<Misfit> misfit(const core::NodeInfo& node, uint32_t used, const core::Amounts& taken,
                             const core::Demand& demand, Millis now) {
  if (node.health != core::NodeInfo::Health::ready) return Misfit{"not ready", "not ready"};
  if (node.draining) return Misfit{"draining", "draining, its agent is shutting down"};
  if (const core::NodeTrouble found = reported_trouble(node))
    return Misfit{"not ready", found.reason + ": " + found.message};
  if (node.spec.unschedulable) {
    const core::NodeReason* const why = core::reason_of(node.spec, core::kCordon);
    return Misfit{"cordoned", why == nullptr ? "cordoned" : "cordoned by " + given_text(*why)};
  }
  if (!core::enforces(node, demand))
    return Misfit{"without limits", "does not enforce the pod's limits (--require-limits)"};
  const core::StringMap labels = core::labels_of(node);
  if (const auto mounts = demand.node_selector.find(std::string(core::kVolumesLabel));
      mounts != demand.node_selector.end() && !labels.contains(mounts->first))
    return Misfit{
        "without mounts",
        "cannot mount volumes: its keeper gets no user namespaces (label " + mounts->first + ")"};
  if (!core::selects(node, labels, demand))
    return Misfit{"excluded", demand.affinity.required
                                  ? "labels do not match the job's nodeSelector and nodeAffinity"
                                  : "labels do not match the job's nodeSelector"};
  if (demand.avoids.contains(node.id))
    return Misfit{"avoided",
                  "could not start the job's pods a short while ago, so others are tried"};
  if (!core::admits(node, labels, demand)) {
    std::string why;
    for (const core::NodeReason& one : node.spec.reasons)
      why += (why.empty() ? " (" : "; ") + one.what + " by " + given_text(one);
    const bool by_right =
        demand.of_user && std::ranges::any_of(node.spec.taints, [](const auto& t) {
          return t.effect == "NoExecute";
        });
    return Misfit{"tainted",
                  std::string(by_right ? "NoExecute taints, which users' jobs cannot tolerate"
                                       : "taints that the job does not tolerate") +
                      why + (why.empty() ? "" : ")")};
  }
  if (auto ends = ends_too_soon(node, demand.stay, now)) return ends;
  core::Amounts room = core::capacity_of(node);
  if (auto lack = shortage(room, demand.amounts)) return Misfit{"too small", "", lack};
  if (used >= node.slots)
    return Misfit{"full", node.slots == 1 ? "its slot is in use"
                                          : "all " + count(node.slots, "slot") + " are in use"};
  room.add(taken, -1);
  if (auto lack = shortage(room, demand.amounts))
    return Misfit{"short of " + lack->resource, "", lack};
  return std::nullopt;
}

// What Kubernetes' scheduler calls it.
std::string scheduler_words(const std::string& brief, const Misfits::Nodes& nodes) {
  if (nodes.most) return "Insufficient " + nodes.most->resource;
  if (brief == "full") return "Too many pods";
  if (brief == "cordoned" || brief == "draining") return "node(s) were unschedulable";
  if (brief == "tainted") return "node(s) had untolerated taint(s)";
  if (brief == "excluded") return "node(s) didn't match Pod's node affinity/selector";
  if (brief == "without limits") return "node(s) do not enforce the pod's limits";
  if (brief == "without mounts") return "node(s) cannot mount volumes";
  if (brief == "avoided") return "node(s) could not start such pods";
  if (brief == "ending" || brief == "reserved")
    return "node(s) end or are reserved before the pod could end";
  return "node(s) were not ready";
}

}  // namespace

std::string count(uint64_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

Taken taken_now(const View& view) {
  Taken taken;
  view.jobs().each_active([&](const core::Job& job) {
    std::map<core::Steps, core::Amounts> amounts;
    const auto owner = core::owner_uid(job.object().meta.annotations);
    for (const auto& [key, pod] : job.state().open) {
      if (!pod.bound()) continue;
      if (owner) ++taken.pods_of[*owner];
      ++taken.slots[pod.node];
      const auto [each, fresh] = amounts.try_emplace(pod.steps);
      if (fresh) each->second = demand_with(job, pod.steps).amounts;
      taken.amounts[pod.node].add(each->second, 1);
    }
  });
  return taken;
}

Misfits misfits(const View& view, const core::Demand& demand, const Taken& taken, Millis now) {
  Misfits out;
  static const core::Amounts kNothing;
  view.each(Kind::node, "", nullptr, [&](const Shown& shown) {
    const core::NodeInfo& node = *shown.node;
    if (!demand.node_name.empty() && demand.node_name != node.name) return;
    ++out.all;
    const auto slots = taken.slots.find(node.id);
    const auto amounts = taken.amounts.find(node.id);
    auto found = misfit(node, slots == taken.slots.end() ? 0 : slots->second,
                        amounts == taken.amounts.end() ? kNothing : amounts->second, demand, now);
    if (!found) {
      ++out.fit;
      found = Misfit{"", "fits, but its free slots are reserved or about to be assigned"};
    } else {
      ++out.briefs[found->brief];
    }
    const std::string& what = found->shortage ? found->shortage->resource : found->text;
    Misfits::Nodes& nodes = out.reasons[{found->brief, what}];
    nodes.names.push_back(node.name);
    if (found->shortage && (!nodes.most || nodes.most->there < found->shortage->there))
      nodes.most = found->shortage;
  });
  return out;
}

// Nodes that are down or closed now may be back.
Places places_of(const View& view, const core::Demand& demand) {
  Places places;
  view.each(Kind::node, "", nullptr, [&](const Shown& shown) {
    const core::NodeInfo& node = *shown.node;
    if (!demand.node_name.empty() && demand.node_name != node.name) return;
    const core::StringMap labels = core::labels_of(node);
    if (!core::selects(node, labels, demand)) return;
    places.slots += node.slots;
    places.pods += core::times_in(core::capacity_of(node), demand.amounts, node.slots);
  });
  return places;
}

std::string unlimited_nodes(const View& view, const core::Demand& demand) {
  constexpr size_t kNamed = 3;
  if (!demand.memory_limit) return "";
  std::string names, why;
  size_t all = 0;
  view.each(Kind::node, "", nullptr, [&](const Shown& shown) {
    const core::NodeInfo& node = *shown.node;
    if (!demand.node_name.empty() && demand.node_name != node.name) return;
    // Before it registers, nothing is known of it.
    if (node.health == core::NodeInfo::Health::unknown || node.limits.memory) return;
    const core::StringMap labels = core::labels_of(node);
    if (!core::enforces(node, demand) || !core::selects(node, labels, demand) ||
        !core::admits(node, labels, demand) ||
        core::times_in(core::capacity_of(node), demand.amounts, 1) == 0)
      return;
    if (++all <= kNamed) names += (names.empty() ? "" : ", ") + node.name;
    if (why.empty()) why = node.limits.why;
  });
  if (all == 0) return "";
  if (all > kNamed) names += " and " + count(all - kNamed, "other");
  return names + (why.empty() ? "" : ": " + why);
}

std::string reason_text(const std::string& brief, const std::string& text,
                        const Misfits::Nodes& nodes) {
  if (!nodes.most) return text;
  const Shortage& lack = *nodes.most;
  const std::string there = amount_text(lack.resource, lack.there);
  const std::string wanted =
      "the pod requests " + amount_text(lack.resource, lack.requested) + " " + lack.resource;
  if (brief != "too small") return wanted + "; at most " + there + " free";
  return wanted + (nodes.names.size() == 1 ? "; the node has " : "; the largest has ") + there;
}

std::string scheduling_text(const Misfits& misfits) {
  if (misfits.fit > 0) return "";
  if (misfits.all == 0) return "no nodes available to schedule pods";
  std::map<std::string, size_t> reasons;
  for (const auto& [reason, nodes] : misfits.reasons)
    reasons[scheduler_words(reason.first, nodes)] += nodes.names.size();
  std::string list;
  for (const auto& [words, nodes] : reasons)
    list += (list.empty() ? "" : ", ") + std::to_string(nodes) + " " + words;
  return "0/" + std::to_string(misfits.all) + " nodes are available: " + list + ".";
}

core::Demand demand_with(const core::Job& job, core::Steps steps) {
  return core::demand_of(steps.any() ? *core::placed_object(job, steps) : job.object());
}

core::Demand demand_now(const core::Job& job, core::Steps steps, Millis now) {
  core::Demand demand = demand_with(job, steps);
  for (const auto& [node, trouble] : job.state().start_trouble)
    if (now < trouble.at_ms + core::Slots::kAvoidMs) demand.avoids.insert(node);
  return demand;
}

const std::string& SchedulingTexts::of(const core::Job& job, core::Steps steps, Millis now) {
  if (now - made_ms_ >= kFreshMs || now < made_ms_) {
    made_ms_ = now;
    taken_ = taken_now(view_);
    texts_.clear();
  }
  const auto [found, added] = texts_.try_emplace(core::in_steps(job.id(), steps));
  if (!added) return found->second;
  found->second = job.on_hold()
                      ? core::hold_text(*job.state().hold)
                      : scheduling_text(misfits(view_, demand_now(job, steps, now), taken_, now));
  return found->second;
}

}  // namespace muster::api
