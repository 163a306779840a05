// Store: a simulated etcd for standby_world.hpp, linearizable: each request is one step. It has two
// keys: the configuration, and the leader's key, which is under a lease. Time is the store's own.
#pragma once

#include "core/standby/configuration.hpp"
#include "core/standby/timing.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace muster::sim::standby {

struct LeaderKey {
  std::string holder;
  uint64_t lease = 0;
  uint64_t created = 0;  // revision; 0: there is no key
};

struct Held {
  core::standby::Configuration configuration;
  uint64_t revision = 0;  // of the configuration
  LeaderKey key;
};

struct Transaction {
  // Guards.
  std::optional<uint64_t> revision;  // of the configuration
  std::optional<uint64_t> created;   // of the key; 0: there is none
  // What is written if they hold.
  std::optional<core::standby::Configuration> configuration;
  enum class Key { leave, put, remove } key = Key::leave;
  std::string holder;
  uint64_t lease = 0;
};

struct Answer {
  bool done = false;  // a transaction's guards held; a lease was granted or renewed
  uint64_t lease = 0;
  Held held;  // afterwards
};

class Store {
 public:
  Store(core::standby::Configuration first, Millis lease_ms) : lease_ms_(lease_ms) {
    held_.configuration = std::move(first);
    held_.revision = revision_;
  }

  const Held& held() const { return held_; }
  Answer read() const { return {true, 0, held_}; }
  // As etcd, refuses to put a key under a lease that is gone, if the guards hold.
  Answer write(const Transaction& wanted);
  Answer grant(Millis now);
  Answer renew(uint64_t lease, Millis now);
  // Ends leases whose life was over `slack_ms` ago, with their keys.
  void expire(Millis now, Millis slack_ms);
  // After a change of its own leader, etcd lets every lease live its whole life again.
  void extend(Millis now);

  std::function<void()> changed;  // after each new configuration

 private:
  const Millis lease_ms_;
  Held held_;
  uint64_t revision_ = 1;
  uint64_t last_lease_ = 0;
  std::map<uint64_t, Millis> leases_;  // and the end of their lives
};

}  // namespace muster::sim::standby
