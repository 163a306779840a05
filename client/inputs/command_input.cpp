#include "client/inputs/command_input.hpp"

#include "base/terminal_input.hpp"
#include "client/inputs/user_terminal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <string_view>
#include <sys/eventfd.h>
#include <unistd.h>

namespace muster::cli {
namespace {

constexpr int kTryAgainMs = 200;  // while the coordinator or agent restarts

}  // namespace

CommandInput::CommandInput(const PodCommand& command, bool terminal)
    : command_(command), terminal_(terminal), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

std::optional<Error> CommandInput::run(ApiClient& client) {
  if (terminal_) UserTerminal::opened().write(held_);
  while (!over_) {
    read_more();
    if (terminal_ && window_changed_.exchange(false)) UserTerminal::resized().write(held_);
    if (held_.empty() && !ended_) continue;
    if (over_ || send(client) != Next::more) break;
  }
  return refusal_;
}

void CommandInput::stop() {
  over_ = true;
  wake();
}

void CommandInput::window_changed() {
  window_changed_ = true;
  wake();
}

void CommandInput::wake() {
  eventfd_write(wake_.get(), 1);
}

bool CommandInput::woken(int wait_ms) {
  pollfd waking{wake_.get(), POLLIN, 0};
  eventfd_t count = 0;
  return poll(&waking, 1, wait_ms) > 0 && eventfd_read(wake_.get(), &count) == 0;
}

// Waits for input if there is nothing to send.
void CommandInput::read_more() {
  if (ended_ || held_.size() >= PodCommand::kWriteMax) return;
  std::array<pollfd, 2> fds{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
  poll(fds.data(), fds.size(), held_.empty() ? -1 : 0);
  if (fds[1].revents != 0) woken(0);
  if (fds[0].revents == 0) return;
  std::string bytes(kHeldMax - PodCommand::kWriteMax, '\0');
  const ssize_t size = read(STDIN_FILENO, bytes.data(), bytes.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  ended_ = size <= 0;
  if (ended_) return;
  bytes.resize(static_cast<size_t>(size));
  if (terminal_)
    TerminalInput{.bytes = std::move(bytes)}.write(held_);
  else
    held_ += bytes;
}

CommandInput::Next CommandInput::send(ApiClient& client) {
  const std::string part = held_.substr(0, PodCommand::kWriteMax);
  const auto answer = command_.write(client, taken_, part, ended_ && part.size() == held_.size());
  if (!answer) return find_again(client, answer.error());
  const uint64_t before = taken_;
  taken_ = std::clamp(answer->bytes, before, before + part.size());
  held_.erase(0, taken_ - before);
  return answer->closed ? Next::done : Next::more;
}

// If the command is gone, the reader of its output reports that.
CommandInput::Next CommandInput::find_again(ApiClient& client, const Error& failure) {
  if (failure.code == Errc::not_found) {
    const Status found = command_.resume(client);
    if (found.ok()) return Next::more;
    if (found.error().code == Errc::not_found || found.error().code == Errc::conflict)
      return Next::done;
  } else if (failure.code != Errc::unavailable && failure.code != Errc::overloaded) {
    refusal_ = failure;
    return Next::refused;
  }
  woken(kTryAgainMs);
  return Next::more;
}

}  // namespace muster::cli
