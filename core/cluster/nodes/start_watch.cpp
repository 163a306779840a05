#include "core/cluster/nodes/start_watch.hpp"

#include <algorithm>

namespace muster::core {

void StartWatch::note(JobId job, std::optional<uint32_t> user, uint32_t starts,
                      const std::string& reason, Millis up_ms) {
  why = reason;
  if (failed.size() >= kJobsMax && !failed.contains(job)) return;
  OfJob& of = failed[job];
  of.user = user;
  of.starts += starts;
  of.last_ms = up_ms;
}

std::map<std::optional<uint32_t>, uint32_t> StartWatch::by_user() const {
  std::map<std::optional<uint32_t>, uint32_t> users;
  for (const auto& [job, of] : failed) users[of.user] += of.starts;
  return users;
}

std::string StartWatch::verdict() const {
  const auto users = by_user();
  uint32_t most = 0;
  for (const auto& [user, starts] : users) most = std::max(most, starts);
  const std::string cause = owned() ? " (the coordinator's log has the cause)" : ": " + why;
  if (users.size() >= kUsers)
    return "pods of " + std::to_string(users.size()) + " users cannot start here" + cause;
  if (most >= kStarts) return std::to_string(most) + " starts in a row have failed here" + cause;
  return {};
}

bool StartWatch::owned() const {
  return std::any_of(failed.begin(), failed.end(),
                     [](const auto& one) { return one.second.user.has_value(); });
}

Millis StartWatch::next_wait_ms() const {
  return owned() && by_user().size() == 1 ? kProbeMinMs : std::min(2 * wait_ms, kProbeMaxMs);
}

void StartWatch::clear() {
  failed.clear();
  why.clear();
  wait_ms = probe_up_ms = 0;
}

}  // namespace muster::core
