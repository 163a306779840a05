// FailureNews: prints the first failure of each kind when it happens, while the job runs.
#pragma once

#include "cli/client/attempt_feed.hpp"
#include "cli/client/http.hpp"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace muster::cli {

class FailureNews {
 public:
  FailureNews(ApiClient& client, std::string ns, std::string job)
      : client_(client), ns_(std::move(ns)), job_(std::move(job)) {}

  // Prints to stderr the cause, what happens to the index, and the last lines of the pod's output.
  // Calls `first` before each failure it prints.
  void tell(const std::vector<EndedAttempt>& ended, const std::function<void()>& first);
  // Enough kinds were printed; the summary shows the rest.
  bool enough() const;

 private:
  std::string outlook(const EndedAttempt& one);

  ApiClient& client_;
  const std::string ns_, job_;
  std::set<std::string> kinds_;
};

}  // namespace muster::cli
