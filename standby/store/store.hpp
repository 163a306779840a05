// Store: the consensus store that decides who coordinates; it never holds jobs.
//
// It has two keys: the configuration, which says who takes part and in which term, and the key of
// the leader, which lives under a lease and names it. Every change is one transaction guarded by
// the revisions that it is based on, so of two members that want to change the same state, one
// succeeds and the other one sees what it did. The configuration is never deleted, and revisions
// are never used twice, so a guard that has failed on the configuration fails forever.
//
// Errors of all operations:
//   unavailable  no endpoint gave a definite answer in time. The outcome of a change is then
//                unknown: it was made, was not made, or may still be made for as long as its guards
//                hold. Read before deciding anything.
//   invalid      the store refused, and will refuse again: wrong credentials, no permission.
//   Nothing
//                was changed.
// A promise must not outlive its Store. Dropping one gives up waiting; it does not undo anything.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"

#include <kj/async.h>

#include <cstdint>
#include <optional>
#include <string>

namespace muster::standby {

// A key that exists.
struct StoreRow {
  std::string value;
  uint64_t revision = 0;  // of the store, when this value was written
  uint64_t created = 0;   // of the store, when the key was created; another one if it is recreated
  uint64_t lease = 0;     // the lease that it ends with; 0: none

  bool operator==(const StoreRow&) const = default;
};

// Both keys at one revision; nullopt: the key does not exist.
struct StoreSeen {
  std::optional<StoreRow> configuration, leader;

  bool operator==(const StoreSeen&) const = default;
};

struct StoreChange {
  // Guards. The change is made if both hold, else nothing happens.
  uint64_t configuration_revision = 0;  // StoreRow::revision it must still have; 0: must not exist
  uint64_t leader_created = 0;          // StoreRow::created of the leader's key; 0: must not exist

  std::optional<std::string> configuration;  // its new value; nullopt: unchanged
  struct Key {
    std::string member;  // the value of the key
    uint64_t lease = 0;  // never 0
  };
  std::optional<Key> leader;  // puts the leader's key, under this lease
  bool resigns = false;       // deletes the leader's key; not together with `leader`
};

struct StoreChanged {
  bool applied = false;
  StoreSeen now;  // after the change, or as it was found instead
};

class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() noexcept(false) = default;

  // Linearizable: what was true at an instant between the call and its answer.
  virtual kj::Promise<Result<StoreSeen>> read() = 0;

  // A lease that lasts for at least `life_ms` from its grant, and again from each renewal. A caller
  // that counts from before the call therefore never holds it for longer than the store does,
  // unless the store ends it early (etcd.hpp says when) or one of their clocks is slow.
  virtual kj::Promise<Result<uint64_t>> grant(Millis life_ms) = 0;

  // False: the lease is gone, and its key with it.
  virtual kj::Promise<Result<bool>> renew(uint64_t lease) = 0;

  // Ends a lease and deletes the key under it. Succeeds if the lease is gone already.
  virtual kj::Promise<Status> revoke(uint64_t lease) = 0;

  // `not_found`: the lease of `leader` is gone, and nothing was changed.
  virtual kj::Promise<Result<StoreChanged>> change(StoreChange change) = 0;
};

}  // namespace muster::standby
