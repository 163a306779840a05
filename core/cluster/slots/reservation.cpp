#include "core/cluster/slots/reservation.hpp"

#include <algorithm>

namespace muster::core {

namespace {

// From then on, this many more of the job's pods fit on the node.
struct Step {
  Millis at_ms = 0;
  NodeId node = kNoNode;
  uint32_t pods = 0;
  bool known = true;
};

// In the order of time, until `most` fit.
void add_steps(const Outlook& outlook, const Demand& demand, uint32_t most, Millis now,
               std::vector<Step>& steps) {
  FreeNode node = outlook.node;
  std::vector<const Ending*> endings;
  for (const Ending& one : outlook.endings) endings.push_back(&one);
  std::stable_sort(endings.begin(), endings.end(),
                   [](const Ending* a, const Ending* b) { return a->at_ms < b->at_ms; });
  uint32_t fit = 0;
  bool known = true;
  auto look = [&](Millis at_ms) {
    node.wall_ms = outlook.node.wall_ms + at_ms - now;
    const uint32_t room = room_for(node, demand, most);
    if (room <= fit) return;
    steps.push_back({at_ms, node.node, room - fit, known});
    fit = room;
  };
  look(now);
  for (const Ending* one : endings) {
    if (fit >= most) return;
    const uint32_t free = one->pods - std::min(one->pods, node.over);
    node.over -= std::min(node.over, one->pods);
    node.free += free;
    known &= one->known;
    if (one->demand) node.room.add(one->demand->amounts, one->pods);
    look(std::max(now, one->at_ms));
  }
}

uint32_t needed(const WaitingJob& job) {
  return demand_of(job).gang ? job.wanted : std::min<uint32_t>(job.wanted, 1);
}

}  // namespace

std::optional<Plan> plan(const std::vector<Outlook>& nodes, const WaitingJob& job, Millis now) {
  uint32_t left = needed(job);
  std::vector<Step> steps;
  for (const Outlook& outlook : nodes)
    if (admits(outlook.node, demand_of(job))) add_steps(outlook, demand_of(job), left, now, steps);
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return a.at_ms != b.at_ms ? a.at_ms < b.at_ms : a.pods > b.pods;
  });
  Plan plan;
  for (const Step& step : steps) {
    if (left == 0) break;
    const uint32_t pods = std::min(left, step.pods);
    plan.places[step.node] += pods;
    plan.due.start_ms = step.at_ms;
    plan.due.known &= step.known;
    left -= pods;
  }
  if (left > 0 || plan.places.empty()) return std::nullopt;
  return plan;
}

std::optional<Due> start_of(const Reservation& places, const std::vector<Outlook>& nodes,
                            const WaitingJob& job, Millis now) {
  Due due{now};
  size_t found = 0;
  for (const Outlook& outlook : nodes) {
    const auto place = places.find(outlook.node.node);
    if (place == places.end()) continue;
    ++found;
    std::vector<Step> steps;
    if (admits(outlook.node, demand_of(job)))
      add_steps(outlook, demand_of(job), place->second, now, steps);
    uint32_t fit = 0;
    for (const Step& step : steps) {
      if (fit >= place->second) break;
      fit += step.pods;
      due.start_ms = std::max(due.start_ms, step.at_ms);
      due.known &= step.known;
    }
    if (fit < place->second) return std::nullopt;
  }
  return found == places.size() ? std::optional(due) : std::nullopt;
}

}  // namespace muster::core
