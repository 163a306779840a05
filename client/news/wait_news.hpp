// WaitNews: says why nothing of a job runs, while it waits for a node; and while an MPI job runs,
// which of its nodes do not reach each other, since its ranks may then wait for ever.
#pragma once

#include "base/clock.hpp"
#include "client/connect/http.hpp"
#include "client/news/progress.hpp"

#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace muster::cli {

class WaitNews {
 public:
  WaitNews(ApiClient& client, std::string ns, std::string job)
      : client_(client), ns_(std::move(ns)), job_(std::move(job)) {}

  // After this time without a running pod it asks, and then again as often; with one, if this is an
  // MPI job, as often from the start.
  static constexpr Millis kDelay = 3'000, kAgain = 10'000;

  // Prints to stderr what is wrong, unless it has said so before. Calls `first` before.
  void look(const Standing& standing, bool mpi, Millis now, const std::function<void()>& first);

 private:
  ApiClient& client_;
  const std::string ns_, job_;
  std::optional<Millis> ask_at_;  // absent: there is nothing to ask
  bool runs_ = false;             // some pod runs
  std::string said_;
};

}  // namespace muster::cli
