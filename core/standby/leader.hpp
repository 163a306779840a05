// Leader: what a leading coordinator knows about its replicas and its lease, and what follows from
// it: up to which commit everything is durable on all of them, whether it may still answer, and
// which configuration it wants in the store. Pure; PacificA's primary, with two additions: the
// store itself holds a lease on the lead, and either that or the followers' promises suffice.
//
// Invariants, on which the promise rests that nothing acknowledged is lost:
//  - A commit counts as durable only when it is synced here and on every replica that may take
//    over: those in the configuration in the store and in any configuration that has been sent
//    there and may have arrived.
//  - A replica joins the configuration only once it has everything that counts as durable, and
//    leaves it only with the store's answer.
//  - may_answer() is true only while no other coordinator can lead: the lease or the promise of
//    each replica that may take over is valid, or there is no such replica.
#pragma once

#include "core/standby/configuration.hpp"
#include "core/standby/timing.hpp"

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::core::standby {

class Leader {
 public:
  static constexpr Millis kForever = std::numeric_limits<Millis>::max();

  // `held`: the configuration with which this coordinator took the lead, as it is in the store.
  // `leased`: when it asked for the lease that it holds (boot clock). `commit`: its last one, which
  // is synced.
  Leader(Timing timing, std::string me, Configuration held, Millis leased, uint64_t commit);

  const Configuration& configuration() const { return held_; }
  const std::string& me() const { return me_; }

  // ---- the log. Commits begin in order, each one above the last.
  void begins(uint64_t commit, Millis now);  // it is on its way to the disk and to the followers
  void synced(uint64_t commit);              // on the disk here
  // Everything up to this commit is durable on each replica that may take over. Never falls.
  uint64_t durable() const { return durable_; }

  // ---- followers
  // Its log is ours up to `commit`, which is synced there, and it gets all later batches. `seats`:
  // those that its data-dir holds. One that may take over but has not its seat, or lacks commits
  // that it had, is an older copy: it counts for nothing, and is removed.
  void follows(const std::string& member, uint64_t commit, std::set<std::string> seats);
  void leaves(const std::string& member, Millis now);    // the connection to it is gone
  void ends(const std::string& member);                  // likewise, and it says that it ends
  void has(const std::string& member, uint64_t commit);  // synced there
  // It has answered the beat that was sent at this time.
  void promises(const std::string& member, Millis beat_sent);
  // Its data-dir has this seat, durably: it may be added.
  void seated(const std::string& member, std::string seat);
  // Those that could be added, once their data-dirs have a new seat. None while the store does not
  // renew the lease: a leader that waits for the answer of a write depends on those it would add.
  std::vector<std::string> want_seats(Millis now) const;

  struct Follower {
    uint64_t commit = 0;              // what it has, at least
    std::set<std::string> seats;      // in its data-dir
    std::optional<std::string> seat;  // it may be added with this one
    bool lost = false;                // it lacks commits that it had
    std::optional<Millis> promised;   // when the last beat was sent that it answered
    std::optional<Millis> gone;       // since when it is not connected
    std::optional<std::pair<uint64_t, Millis>> owes;  // the first commit it lacks, begun then
  };
  const std::map<std::string, Follower>& followers() const { return followers_; }

  // ---- the store
  void renewed(Millis asked);  // the lease, with a request sent at this time
  // The configuration to write, with the guards of store.hpp; nullopt: the store's is right, or a
  // write is in flight.
  std::optional<Configuration> wishes(Millis now) const;
  void asks(Configuration wanted);  // it has been sent
  // What the store holds, as the answer to that write says, whether or not its guards held. Without
  // an answer the write may still arrive, so it is repeated with the same guards until there is
  // one; what a mere read finds meanwhile decides nothing.
  void answered(const Configuration& held);
  std::optional<Configuration> asked() const { return asked_; }
  // Followers report where they are; the configuration that is written next says so. None is added
  // before.
  void resides(const std::string& member, Place place);
  // Removes it from the configuration, unless it is ours, until it reports again where it is.
  void forgets(const std::string& member);

  // ---- the lead
  // Until when, on the boot clock; it moves on, except when a replica may be added.
  Millis answers_until() const;
  bool may_answer(Millis now) const { return now < answers_until(); }
  // Whether our own disk keeps a commit waiting that some in-sync follower has: then that follower
  // should lead.
  bool hangs(Millis now) const;
  // An in-sync follower that has everything, to which the lead can be handed over.
  bool can_hand_over(const std::string& member) const;

 private:
  bool could_be_added(const std::string& member, const Follower& follower, Millis now) const;
  bool is_older_copy(const std::string& member, const Follower& follower) const;
  bool is_slow(const Follower& follower, Millis now) const;
  void note();  // what has become durable; forgets commits that everybody has
  void owe(Follower& follower) const;
  uint64_t on_all() const;  // the last commit that all that may take over have now
  bool may_take_over(const std::string& member) const;
  std::set<std::string> others() const;  // that may take over

  const Timing timing_;
  const std::string me_;
  Configuration held_;
  std::optional<Configuration> asked_;
  std::map<std::string, Place> places_;  // that differ from the configuration's
  std::set<std::string> forgotten_;
  std::map<std::string, Follower> followers_;
  std::deque<std::pair<uint64_t, Millis>> begun_;  // that are not durable everywhere
  uint64_t last_ = 0;                              // begun
  uint64_t synced_ = 0;
  uint64_t durable_ = 0;
  Millis leased_;
};

}  // namespace muster::core::standby
