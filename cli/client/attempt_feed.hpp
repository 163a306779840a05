// AttemptFeed: which attempts of a job have ended since the last look.
//
// The history tells of attempts that are closed, each once and in order. An attempt that failed and
// is to be tried again is closed no sooner than its successor exists, which may be minutes later;
// so indexes in backoff are looked up beside it.
#pragma once

#include "cli/client/http.hpp"
#include "cli/output/json.hpp"
#include "core/index_set.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::cli {

struct EndedAttempt {
  int64_t index = -1;  // -1: NonIndexed
  int64_t attempt = 0;
  std::string pod, node;
  bool failed = false;
  std::string cause;  // "exit 1", "SIGKILL (exit 137), OOMKilled"; with what the system said
  std::string kind;   // the same for failures that are alike
};

class AttemptFeed {
 public:
  // `all`: also those that succeeded.
  AttemptFeed(ApiClient& client, std::string ns, std::string job, bool all)
      : client_(client), ns_(std::move(ns)), job_(std::move(job)), all_(all) {}

  // None when the coordinator does not answer: they come with the next look.
  std::vector<EndedAttempt> look(const Json& job);

 private:
  void add_closed(std::vector<EndedAttempt>& found);
  void add_in_backoff(std::vector<EndedAttempt>& found);

  ApiClient& client_;
  const std::string ns_, job_;
  const bool all_;
  std::string position_;                        // in the history
  std::set<std::pair<int64_t, int64_t>> told_;  // that are not closed yet
  core::IndexSet in_backoff_;                   // indexes that were looked up there
};

}  // namespace muster::cli
