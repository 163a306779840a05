// Observer: clients that watch a cluster during a drill, each on its own thread.
//
// One polls the canary's status and remembers it: no status that was shown may be taken back. Its
// answers also show how long the API was down. Another one submits small suspended jobs and records
// which were answered with 201: all of them must exist afterwards. Of several coordinators, each
// has two clients of its own, and what one of them has shown, none may take back.
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
  // Whether it knows at least as much as this one.
  bool knows(const Memory& other) const { return version_ >= other.version_; }

 private:
  int64_t version_ = 0, succeeded_ = 0, failed_ = 0;
  core::IndexSet completed_, failed_indexes_;
  std::string started_, finished_;
  std::vector<std::string> conditions_;
};

class Observer {
 public:
  // Watches this job, and submits jobs whose names begin with PREFIX- into the same namespace.
  // `each`: at each of the target's addresses, and with less patience for an answer (1 s).
  Observer(const Target& target, std::string job, std::string prefix, bool each);
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
  // When the first answer to a read, or to a submission, made after this instant arrived (boot
  // clock); not from `except`, one of several addresses.
  std::optional<Millis> answered_after(Millis instant, const std::string& except = "") const;
  std::optional<Millis> accepted_after(Millis instant, const std::string& except = "") const;
  // When an answer arrived that counts more ends than the first one after this instant did.
  std::optional<Millis> counted_after(Millis instant, const std::string& except = "") const;
  // The longest time without an answer to a read, or to a submission, between these instants.
  Millis longest_pause(Millis from, Millis until, bool of_reads) const;
  // Answers from this address to requests made between these instants: "a read asked at 12 ms".
  std::vector<std::string> answers_of(const std::string& address, Millis from, Millis until) const;

 private:
  struct Answer {
    Millis asked = 0, answered = 0;
    size_t at = 0;        // which of targets_
    int64_t counted = 0;  // ends; of a read
  };
  void watch(size_t at);
  void submit(size_t at);
  bool rest(Millis span_ms) const;  // false: stop
  // In the order of their arrival.
  std::vector<Answer> since(const std::vector<Answer>& answers, Millis instant,
                            const std::string& except) const;

  const std::vector<Target> targets_;
  const std::string job_, prefix_;
  std::atomic<bool> stop_ = false, paused_ = false;
  std::atomic<int> busy_ = 0;  // threads with a request in progress
  std::atomic<uint64_t> reads_ = 0;
  mutable std::mutex mutex_;  // guards the members below
  Memory memory_;
  Standing standing_;
  std::vector<std::string> went_back_;
  std::vector<std::pair<std::string, Millis>> accepted_;
  std::vector<Answer> answers_, acceptances_;
  std::vector<std::thread> threads_;
};

}  // namespace muster::cli::drill
