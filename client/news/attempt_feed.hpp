// AttemptFeed: which attempts of a job have ended since the last poll.
//
// The history lists closed attempts, each once and in order. A failed attempt that will be retried
// is closed only when its successor exists, which may take minutes, so indexes in backoff are
// looked up separately.
#pragma once

#include "client/connect/http.hpp"
#include "client/terminal/json.hpp"
#include "core/index_set.hpp"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::cli {

struct EndedAttempt {
  std::optional<int64_t> index;    // of an Indexed job
  std::optional<int64_t> attempt;  // absent: unknown
  std::string pod, node;
  bool failed = false;
  std::string cause;  // "exit 1", "SIGKILL (exit 137), OOMKilled"; with the message
  std::string kind;   // cause without the message: equal for similar failures
};

class AttemptFeed {
 public:
  // `all`: also attempts that did not fail.
  AttemptFeed(ApiClient& client, std::string ns, std::string job, bool all)
      : client_(client), ns_(std::move(ns)), job_(std::move(job)), all_(all) {}

  // If the coordinator does not answer, the next call returns what this one missed.
  std::vector<EndedAttempt> look(const Json& job);

 private:
  void add_closed(std::vector<EndedAttempt>& found);
  void add_in_backoff(std::vector<EndedAttempt>& found);

  ApiClient& client_;
  const std::string ns_, job_;
  const bool all_;
  std::string position_;  // in the history
  std::set<std::pair<std::optional<int64_t>, std::optional<int64_t>>>
      returned_;               // index, attempt: returned before they were closed
  core::IndexSet in_backoff_;  // indexes already looked up
};

}  // namespace muster::cli
