// What fits on a node.
#include "core/cluster/slots/free_node.hpp"

#include <algorithm>

namespace muster::core {

bool admits(const FreeNode& node, const Demand& demand) {
  if (node.ends && first_conflict(*node.ends, demand.stay, node.wall_ms)) return false;
  return !node.info || !node.labels || admits(*node.info, *node.labels, demand);
}

uint32_t room_for(const FreeNode& node, const Demand& demand, uint64_t most) {
  auto count = static_cast<uint32_t>(std::min<uint64_t>(most, node.free));
  if (count == 0 || !admits(node, demand)) return 0;
  return demand.amounts.none() ? count : times_in(node.room, demand.amounts, count);
}

void occupy(FreeNode& node, const Demand& demand, uint32_t count) {
  node.free -= std::min(node.free, count);
  if (!demand.amounts.none()) node.room.add(demand.amounts, -int64_t{count});
}

}  // namespace muster::core
