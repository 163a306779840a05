// CommandInput: passes our standard input on to a command in a pod.
//
// Holds what the command has not taken, so that it can be sent again from there whatever is
// restarted meanwhile, and reads no more than kHeldMax ahead of the command.
#pragma once

#include "base/fd.hpp"
#include "cli/client/pod_command.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace muster::cli {

class CommandInput {
 public:
  static constexpr size_t kHeldMax = 2 * PodCommand::kWriteMax;

  // `terminal`: the command has one, and we are in one.
  CommandInput(const PodCommand& command, bool terminal);

  // On a thread of its own: until the command has taken the whole input, reads no more or is gone,
  // or stop(). Returns why the rest cannot be passed on, if the command goes on without it.
  std::optional<Error> run(ApiClient& client);
  // Any thread. A request in flight is not waited for.
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
  // Of run().
  std::string held_{};  // from `taken_` on
  uint64_t taken_ = 0;  // bytes
  bool ended_ = false;  // our input
  std::optional<Error> refusal_{};
};

}  // namespace muster::cli
