#include "core/standby/follower.hpp"

#include <algorithm>
#include <utility>

namespace muster::core::standby {

Follower::Follower(Timing timing, std::string me, std::set<std::string> seats, uint64_t epoch,
                   Millis started)
    : timing_(timing),
      me_(std::move(me)),
      seats_(std::move(seats)),
      epoch_(epoch),
      term_(epoch),
      promised_until_(started + timing.promise_ms) {}

void Follower::sees(uint64_t term) {
  term_ = std::max(term_, term);
}

void Follower::promises(Millis now) {
  promised_until_ = std::max(promised_until_, now + timing_.promise_ms);
}

void Follower::released(uint64_t term) {
  if (term == term_) promised_until_ = 0;
}

Follower::Next Follower::judge(uint64_t commit, uint64_t last) {
  if (commit <= last) return Next::has_it;
  return commit == last + 1 ? Next::apply : Next::gap;
}

Follower::Why Follower::may_take(const Configuration& seen, bool key_held, Millis now) const {
  if (key_held) return Why::led;
  const auto it = seen.in_sync.find(me_);
  if (it == seen.in_sync.end()) return Why::not_in_sync;
  if (!seats_.contains(it->second)) return Why::outdated;
  // Our former process led in this term, so no leader of an older one can have a promise of ours.
  // That the store names us is not enough: a write with which we tried to take the lead may have
  // arrived after we had promised to leave it alone.
  const bool led = seen.leader == me_ && seen.term == epoch_;
  if (!led && now < promised_until_) return Why::promised;
  return Why::may;
}

Configuration Follower::takes(const Configuration& seen, uint64_t epoch, std::string seat,
                              Place place) {
  taking_ = true;
  Configuration next = seen;
  next.term = std::max({seen.term, term_, epoch}) + 1;
  next.leader = me_;
  next.in_sync = {{me_, std::move(seat)}};
  next.members[me_] = std::move(place);
  return next;
}

}  // namespace muster::core::standby
