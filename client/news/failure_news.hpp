// FailureNews: prints the first failure of each kind soon after it happens, while the job runs.
//
// Each failure is held back for a moment, since the summary shows one that ends the job.
#pragma once

#include "base/clock.hpp"
#include "client/connect/http.hpp"
#include "client/inputs/inputs.hpp"
#include "client/inputs/tasks.hpp"
#include "client/news/attempt_feed.hpp"
#include "client/terminal/json.hpp"

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::cli {

class FailureNews {
 public:
  FailureNews(ApiClient& client, std::string ns, std::string job)
      : client_(client), ns_(std::move(ns)), job_(std::move(job)) {}

  static constexpr Millis kDelay = 250;

  void add(const Json& job, const std::vector<EndedAttempt>& ended, Millis now);
  // Prints to stderr what was added kDelay ago or earlier: the cause, what happens to the index,
  // and the last lines of the pod's output. Calls `first` before each failure it prints.
  void print(Millis now, const std::function<void()>& first);
  // Enough kinds were added; the summary shows the rest.
  bool enough() const;

 private:
  struct Pending {
    EndedAttempt attempt;
    std::optional<int64_t> task;  // of the index, if the job is an array
    std::string input;            // of the index; empty: none, or `task` says it
    Millis due;
  };

  std::string outlook(const EndedAttempt& one);

  ApiClient& client_;
  const std::string ns_, job_;
  std::optional<JobInputs> inputs_;            // read at the first failure
  std::optional<std::optional<Tasks>> tasks_;  // likewise
  std::set<std::string> kinds_;
  std::deque<Pending> pending_;
};

}  // namespace muster::cli
