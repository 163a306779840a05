// CommandInput: passes our standard input on to a command in a pod.
//
// Keeps what the command has not taken yet, so that it can be resent after any restart, and reads
// at most kHeldMax ahead of the command.
#pragma once

#include "base/fd.hpp"
#include "client/inputs/pod_command.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace muster::cli {

class CommandInput {
 public:
  static constexpr size_t kHeldMax = 2 * PodCommand::kWriteMax;

  // `terminal`: the command has one, and so do we.
  CommandInput(const PodCommand& command, bool terminal);

  // Runs on its own thread until the command has taken the whole input, stops reading or is gone,
  // or until stop(). Returns why the rest cannot be passed on, if the command continues without it.
  std::optional<Error> run(ApiClient& client);
  // From any thread. Does not wait for a request in flight.
  void stop();
  void window_changed();

 private:
  void read_more();
  enum class Next { more, done, refused };
  Next send(ApiClient& client);
  Next find_again(ApiClient& client, const Error& failure);
  void wake();
  bool woken(int wait_ms);

  const PodCommand& command_;
  const bool terminal_;
  const Fd wake_;
  std::atomic<bool> over_ = false, window_changed_ = false;
  // Used only by run().
  std::string held_{};  // from `taken_` on
  uint64_t taken_ = 0;  // bytes
  bool ended_ = false;  // our input
  std::optional<Error> refusal_{};
};

}  // namespace muster::cli
