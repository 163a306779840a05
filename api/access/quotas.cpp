#include "api/access/quotas.hpp"

#include <algorithm>

namespace muster::api {

bool Quotas::take_request(const Caller& caller, Millis now_ms) {
  if (limits_.requests_max == 0 || caller.unlimited()) return true;
  const double rate = static_cast<double>(limits_.requests_max), most = 2 * rate;
  const auto [it, fresh] = allowances_.try_emplace(caller.who.uid, Allowance{most, now_ms});
  Allowance& mine = it->second;
  const double gained = static_cast<double>(std::max<Millis>(0, now_ms - mine.at_ms)) * rate / 1000;
  mine = {std::min(most, mine.requests + gained), std::max(now_ms, mine.at_ms)};
  if (mine.requests < 1) return false;
  mine.requests -= 1;
  return true;
}

bool Quotas::take_job(const Caller& caller, size_t unfinished) {
  if (limits_.jobs_max == 0 || caller.unlimited()) return true;
  size_t& more = jobs_on_their_way_[caller.who.uid];
  if (unfinished + more >= limits_.jobs_max) return false;
  ++more;
  return true;
}

void Quotas::arrived(const Caller& caller) {
  const auto it = jobs_on_their_way_.find(caller.who.uid);
  if (it == jobs_on_their_way_.end()) return;
  if (it->second > 0) --it->second;
  if (it->second == 0) jobs_on_their_way_.erase(it);
}

}  // namespace muster::api
