#include "core/cluster/rules/decide.hpp"

#include "core/cluster/rules/turn.hpp"

namespace muster::core::cluster {

Decision decide(Cluster& cluster, const Event& event, const Now& now) {
  Turn turn{cluster, now};
  std::visit([&turn](const auto& one) { turn.take(one); }, event);
  return std::move(turn.out);
}

}  // namespace muster::core::cluster
