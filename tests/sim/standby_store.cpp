#include "tests/sim/standby_store.hpp"

namespace muster::sim::standby {

Answer Store::write(const Transaction& wanted) {
  const bool holds = (!wanted.revision || *wanted.revision == held_.revision) &&
                     (!wanted.created || *wanted.created == held_.key.created);
  const bool leased = wanted.key != Transaction::Key::put || leases_.contains(wanted.lease);
  if (!holds || !leased) return {false, 0, held_};
  ++revision_;
  if (wanted.key == Transaction::Key::remove) held_.key = {};
  // A key that is there keeps the revision of its creation.
  if (wanted.key == Transaction::Key::put)
    held_.key = {wanted.holder, wanted.lease, held_.key.created ? held_.key.created : revision_};
  if (wanted.configuration) {
    held_.configuration = *wanted.configuration;
    held_.revision = revision_;
    changed();
  }
  return {true, 0, held_};
}

Answer Store::grant(Millis now) {
  leases_[++last_lease_] = now + lease_ms_;
  return {true, last_lease_, held_};
}

Answer Store::renew(uint64_t lease, Millis now) {
  const auto it = leases_.find(lease);
  if (it == leases_.end()) return {false, 0, held_};
  it->second = now + lease_ms_;
  return {true, lease, held_};
}

void Store::expire(Millis now, Millis slack_ms) {
  for (auto it = leases_.begin(); it != leases_.end();) {
    if (now < it->second + slack_ms) {
      ++it;
      continue;
    }
    if (held_.key.lease == it->first) held_.key = {};
    it = leases_.erase(it);
  }
}

void Store::extend(Millis now) {
  for (auto& [lease, until] : leases_) until = now + lease_ms_;
}

}  // namespace muster::sim::standby
