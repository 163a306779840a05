#include "core/cluster/nodes/arrangement.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace muster::core {

namespace {

std::vector<uint32_t> pack(const std::vector<Place>& places, uint64_t left) {
  std::vector<uint32_t> taken(places.size());
  std::vector<size_t> order(places.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto used = [&places](size_t i) { return places[i].held > 0; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return used(a) != used(b) ? used(a) : places[a].room > places[b].room;
  });
  for (auto it = order.begin(); it != order.end() && left > 0; ++it) {
    size_t at = *it;
    for (auto next = it; next != order.end() && used(*next) == used(*it); ++next) {
      if (places[*next].room < left) break;
      if (places[*next].room < places[at].room) at = *next;
    }
    taken[at] = static_cast<uint32_t>(std::min<uint64_t>(left, places[at].room));
    left -= taken[at];
  }
  return taken;
}

std::vector<uint32_t> spread(const std::vector<Place>& places, uint64_t left) {
  std::vector<uint32_t> taken(places.size());
  // (pods there, negated room left, position); the first place is next.
  std::set<std::tuple<uint64_t, int64_t, size_t>> next;
  auto add = [&](size_t i) {
    const int64_t room = int64_t{places[i].room} - taken[i];
    if (room > 0) next.emplace(uint64_t{places[i].held} + taken[i], -room, i);
  };
  for (size_t i = 0; i < places.size(); ++i) add(i);
  for (; left > 0 && !next.empty(); --left) {
    const size_t i = std::get<2>(*next.begin());
    next.erase(next.begin());
    ++taken[i];
    add(i);
  }
  return taken;
}

}  // namespace

std::vector<uint32_t> arrange(PlacementChoice choice, const std::vector<Place>& places,
                              uint64_t most) {
  return choice == PlacementChoice::pack ? pack(places, most) : spread(places, most);
}

}  // namespace muster::core
