#include "client/news/attempt_feed.hpp"

#include "client/connect/objects.hpp"
#include "client/news/attempts.hpp"
#include "client/news/failures.hpp"
#include "client/terminal/text.hpp"

namespace muster::cli {
namespace {

constexpr size_t kLookedUpMax = 64;  // indexes in backoff looked up per poll

EndedAttempt closed_attempt(const Json& attempt) {
  EndedAttempt out;
  if (const Json& index = at(attempt, {"index"}); index.is_number_integer())
    out.index = index.get<int64_t>();
  if (const Json& number = at(attempt, {"attempt"}); number.is_number_integer())
    out.attempt = number.get<int64_t>();
  out.pod = text_at(attempt, {"pod"});
  out.node = text_at(attempt, {"node"});
  out.cause = attempt_cause(attempt);
  out.failed = text_at(attempt, {"counted"}) == "failed";
  return out;
}

EndedAttempt deferred_attempt(const Json& pod) {
  const Failure failure = failure_of(pod);
  EndedAttempt out;
  out.index = failure.index;
  out.attempt = failure.attempt;
  out.pod = failure.pod;
  out.node = failure.node;
  out.cause = failure.cause;
  out.failed = true;
  return out;
}

// Drops the message: it names files and numbers, so it would make almost every failure its own
// kind.
std::string kind_of(const std::string& cause) {
  return cause.substr(0, cause.find(": "));
}

}  // namespace

std::vector<EndedAttempt> AttemptFeed::look(const Json& job) {
  std::vector<EndedAttempt> found;
  add_closed(found);
  if (number_at(job, {"spec", "backoffLimitPerIndex"}) > 0) add_in_backoff(found);
  for (EndedAttempt& one : found) one.kind = kind_of(one.cause);
  return found;
}

void AttemptFeed::add_closed(std::vector<EndedAttempt>& found) {
  for (bool more = true; more;) {
    std::string path = own_path(ns_, job_, "attempts") + "?limit=1000";
    if (!all_) path += "&failed=true";
    if (!position_.empty()) path += "&continue=" + url_encoded(position_);
    auto page = object(client_, path);
    if (!page) return;
    for (const Json& attempt : at(*page, {"items"})) {
      EndedAttempt one = closed_attempt(attempt);
      if (returned_.erase({one.index, one.attempt}) == 0) found.push_back(std::move(one));
    }
    more = !text_at(*page, {"metadata", "continue"}).empty();
    position_ = text_at(*page, {"metadata", "next"});
    if (position_.empty()) return;  // a coordinator that sends no position
  }
}

void AttemptFeed::add_in_backoff(std::vector<EndedAttempt>& found) {
  auto map = object(client_, own_path(ns_, job_, "indexes"));
  if (!map) return;
  const auto now = index_set(text_at(*map, {"backoff"}));
  core::IndexSet seen;
  size_t looked_up = 0;
  for (const auto& [first, last] : now.intervals()) {
    for (uint64_t at = first; at <= last; ++at) {
      const auto index = static_cast<uint32_t>(at);
      const bool known = in_backoff_.contains(index);
      if (!known && looked_up == kLookedUpMax) continue;
      seen.insert(index);
      if (known) continue;
      ++looked_up;
      auto pods = pods_of(client_, ns_, job_,
                          "batch.kubernetes.io/job-completion-index=" + std::to_string(index),
                          "status.phase=Failed");
      if (!pods || pods->empty()) continue;
      EndedAttempt one = deferred_attempt(pods->back());
      if (returned_.emplace(one.index, one.attempt).second) found.push_back(std::move(one));
    }
  }
  in_backoff_ = std::move(seen);
}

}  // namespace muster::cli
