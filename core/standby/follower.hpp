// Follower: what a replica may do: which batches it applies, how long it leaves the lead alone, and
// whether it may take it. Pure.
//
// Invariants: it obeys no leader of a term below the highest that it has seen; while it tries to
// take the lead it obeys none and promises nothing; and it tries only while none of its promises is
// valid, also those that it may have given before it was restarted.
#pragma once

#include "core/standby/configuration.hpp"
#include "core/standby/timing.hpp"

#include <cstdint>
#include <set>
#include <string>

namespace muster::core::standby {

class Follower {
 public:
  // `seats`: the seats that its data-dir holds. `epoch`: the last one in its journal, the term of
  // the last leader that it has followed or been. `started`: on the boot clock.
  Follower(Timing timing, std::string me, std::set<std::string> seats, uint64_t epoch,
           Millis started);

  // A leader of this term has sent something, or the store's configuration has this term.
  void sees(uint64_t term);
  uint64_t term() const { return term_; }
  bool obeys(uint64_t term) const { return term >= term_ && !taking_; }
  // Answers a beat of a leader that it obeys: it leaves the lead alone for a while from now.
  void promises(Millis now);
  // The leader of this term has given up the lead, for us.
  void released(uint64_t term);
  void sits(std::string seat) { seats_.insert(std::move(seat)); }

  enum class Next {
    apply,
    has_it,  // already: it is synced here
    gap,     // batches before it are missing
  };
  // What to do with a batch, if `obeys`. `last`: the last commit here.
  static Next judge(uint64_t commit, uint64_t last);

  enum class Why {
    may,
    led,          // somebody holds the key
    promised,     // to leave it alone, for a while yet
    not_in_sync,  // it may lack acknowledged commits
    outdated,     // our data-dir is an older copy: it has another seat
  };
  // Whether to try to take the lead. `key_held`: by anybody but a former process of this data-dir,
  // as the store says.
  Why may_take(const Configuration& seen, bool key_held, Millis now) const;
  // The configuration to take it with, above the epoch of the journal here; `seat` is one that our
  // data-dir holds. Nothing is obeyed until settled().
  Configuration takes(const Configuration& seen, uint64_t epoch, std::string seat, Place place);
  // The store has answered that write, and its guards did not hold. While there is no answer, the
  // write may still arrive.
  void settled() { taking_ = false; }
  bool taking() const { return taking_; }

 private:
  const Timing timing_;
  const std::string me_;
  std::set<std::string> seats_;
  const uint64_t epoch_;
  uint64_t term_;
  Millis promised_until_;
  bool taking_ = false;
};

}  // namespace muster::core::standby
