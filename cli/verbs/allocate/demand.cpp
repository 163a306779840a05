#include "cli/verbs/allocate/demand.hpp"

#include <algorithm>
#include <cmath>

namespace muster::cli::allocate {
namespace {

// Fewer, if there is room for only some.
void limit_to(uint64_t& pods, int64_t there, int64_t each) {
  if (each > 0) pods = std::min(pods, static_cast<uint64_t>(std::max<int64_t>(0, there) / each));
}

}  // namespace

bool wants_nodes(const Demand& demand) {
  return demand.waits_for == "slots" || demand.waits_for == "queue_nodes";
}

uint64_t pods_on(const Demand& demand, const Shape& shape, Millis time_ms) {
  if (demand.of_one_node) return 0;
  if (demand.time_limit_s && *demand.time_limit_s * 1000 >= time_ms) return 0;
  for (const auto& [key, value] : demand.node_selector) {
    const auto found = shape.labels.find(key);
    if (found == shape.labels.end() || found->second != value) return 0;
  }
  uint64_t pods = shape.slots;
  limit_to(pods, shape.cpu_millis, demand.cpu_millis);
  limit_to(pods, shape.memory_bytes, demand.memory_bytes);
  for (const auto& [name, each] : demand.named) {
    const auto found = shape.named.find(name);
    limit_to(pods, found == shape.named.end() ? 0 : found->second, each);
  }
  return pods;
}

Need need_of(const std::vector<Demand>& all, const std::optional<Shape>& shape, Millis time_ms) {
  Need need;
  double nodes = 0;
  for (const Demand& demand : all) {
    if (!wants_nodes(demand)) continue;
    const uint64_t each = shape ? pods_on(demand, *shape, time_ms) : demand.pods;
    if (each == 0) continue;
    need.pods += demand.pods;
    need.gang |= demand.gang;
    nodes += static_cast<double>(demand.pods) / static_cast<double>(each);
  }
  constexpr double kRounding = 1e-6;  // a third three times is one node
  if (need.pods > 0)
    need.nodes =
        shape ? static_cast<uint64_t>(std::ceil(std::max(nodes - kRounding, kRounding))) : 1;
  return need;
}

}  // namespace muster::cli::allocate
