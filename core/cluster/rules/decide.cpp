#include "core/cluster/rules/decide.hpp"

#include "core/cluster/rules/turn.hpp"

namespace muster::core::cluster {

Decision decide(Cluster& cluster, const std::vector<Event>& events, const Now& now) {
  Turn turn{cluster, now};
  for (const Event& event : events) std::visit([&turn](const auto& one) { turn.take(one); }, event);
  return std::move(turn.out);
}

}  // namespace muster::core::cluster
