// What jobs want and free, and the rounds of placement.
#include "core/cluster/rules/turn.hpp"

#include <algorithm>
#include <utility>

namespace muster::core::cluster {

namespace {

void moved(Turn& turn, JobId job) {
  if (!turn.cluster.slots().knows(job)) turn.cluster.keepers().erase(job);
  turn.place_soon();
}

// How often what users have had is written down; a crash forgets as much.
constexpr Millis kNoteEveryMs = 60'000;
// Minimum interval between what is shown beside the ticks.
constexpr Millis kShowEveryMs = 200;

}  // namespace

// With every tick.
void Turn::note_uses() {
  Slots& slots = cluster.slots();
  slots.note_use(now.up_ms);
  const Millis age_ms = now.wall_ms - cluster.noted().at_ms;
  // Time alone lowers uses, and needs no note.
  if ((age_ms >= kNoteEveryMs || age_ms < 0) && slots.take_used() && !slots.uses().empty())
    record(UsesNoted{{now.wall_ms, slots.uses()}});
  show_shares();
}

// After a round that somebody may want to know more about than the next tick tells. Not after each:
// it looks at all jobs.
void Turn::show_shares_soon() {
  if (!cluster.shares_due()) return;
  const Millis wait_ms = cluster.shares_up_ms() + kShowEveryMs - now.up_ms;
  if (wait_ms > 0) return at_once(PlaceAfter{wait_ms});
  show_shares();
}

void Turn::show_shares() {
  Slots& slots = cluster.slots();
  cluster.shares_due() = false;
  cluster.shares_up_ms() = now.up_ms;
  ShowShares shares{slots.standings(), std::nullopt};
  // Of pods with steps, what is said is said of their job, whose other pods come first.
  for (auto& [job, wait] : slots.queue_waits())
    shares.queue_waits.try_emplace(job_of(job), std::move(wait));
  if (const auto awaited = slots.awaited()) {
    shares.kept_for = job_of(awaited->job);
    shares.expected_ms = now.wall_ms + std::max<Millis>(0, awaited->start_ms - now.up_ms);
  }
  for (Expectation& one : slots.line(now.up_ms)) {
    if (one.start_ms) *one.start_ms += now.wall_ms - now.up_ms;
    one.job = job_of(one.job);
    shares.line.emplace(one.job, one);
  }
  const bool any = !shares.standings.empty() || shares.kept_for || !shares.queue_waits.empty() ||
                   !shares.line.empty();
  if (std::exchange(cluster.shares_shown(), any) || any) at_once(std::move(shares));
}

void Turn::take(const Want& event) {
  const bool fresh = !cluster.slots().knows(event.job);
  cluster.slots().want(event.job, event.pending, event.received, event.object);
  if (fresh && cluster.slots().is_limited(event.job)) cluster.shares_due() = true;
  moved(*this, event.job);
}

void Turn::take(const Freed& event) {
  note_failed_starts(event);
  cluster.slots().avoid(event.job, event.avoid, now.up_ms);
  cluster.slots().freed(event.job, event.slots, event.quick, event.ran, now.up_ms);
  moved(*this, event.job);
}

void Turn::take(const JobLeft& event) {
  Slots& slots = cluster.slots();
  slots.left(event.job);
  moved(*this, event.job);
  each_steps([&](Steps steps) {
    const JobId job = in_steps(event.job, steps);
    if (!slots.knows(job)) return;
    slots.left(job);
    moved(*this, job);
  });
}

// They act at once, also on jobs that wait or keep slots.
void Turn::take(const QueuesChanged& event) {
  cluster.slots().set_queues(event.queues, event.classes);
  cluster.queues_known() = true;
  cluster.shares_due() = true;
  return_slots();
  place_soon();
}

void Turn::take(const PlaceNow&) {
  if (!cluster.queues_known()) return;
  Slots& slots = cluster.slots();
  const std::map<NodeId, uint32_t> probed = let_probes_through();
  slots.set_wall(now.wall_ms - now.up_ms);
  Slots::Round round = slots.place(now.up_ms);
  close_after(probed);
  for (JobId job : round.nowhere) {
    at_once(TellNowhere{job});
    forgive(job_of(job));
  }
  const bool enough = !slots.lacks();
  if (!enough)
    return_slots();
  else if (slots.any_waits())
    return_limited();
  for (auto at = round.grants.cbegin(); at != round.grants.cend();) {
    const JobId job = at->job;
    const bool keep = enough && slots.may_keep(job);
    if (keep)
      cluster.keepers().insert(job);
    else
      cluster.keepers().erase(job);
    Grant grant{job, {}, {}, keep};
    for (; at != round.grants.cend() && at->job == job; ++at) {
      grant.slots.emplace_hint(grant.slots.end(), at->node, at->pods);
      grant.links.emplace_hint(grant.links.end(), at->node, cluster.node(at->node)->link.value());
    }
    at_once(std::move(grant));
  }
  for (auto& [job, taken] : round.victims) {
    for (auto [node, count] : taken)
      log(Log::Level::info, "j" + std::to_string(job_of(job)) + " loses " + std::to_string(count) +
                                (count == 1 ? " slot" : " slots") + " on n" + std::to_string(node) +
                                " to a job of higher priority");
    at_once(TakeBack{job, std::move(taken)});
  }
  for (auto& [job, nodes] : round.tainted) at_once(TellLeave{job, std::move(nodes)});
  show_shares_soon();
  if (round.again_ms) at_once(PlaceAfter{*round.again_ms});
}

}  // namespace muster::core::cluster
