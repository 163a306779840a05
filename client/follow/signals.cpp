#include "client/follow/signals.hpp"

#include <ctime>

namespace muster::cli {
namespace {

const int kWake = SIGRTMIN;

}  // namespace

Signals::Signals(std::initializer_list<int> more) : thread_(pthread_self()) {
  sigemptyset(&set_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // Whoever used nohup means it. A shell's `&` ignores SIGINT, though nobody asked it to.
    struct sigaction found = {};
    if (signal == SIGHUP && sigaction(signal, nullptr, &found) == 0 && found.sa_handler == SIG_IGN)
      continue;
    std::signal(signal, SIG_DFL);
    sigaddset(&set_, signal);
  }
  for (const int signal : more) sigaddset(&set_, signal);
  sigaddset(&set_, kWake);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
}

void Signals::wake() {
  pthread_kill(thread_, kWake);
}

int Signals::next(Millis wait_ms) {
  if (wait_ms < 0) {
    const int signal = sigwaitinfo(&set_, nullptr);
    return signal > 0 && signal != kWake ? signal : 0;
  }
  timespec wait{};
  wait.tv_sec = static_cast<time_t>(wait_ms / 1000);
  wait.tv_nsec = static_cast<long>(wait_ms % 1000 * 1'000'000);
  const int signal = sigtimedwait(&set_, nullptr, &wait);
  return signal > 0 && signal != kWake ? signal : 0;
}

}  // namespace muster::cli
