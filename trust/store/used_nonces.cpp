#include "trust/store/used_nonces.hpp"

namespace muster::coordinator {

UsedNonces::Use UsedNonces::use(uid_t uid, const std::string& nonce, Millis until_ms,
                                Millis now_ms) {
  while (!expiry_.empty() && expiry_.begin()->first < now_ms) {
    const One& old = expiry_.begin()->second;
    const auto of_user = used_.find(old.uid);
    of_user->second.erase(old.nonce);
    if (of_user->second.empty()) used_.erase(of_user);
    expiry_.erase(expiry_.begin());
  }
  const auto found = used_.find(uid);
  if (found != used_.end()) {
    if (found->second.contains(nonce)) return Use::again;
    if (found->second.size() >= kMaxOfOne) return Use::too_many;
  }
  if (expiry_.size() >= kMax) return Use::too_many;
  used_[uid].insert(nonce);
  expiry_.emplace(until_ms, One{uid, nonce});
  return Use::first;
}

}  // namespace muster::coordinator
