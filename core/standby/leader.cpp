#include "core/standby/leader.hpp"

#include "base/check.hpp"

#include <algorithm>

namespace muster::core::standby {

Leader::Leader(Timing timing, std::string me, Configuration held, Millis leased, uint64_t commit)
    : timing_(timing),
      me_(std::move(me)),
      held_(std::move(held)),
      last_(commit),
      synced_(commit),
      leased_(leased) {
  MUSTER_CHECK(held_.leader == me_, held_.leader, me_);
  note();
}

void Leader::begins(uint64_t commit, Millis now) {
  MUSTER_CHECK(commit > last_, commit, last_);
  last_ = commit;
  begun_.emplace_back(commit, now);
  for (auto& [name, follower] : followers_)
    if (!follower.owes) follower.owes.emplace(commit, now);
}

void Leader::synced(uint64_t commit) {
  synced_ = std::max(synced_, commit);
  note();
}

uint64_t Leader::on_all() const {
  uint64_t commit = synced_;
  for (const std::string& member : others()) {
    const auto it = followers_.find(member);
    const bool counts = it != followers_.end() && !is_older_copy(member, it->second);
    commit = std::min(commit, counts ? it->second.commit : 0);
  }
  return commit;
}

void Leader::follows(const std::string& member, uint64_t commit, std::set<std::string> seats) {
  Follower& follower = followers_[member];
  const bool lost = may_take_over(member) && (follower.lost || commit < follower.commit);
  follower = Follower();
  follower.commit = commit;
  follower.seats = std::move(seats);
  follower.lost = lost;
  owe(follower);
  note();
}

void Leader::leaves(const std::string& member, Millis now) {
  const auto it = followers_.find(member);
  if (it == followers_.end()) return;
  it->second.gone = std::min(now, it->second.gone.value_or(now));
  if (!may_take_over(member)) followers_.erase(it);
  note();
}

void Leader::ends(const std::string& member) {
  leaves(member, -timing_.patience_ms);
}

void Leader::has(const std::string& member, uint64_t commit) {
  const auto it = followers_.find(member);
  if (it == followers_.end()) return;
  Follower& follower = it->second;
  follower.commit = std::max(follower.commit, commit);
  owe(follower);
  note();
}

void Leader::owe(Follower& follower) const {
  const auto first =
      std::upper_bound(begun_.begin(), begun_.end(), follower.commit,
                       [](uint64_t commit, const auto& begun) { return commit < begun.first; });
  follower.owes = first == begun_.end() ? std::nullopt : std::optional(*first);
}

void Leader::note() {
  durable_ = std::max(durable_, on_all());
  uint64_t all = synced_;
  for (const auto& [name, other] : followers_) all = std::min(all, other.commit);
  while (!begun_.empty() && begun_.front().first <= all) begun_.pop_front();
}

void Leader::promises(const std::string& member, Millis beat_sent) {
  const auto it = followers_.find(member);
  if (it == followers_.end()) return;
  it->second.promised = std::max(it->second.promised.value_or(beat_sent), beat_sent);
}

void Leader::seated(const std::string& member, std::string seat) {
  const auto it = followers_.find(member);
  if (it == followers_.end() || it->second.gone) return;
  it->second.seats.insert(seat);
  it->second.seat = std::move(seat);
}

void Leader::renewed(Millis asked) {
  leased_ = std::max(leased_, asked);
}

void Leader::resides(const std::string& member, Place place) {
  forgotten_.erase(member);
  places_[member] = std::move(place);
}

void Leader::forgets(const std::string& member) {
  if (member == me_) return;
  places_.erase(member);
  forgotten_.insert(member);
}

bool Leader::is_slow(const Follower& follower, Millis now) const {
  return follower.owes && now - follower.owes->second >= timing_.patience_ms;
}

bool Leader::is_older_copy(const std::string& member, const Follower& follower) const {
  const auto has_seat = [&](const Configuration& in) {
    const auto it = in.in_sync.find(member);
    return it == in.in_sync.end() || follower.seats.contains(it->second);
  };
  return follower.lost || !has_seat(held_) || (asked_ && !has_seat(*asked_));
}

bool Leader::could_be_added(const std::string& member, const Follower& follower, Millis now) const {
  const bool resides = held_.members.contains(member) || places_.contains(member);
  return resides && now - leased_ < Timing::relied_on(timing_.lease_ms) && !follower.gone &&
         follower.promised && !is_slow(follower, now) && follower.commit >= durable_ &&
         follower.commit + 1 >= last_;
}

std::vector<std::string> Leader::want_seats(Millis now) const {
  std::vector<std::string> names;
  for (const auto& [member, follower] : followers_)
    if (!may_take_over(member) && !follower.seat && could_be_added(member, follower, now))
      names.push_back(member);
  return names;
}

std::optional<Configuration> Leader::wishes(Millis now) const {
  if (asked_) return std::nullopt;
  Configuration wanted = held_;
  for (const auto& [member, place] : places_) wanted.members[member] = place;
  for (const auto& [member, follower] : followers_) {
    const bool in = held_.in_sync.contains(member);
    const bool away = follower.gone && now - *follower.gone >= timing_.patience_ms;
    if (in && (away || is_slow(follower, now) || is_older_copy(member, follower)))
      wanted.in_sync.erase(member);
    if (!in && follower.seat && could_be_added(member, follower, now))
      wanted.in_sync[member] = *follower.seat;
  }
  for (const std::string& member : forgotten_) {
    wanted.in_sync.erase(member);
    wanted.members.erase(member);
  }
  if (wanted == held_) return std::nullopt;
  return wanted;
}

void Leader::asks(Configuration wanted) {
  MUSTER_CHECK(!asked_ || *asked_ == wanted, "a write of another configuration is in flight");
  asked_ = std::move(wanted);
}

void Leader::answered(const Configuration& held) {
  // Who is removed needs a new seat to be added again.
  for (auto& [member, follower] : followers_)
    if (held_.in_sync.contains(member) && !held.in_sync.contains(member)) {
      follower.seat.reset();
      follower.lost = false;
    }
  held_ = held;
  asked_.reset();
  for (const auto& [member, place] : held_.members)
    if (const auto it = places_.find(member); it != places_.end() && it->second == place)
      places_.erase(it);
  for (auto it = forgotten_.begin(); it != forgotten_.end();)
    it = held_.members.contains(*it) || held_.in_sync.contains(*it) ? std::next(it)
                                                                    : forgotten_.erase(it);
  for (auto it = followers_.begin(); it != followers_.end();)
    it = it->second.gone && !may_take_over(it->first) ? followers_.erase(it) : std::next(it);
  note();
}

bool Leader::may_take_over(const std::string& member) const {
  return member != me_ &&
         (held_.in_sync.contains(member) || (asked_ && asked_->in_sync.contains(member)));
}

std::set<std::string> Leader::others() const {
  std::set<std::string> names;
  for (const auto& [member, seat] : held_.in_sync) names.insert(member);
  if (asked_)
    for (const auto& [member, seat] : asked_->in_sync) names.insert(member);
  names.erase(me_);
  return names;
}

Millis Leader::answers_until() const {
  Millis promised = kForever;
  for (const std::string& member : others()) {
    const auto it = followers_.find(member);
    const bool any = it != followers_.end() && it->second.promised;
    promised =
        std::min(promised, any ? *it->second.promised + Timing::relied_on(timing_.promise_ms) : 0);
  }
  return std::max(promised, leased_ + Timing::relied_on(timing_.lease_ms));
}

bool Leader::hangs(Millis now) const {
  const auto late = std::find_if(begun_.begin(), begun_.end(),
                                 [this](const auto& one) { return one.first > synced_; });
  if (late == begun_.end() || now - late->second < timing_.patience_ms) return false;
  return std::any_of(held_.in_sync.begin(), held_.in_sync.end(), [&](const auto& one) {
    const auto it = followers_.find(one.first);
    return one.first != me_ && it != followers_.end() && it->second.commit >= late->first;
  });
}

bool Leader::can_hand_over(const std::string& member) const {
  const auto it = followers_.find(member);
  return held_.in_sync.contains(member) && it != followers_.end() && !it->second.gone &&
         it->second.commit == last_ && synced_ == last_;
}

}  // namespace muster::core::standby
