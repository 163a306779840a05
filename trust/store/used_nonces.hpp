// UsedNonces: remembers used munge credentials for as long as they are valid, so that none is used
// twice. munged does that, too, but not across a restart.
//
// Bounded in total and per user, so that one who makes many credentials blocks no others. Pure.
#pragma once

#include "base/clock.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <sys/types.h>
#include <utility>

namespace muster::coordinator {

class UsedNonces {
 public:
  static constexpr size_t kMax = 100'000, kMaxOfOne = 1'000;

  enum class Use { first, again, too_many };
  // Uses this user's nonce, which is remembered until `until_ms` unless there are too many.
  Use use(uid_t uid, const std::string& nonce, Millis until_ms, Millis now_ms);
  size_t size() const { return expiry_.size(); }

 private:
  struct One {
    uid_t uid;
    std::string nonce;
  };

  std::map<uid_t, std::set<std::string>> used_;
  std::multimap<Millis, One> expiry_;
};

}  // namespace muster::coordinator
