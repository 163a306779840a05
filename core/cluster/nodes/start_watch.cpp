#include "core/cluster/nodes/start_watch.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace muster::core {

namespace {

// Reasons of the system that say something about a node.
constexpr int kNodeErrors[] = {EACCES, EAGAIN, EDQUOT,   EHOSTDOWN, EHOSTUNREACH, EIO,
                               EISDIR, EMFILE, ENFILE,   ENODEV,    ENOENT,       ENOLINK,
                               ENOMEM, ENOSPC, ENOTCONN, ENOTDIR,   ENXIO,        EREMOTEIO,
                               EROFS,  ESTALE, EPERM,    ELOOP,     ETIMEDOUT};

// What a start fails at, as its error begins.
constexpr std::pair<std::string_view, std::string_view> kSteps[] = {{"cwd ", "working directory"},
                                                                    {"open ", "open a file"},
                                                                    {"exec ", "exec"},
                                                                    {"fork:", "fork"},
                                                                    {"pipe:", "pipe"}};

}  // namespace

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

std::string StartWatch::public_cause() const {
  if (why.starts_with("this node ")) return why.substr(0, why.find(':'));
  std::string what;
  for (const auto& [word, shown] : kSteps)
    if (why.starts_with(word)) what = shown;
  for (const int reason : kNodeErrors) {
    const std::string text = std::string(": ") + std::strerror(reason);
    if (why.find(text) != std::string::npos) return what.empty() ? text.substr(2) : what + text;
  }
  return {};
}

std::string StartWatch::verdict() const {
  const auto users = by_user();
  uint32_t most = 0;
  for (const auto& [user, starts] : users) most = std::max(most, starts);
  std::string cause = ": " + why;
  if (owned()) {
    const std::string known = public_cause();
    cause = (known.empty() ? "" : ": " + known) + " (the coordinator's log has the whole cause)";
  }
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
