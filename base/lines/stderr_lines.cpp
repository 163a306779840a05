#include "base/lines/stderr_lines.hpp"

#include "base/check.hpp"

#include <atomic>
#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace muster {
namespace {

// Never destroyed: other threads may write until the very end.
std::atomic<LineQueue*> stderr_queue = nullptr;
static_assert(std::atomic<LineQueue*>::is_always_lock_free);

}  // namespace

void queue_stderr(LineQueue::Notice notice) {
  static std::once_flag once;
  std::call_once(once, [&notice] {
    Fd copy(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!copy) return;
    try {
      stderr_queue = new LineQueue(std::move(copy), std::move(notice));
    } catch (const std::system_error&) {
      return;
    }
    say_failed_check = say_last;
    pthread_atfork(nullptr, nullptr, [] { stderr_queue = nullptr; });
    std::atexit(drain_stderr);
  });
}

void say(std::string line) {
  if (LineQueue* queue = stderr_queue) return queue->write(std::move(line));
  write_line(STDERR_FILENO, line);
}

void drain_stderr() noexcept {
  if (const LineQueue* queue = stderr_queue) queue->drain();
}

void say_last(std::string_view line) noexcept {
  if (stderr_queue != nullptr) {
    drain_stderr();
    // What fits into PIPE_BUF does not block where there is room.
    if (line.size() > PIPE_BUF) line = line.substr(0, PIPE_BUF);
    pollfd room{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    if (poll(&room, 1, static_cast<int>(LineQueue::kDrainMax)) != 1) return;
  }
  write_line(STDERR_FILENO, line);
}

uint64_t dropped_stderr_lines() {
  const LineQueue* queue = stderr_queue;
  return queue == nullptr ? 0 : queue->dropped();
}

std::string dropped_text(uint64_t dropped) {
  return std::to_string(dropped) + (dropped == 1 ? " line was" : " lines were") +
         " dropped: nobody reads the log";
}

}  // namespace muster
