// Observer: two clients that watch a cluster during a drill, each on its own thread.
//
// One polls the canary's status and remembers it: no status that was shown may be taken back. Its
// answers also show how long the API was down. The other submits small suspended jobs and records
// which were answered with 201: all of them must exist afterwards.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"
#include "client/settings/target.hpp"
#include "client/terminal/json.hpp"
#include "core/index_set.hpp"

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace muster::cli::drill {

// What a client remembers of a job's status.
class Memory {
 public:
  // What this status takes back from an earlier one: "succeeded went from 3 to 2".
  std::vector<std::string> compare(const Json& job);
  // After a restore, the state is an earlier one.
  void forget() { *this = Memory(); }

 private:
  int64_t version_ = 0, succeeded_ = 0, failed_ = 0;
  core::IndexSet completed_, failed_indexes_;
  std::string started_, finished_;
  std::vector<std::string> conditions_;
};

class Observer {
 public:
  // Watches this job, and submits jobs named PREFIX-N into the same namespace.
  Observer(Target target, std::string job, std::string prefix);
  ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  void stop();  // returns once both threads have ended
  // For a restore: nothing is read or submitted until resume(), and the memory is cleared.
  void pause();
  void resume();

  struct Standing {
    int64_t succeeded = 0, failed_indexes = 0;
    bool ended = false;  // Complete or Failed
  };
  Standing standing() const;
  std::vector<std::string> went_back() const;
  uint64_t reads() const { return reads_; }
  // Names answered with 201, with the instant of the answer (boot clock).
  std::vector<std::pair<std::string, Millis>> accepted() const;
  // When the first answer to a request made after this instant arrived (boot clock).
  std::optional<Millis> answered_after(Millis instant) const;

 private:
  void watch();
  void submit();
  bool rest(Millis span_ms) const;  // false: stop

  const Target target_;
  const std::string job_, prefix_;
  std::atomic<bool> stop_ = false, paused_ = false;
  std::atomic<int> busy_ = 0;  // threads with a request in progress
  std::atomic<uint64_t> reads_ = 0;
  mutable std::mutex mutex_;  // guards the members below
  Memory memory_;
  Standing standing_;
  std::vector<std::string> went_back_;
  std::vector<std::pair<std::string, Millis>> accepted_;
  std::vector<std::pair<Millis, Millis>> answers_;  // asked, answered
  std::thread watcher_, submitter_;
};

}  // namespace muster::cli::drill
