// Plants of the simulated cluster with standbys (standby_world.hpp): faults that break the protocol
// on purpose, each in one place. With each of these, some history must break a rule
// (standby_test.cpp). `none` leaves the protocol as it is.
#pragma once

#include <cstdint>

namespace muster::sim::standby {

// X(name): a fault; the comment says what is done wrongly.
#define MUSTER_STANDBY_PLANTS(X)                                                            \
  X(none)                                                                                   \
  /* Commits. */                                                                            \
  X(acknowledged_before_replicas) /* as soon as the leader's disk has it */                 \
  X(acknowledged_before_own_sync) /* as soon as the followers have it */                    \
  X(asked_uncounted)              /* without the member that a write in flight adds */      \
  X(read_early)                   /* what is not durable yet is shown */                    \
  X(served_before_first_commit)   /* a new leader answers before its epoch is durable */    \
  X(synced_early)                 /* a follower acknowledges a commit when it arrives */    \
  /* Followers. */                                                                          \
  X(replayed_twice)       /* a commit that is there is applied again */                     \
  X(gap_applied)          /* a commit is applied although the one before it is missing */   \
  X(unsynced_reported)    /* on joining, commits count that are not synced */               \
  X(joined_unchecked)     /* the history of a replica that joins is not compared */         \
  X(checkpoint_of_older)  /* a checkpoint of an older leader is installed */                \
  X(checkpoint_overtaken) /* what follows a checkpoint is not kept for who gets it */       \
  /* The configuration. */                                                                  \
  X(shrunk_unguarded)  /* a write has no guards */                                          \
  X(shrunk_unanswered) /* a write counts when it is sent */                                 \
  X(read_believed)     /* a read counts as the answer to a write in flight */               \
  X(added_early)       /* a replica is added while it lacks commits */                      \
  X(seat_ignored)      /* an older copy of a data-dir may take the lead */                  \
  X(seat_kept)         /* a replica is added again with the seat that it had */             \
  X(copy_uncounted)    /* the leader does not look at the seats of those that join */       \
  /* Who leads. */                                                                          \
  X(taken_from_outside)   /* a replica outside the set takes the lead */                    \
  X(taken_while_promised) /* while a promise is valid */                                    \
  X(taken_unguarded)      /* although somebody else has taken it meanwhile */               \
  X(promise_forgotten)    /* a promise does not outlive a restart */                        \
  /* How long one leads. */                                                                 \
  X(answered_unleased)     /* nobody asks whether the lead is still ours */                 \
  X(released_unguarded)    /* a late release deletes the key of a later lead */             \
  X(served_after_release)  /* a leader that has given up the lead answers */                \
  X(old_term_applied)      /* a batch of an older leader is applied */                      \
  X(drift_ignored)         /* clocks are taken to run alike */                              \
  X(promised_while_taking) /* a replica that tries to take the lead promises to leave it */ \
  X(lease_from_answer)     /* a lease counts from the store's answer */                     \
  X(promise_from_answer)   /* a promise counts from the follower's answer */

enum class Plant : uint8_t {
#define MUSTER_STANDBY_NAME(name) name,
  MUSTER_STANDBY_PLANTS(MUSTER_STANDBY_NAME)
#undef MUSTER_STANDBY_NAME
      count
};

// From this one on, only histories of the edge (is_of_edge()) show them soon.
inline constexpr Plant kFirstOfEdge = Plant::old_term_applied;

inline constexpr const char* kPlantNames[] = {
#define MUSTER_STANDBY_TEXT(name) #name,
    MUSTER_STANDBY_PLANTS(MUSTER_STANDBY_TEXT)
#undef MUSTER_STANDBY_TEXT
};

}  // namespace muster::sim::standby
