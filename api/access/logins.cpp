#include "api/access/logins.hpp"

#include <algorithm>
#include <utility>

namespace muster::api {

bool Logins::add(std::string code, Login login, Millis now_ms) {
  std::erase_if(open_, [now_ms](const auto& one) { return one.second.expires_ms <= now_ms; });
  const auto own = std::count_if(open_.begin(), open_.end(),
                                 [&login](const auto& one) { return one.second.uid == login.uid; });
  if (open_.size() >= kMax || own >= static_cast<ptrdiff_t>(kMaxOfOne)) return false;
  open_.emplace(std::move(code), std::move(login));
  return true;
}

std::optional<Logins::Login> Logins::take(const std::string& code, Millis now_ms) {
  auto found = open_.extract(code);
  if (found.empty() || found.mapped().expires_ms <= now_ms) return std::nullopt;
  return std::move(found.mapped());
}

}  // namespace muster::api
