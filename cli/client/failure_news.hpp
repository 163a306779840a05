// FailureNews: tells of the first failure of each kind when it happens, while the job goes on.
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

  // To stderr: cause, what becomes of the index, the end of what the pod wrote. `first` is called
  // when there is something to tell.
  void tell(const std::vector<EndedAttempt>& ended, const std::function<void()>& first);
  // So many kinds were told that the rest is left to the summary.
  bool enough() const;

 private:
  std::string outlook(const EndedAttempt& one);

  ApiClient& client_;
  const std::string ns_, job_;
  std::set<std::string> kinds_;
};

}  // namespace muster::cli
