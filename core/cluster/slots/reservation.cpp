#include "core/cluster/slots/reservation.hpp"

#include <algorithm>
#include <utility>

namespace muster::core {

Planning::Planning(const WaitingJob& job, Reservation kept, Millis now)
    : needed_(needed(job)),
      demand_(demand_of(job)),
      kept_(std::move(kept)),
      now_(now),
      kept_due_{now} {}

uint32_t Planning::needed(const WaitingJob& job) {
  return demand_of(job).gang ? job.wanted : std::min<uint32_t>(job.wanted, 1);
}

bool Planning::is_for(const WaitingJob& job, const Reservation& kept) const {
  return needed_ == needed(job) && kept_ == kept && alike(demand_, demand_of(job));
}

bool Planning::sooner(const Step& a, const Step& b) {
  if (a.at_ms != b.at_ms) return a.at_ms < b.at_ms;
  return a.pods != b.pods ? a.pods > b.pods : a.number < b.number;
}

// In the order of time, until all that is needed fits.
std::vector<Planning::Step> Planning::steps_of(const Outlook& outlook) const {
  std::vector<Step> steps;
  FreeNode node = outlook.node;
  std::vector<const Ending*> endings;
  for (const Ending& one : outlook.endings) endings.push_back(&one);
  std::stable_sort(endings.begin(), endings.end(),
                   [](const Ending* a, const Ending* b) { return a->at_ms < b->at_ms; });
  uint32_t fit = 0;
  bool known = true;
  Millis doubt_ms = 0;
  auto look = [&](Millis at_ms) {
    node.wall_ms = outlook.node.wall_ms + at_ms - now_;
    const uint32_t room = room_for(node, demand_, needed_);
    if (room <= fit) return;
    steps.push_back({at_ms, node.node, room - fit, known, doubt_ms});
    fit = room;
  };
  look(now_);
  for (const Ending* one : endings) {
    if (fit >= needed_) break;
    const uint32_t free = one->pods - std::min(one->pods, node.over);
    node.over -= std::min(node.over, one->pods);
    node.free += free;
    known &= one->known;
    doubt_ms = std::max(doubt_ms, one->runs_ms);
    if (one->demand) node.room.add(one->demand->amounts, one->pods);
    look(std::max(now_, one->at_ms));
  }
  return steps;
}

void Planning::add(Step step) {
  step.number = numbers_++;
  if (offered_ >= needed_ && (soonest_.empty() || !sooner(step, soonest_.front()))) return;
  offered_ += step.pods;
  soonest_.push_back(step);
  std::push_heap(soonest_.begin(), soonest_.end(), sooner);
  while (offered_ - soonest_.front().pods >= needed_) {
    offered_ -= soonest_.front().pods;
    std::pop_heap(soonest_.begin(), soonest_.end(), sooner);
    soonest_.pop_back();
  }
}

void Planning::look(const Outlook& outlook) {
  looked_ += 1 + outlook.endings.size();
  if (!admits(outlook.node, demand_)) return;
  const std::vector<Step> steps = steps_of(outlook);
  for (const Step& step : steps) add(step);
  const auto kept = kept_.find(outlook.node.node);
  if (kept == kept_.end()) return;
  uint32_t fit = 0;
  for (const Step& step : steps) {
    if (fit >= kept->second) break;
    fit += step.pods;
    kept_due_.start_ms = std::max(kept_due_.start_ms, step.at_ms);
    kept_due_.known &= step.known;
  }
  if (fit >= kept->second) ++kept_found_;
}

std::optional<Plan> Planning::best() const {
  std::vector<Step> steps = soonest_;
  std::sort_heap(steps.begin(), steps.end(), sooner);
  uint32_t left = needed_;
  Plan plan;
  for (const Step& step : steps) {
    if (left == 0) break;
    const uint32_t pods = std::min(left, step.pods);
    plan.places[step.node] += pods;
    plan.due.start_ms = step.at_ms;
    plan.due.known &= step.known;
    plan.due.doubt_ms = std::max(plan.due.doubt_ms, step.doubt_ms);
    left -= pods;
  }
  if (left > 0 || plan.places.empty()) return std::nullopt;
  return plan;
}

std::optional<Due> Planning::due_of_kept() const {
  return kept_found_ == kept_.size() ? std::optional(kept_due_) : std::nullopt;
}

std::optional<Plan> plan(const std::vector<Outlook>& nodes, const WaitingJob& job, Millis now) {
  Planning planning(job, {}, now);
  for (const Outlook& node : nodes) planning.look(node);
  return planning.best();
}

}  // namespace muster::core
