#include "core/cluster/nodes/demand.hpp"

#include "core/queue/priority_class.hpp"
#include "core/queue/queue.hpp"
#include "core/spec/fields/affinity.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/values/quantity.hpp"

#include <algorithm>

namespace muster::core {

namespace {

constexpr int32_t kClusterCritical = 2'000'000'000;
constexpr int32_t kNodeCritical = 2'000'001'000;
constexpr const char* kUnschedulable = "node.kubernetes.io/unschedulable";
// More than any node has, yet 1,000 times as much still fits into 64 bits.
constexpr int64_t kMost = int64_t{1} << 52;

// Admission validates quantities; a malformed one in a stored job counts as absent.
Amounts amounts_of(const Resources& resources) {
  Amounts amounts;
  auto take = [&amounts](const std::string& name, const std::string& text) {
    auto milli = parse_quantity_milli(text);
    if (!milli) return;
    int64_t whole = std::min(*milli / 1000 + (*milli % 1000 > 0), kMost);
    if (name == "cpu")
      amounts.cpu_millis = std::min(*milli, kMost);
    else if (name == "memory")
      amounts.memory_bytes = whole;
    else if (name.find('/') != std::string::npos)
      amounts.named[name] = whole;
  };
  for (const auto& [name, text] : resources.limits) take(name, text);
  for (const auto& [name, text] : resources.requests) take(name, text);
  std::erase_if(amounts.named, [](const auto& one) { return one.second <= 0; });
  return amounts;
}

void raise_to(Amounts& sum, const Amounts& one) {
  sum.cpu_millis = std::max(sum.cpu_millis, one.cpu_millis);
  sum.memory_bytes = std::max(sum.memory_bytes, one.memory_bytes);
  for (const auto& [name, count] : one.named) sum.named[name] = std::max(sum.named[name], count);
}

bool tolerates(const Toleration& t, const Taint& taint) {
  if (!t.effect.empty() && t.effect != taint.effect) return false;
  if (t.key.empty()) return t.op == "Exists";
  if (t.key != taint.key) return false;
  return t.op == "Exists" || t.value == taint.value;
}

bool may_tolerate(const Demand& demand, const Taint& taint) {
  return !demand.of_user || (taint.effect != "NoExecute" && taint.key != kUnschedulable);
}

bool tolerated(const Demand& demand, const Taint& taint) {
  return may_tolerate(demand, taint) &&
         std::any_of(demand.tolerations.begin(), demand.tolerations.end(),
                     [&taint](const Toleration& t) { return tolerates(t, taint); });
}

}  // namespace

void Amounts::add(const Amounts& other, int64_t times) {
  cpu_millis += other.cpu_millis * times;
  memory_bytes += other.memory_bytes * times;
  for (const auto& [name, count] : other.named) named[name] += count * times;
}

void Amounts::lower_to(const Amounts& other) {
  cpu_millis = std::min(cpu_millis, other.cpu_millis);
  memory_bytes = std::min(memory_bytes, other.memory_bytes);
  for (const auto& [name, count] : other.named) named[name] = std::min(named[name], count);
}

uint32_t times_in(const Amounts& room, const Amounts& each, uint32_t most) {
  int64_t times = most;
  auto limit = [&times](int64_t have, int64_t one) {
    if (one > 0) times = std::min(times, std::max<int64_t>(have, 0) / one);
  };
  limit(room.cpu_millis, each.cpu_millis);
  limit(room.memory_bytes, each.memory_bytes);
  for (const auto& [name, count] : each.named) {
    auto it = room.named.find(name);
    limit(it == room.named.end() ? 0 : it->second, count);
  }
  return static_cast<uint32_t>(times);
}

Demand demand_of(const JobObject& object) {
  const PodTemplate& pod = object.spec.pod;
  Demand demand;
  for (const Container& container : pod.containers)
    demand.amounts.add(amounts_of(container.resources), 1);
  // Sidecars run beside the init containers after them and beside all containers.
  Amounts sidecars;
  std::vector<Amounts> inits;
  for (const Container& container : pod.init_containers) {
    const Amounts amounts = amounts_of(container.resources);
    if (container.sidecar) {
      sidecars.add(amounts, 1);
    } else {
      inits.push_back(sidecars);
      inits.back().add(amounts, 1);
    }
  }
  demand.amounts.add(sidecars, 1);
  for (const Amounts& init : inits) raise_to(demand.amounts, init);
  demand.amounts.cpu_millis = std::min(demand.amounts.cpu_millis, kMost);
  demand.amounts.memory_bytes = std::min(demand.amounts.memory_bytes, kMost);
  for (auto& [name, count] : demand.amounts.named) count = std::min(count, kMost);
  demand.time_limit_s = pod.active_deadline_s;
  demand.of_user = is_users(object.meta.annotations);
  demand.node_selector = pod.node_selector;
  demand.node_name = pod.node_name;
  demand.affinity = pod.node_affinity;
  demand.tolerations = pod.tolerations;
  if (pod.priority_class_name == "system-cluster-critical")
    demand.priority = kClusterCritical;
  else if (pod.priority_class_name == "system-node-critical")
    demand.priority = kNodeCritical;
  else
    demand.priority = pod.priority.value_or(0);
  if (!pod.priority_class_name.starts_with(kSystemPrefix))
    demand.priority_class = pod.priority_class_name;
  demand.own_priority = pod.priority || demand.priority != 0;
  demand.given_priority = object.priority_given;
  demand.given_queue = object.queue_given;
  demand.given_time = object.time_given;
  demand.queue = queue_of(object.meta.annotations);
  // `kept` is canonical JSON: quotes inside a string are escaped, so only the field itself matches.
  demand.preempts = pod.kept.find(R"("preemptionPolicy":"Never")") == std::string::npos;
  auto limited = [&demand](const Container& container) {
    demand.memory_limit |= container.resources.limits.contains("memory");
    demand.cpu_limit |= container.resources.limits.contains("cpu");
  };
  for (const Container& container : pod.containers) limited(container);
  for (const Container& container : pod.init_containers) limited(container);
  const JobAnnotations annotations = read_annotations(object.meta.annotations);
  demand.gang = annotations.gang;
  demand.placement = annotations.placement;
  auto mounts = [](const Container& container) { return !container.volume_mounts.empty(); };
  if (annotations.private_tmp ||
      std::any_of(pod.containers.begin(), pod.containers.end(), mounts) ||
      std::any_of(pod.init_containers.begin(), pod.init_containers.end(), mounts))
    demand.node_selector.emplace(kVolumesLabel, "true");
  demand.stay = stay_of(object);
  return demand;
}

bool alike(const Demand& a, const Demand& b) {
  return a.amounts == b.amounts && a.node_selector == b.node_selector &&
         a.queue_selector == b.queue_selector && a.node_name == b.node_name &&
         a.affinity.required == b.affinity.required && a.tolerations == b.tolerations &&
         a.memory_limit == b.memory_limit && a.cpu_limit == b.cpu_limit && a.of_user == b.of_user &&
         a.avoids == b.avoids && a.stay == b.stay;
}

Amounts capacity_of(const NodeInfo& node) {
  return {static_cast<int64_t>(node.cpu_millis), static_cast<int64_t>(node.memory_bytes),
          node.resources};
}

bool has_labels(const StringMap& labels, const StringMap& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&labels](const auto& one) {
    const auto it = labels.find(one.first);
    return it != labels.end() && it->second == one.second;
  });
}

bool selects(const NodeInfo& node, const StringMap& labels, const Demand& demand) {
  if (!demand.node_name.empty() && demand.node_name != node.name) return false;
  if (!has_labels(labels, demand.node_selector) || !has_labels(labels, demand.queue_selector))
    return false;
  return is_required(demand.affinity, node.name, labels);
}

bool admits(const NodeInfo& node, const StringMap& labels, const Demand& demand) {
  if (!selects(node, labels, demand)) return false;
  if (!enforces(node, demand)) return false;
  if (demand.avoids.contains(node.id)) return false;
  if (node.spec.unschedulable && !tolerated(demand, {kUnschedulable, "", "NoSchedule"}))
    return false;
  return std::all_of(node.spec.taints.begin(), node.spec.taints.end(), [&](const Taint& taint) {
    return taint.effect == "PreferNoSchedule" || tolerated(demand, taint);
  });
}

bool enforces(const NodeInfo& node, const Demand& demand) {
  const LimitSupport& limits = node.limits;
  return !limits.required ||
         ((limits.memory || !demand.memory_limit) && (limits.cpu || !demand.cpu_limit));
}

std::optional<Millis> may_stay(const NodeInfo& node, const Demand& demand) {
  constexpr int64_t kFar = 1'000'000'000;  // seconds
  std::optional<Millis> least;
  for (const Taint& taint : node.spec.taints) {
    if (taint.effect != "NoExecute") continue;
    bool found = false;
    for (const Toleration& t : demand.tolerations) {
      if (!may_tolerate(demand, taint) || !tolerates(t, taint)) continue;
      found = true;
      if (!t.seconds) continue;
      Millis span = std::clamp<int64_t>(*t.seconds, 0, kFar) * 1000;
      least = std::min(least.value_or(span), span);
    }
    if (!found) return 0;
  }
  return least;
}

uint32_t reluctance(const NodeInfo& node, const Demand& demand) {
  return static_cast<uint32_t>(
      std::count_if(node.spec.taints.begin(), node.spec.taints.end(), [&](const Taint& taint) {
        return taint.effect == "PreferNoSchedule" && !tolerated(demand, taint);
      }));
}

}  // namespace muster::core
