#include "base/lines/line_queue.hpp"

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <deque>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace muster {
namespace {

thread_local bool is_line_writer = false;

// The number of bytes written.
size_t write_bytes(int fd, std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n < 0 && errno == EAGAIN) {  // whoever shares the descriptor made it non-blocking
      pollfd room{.fd = fd, .events = POLLOUT, .revents = 0};
      poll(&room, 1, -1);
    } else if (n == 0 || errno != EINTR) {
      break;
    }
  }
  return done;
}

// Lets the threads started meanwhile inherit a mask that blocks all signals.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

bool write_line(int fd, std::string_view line) {
  return write_bytes(fd, line) == line.size();
}

struct LineQueue::Shared {
  const Fd fd;
  const Notice notice;
  const Limits limits;
  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by the mutex:
  std::deque<std::string> lines;
  size_t bytes = 0;
  uint64_t missing = 0;  // lines lost since the last notice
  bool ended = false;
  // Not guarded, since drain() may run in a signal handler:
  std::atomic<size_t> waiting = 0;  // in `lines`, or being written
  std::atomic<uint64_t> dropped = 0;

  Shared(Fd fd_, Notice notice_, Limits limits_)
      : fd(std::move(fd_)), notice(std::move(notice_)), limits(limits_) {}

  void lose(uint64_t count) {
    missing += count;
    dropped += count;
  }

  std::string take_front() {
    std::string line = std::move(lines.front());
    lines.pop_front();
    bytes -= line.size();
    return line;
  }

  void run() {
    is_line_writer = true;
    bool torn = false;  // the descriptor ends in a part of a line
    auto put = [&](const std::string& line) {
      if (torn && !write_line(fd.get(), "\n")) return false;
      const size_t done = write_bytes(fd.get(), line);
      torn = done > 0 && done < line.size();
      return done == line.size();
    };
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return ended || !lines.empty(); });
      if (lines.empty()) return;
      const uint64_t lost = std::exchange(missing, 0);
      const std::string line = take_front();
      lock.unlock();
      const bool told = lost == 0 || put(notice(lost));
      const bool written = told && put(line);
      lock.lock();
      if (!told) missing += lost;
      if (!written) lose(1);
      --waiting;
    }
  }
};

LineQueue::LineQueue(Fd fd, Notice notice, Limits limits)
    : shared_(std::make_shared<Shared>(std::move(fd), std::move(notice), limits)) {
  // Signals are for the other threads; and a reader that left must not end us by SIGPIPE.
  const AllSignalsBlocked blocked;
  std::thread([shared = shared_] { shared->run(); }).detach();
}

LineQueue::~LineQueue() {
  drain();
  const std::lock_guard lock(shared_->mutex);
  shared_->ended = true;
  shared_->changed.notify_one();
}

void LineQueue::write(std::string line) {
  const std::lock_guard lock(shared_->mutex);
  shared_->bytes += line.size();
  shared_->lines.push_back(std::move(line));
  ++shared_->waiting;
  while (!shared_->lines.empty() && (shared_->lines.size() > shared_->limits.lines ||
                                     shared_->bytes > shared_->limits.bytes)) {
    shared_->take_front();
    shared_->lose(1);
    --shared_->waiting;
  }
  shared_->changed.notify_one();
}

void LineQueue::drain() const noexcept {
  if (is_line_writer) return;  // it would wait for itself
  constexpr timespec kPause{0, 1'000'000};
  const Millis begin = boot_now();
  while (shared_->waiting > 0 && boot_now() - begin < kDrainMax) nanosleep(&kPause, nullptr);
}

uint64_t LineQueue::dropped() const {
  return shared_->dropped;
}

}  // namespace muster
