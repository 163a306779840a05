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

std::string StartWatch::verdict() const {
  std::map<std::optional<uint32_t>, uint32_t> users;
  uint32_t most = 0;
  for (const auto& [job, of] : failed) most = std::max(most, users[of.user] += of.starts);
  if (users.size() >= kUsers)
    return "pods of " + std::to_string(users.size()) + " users cannot start here: " + why;
  if (most >= kStarts) return std::to_string(most) + " starts in a row have failed here: " + why;
  return {};
}

void StartWatch::clear() {
  failed.clear();
  why.clear();
  wait_ms = probe_up_ms = 0;
}

}  // namespace muster::core
