#include "base/last_words.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <unistd.h>

namespace muster {
namespace {

constexpr std::array kSignals = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

std::atomic<int> crash_file{-1};
std::array<struct sigaction, kSignals.size()> dispositions;

// Async-signal-safe: formats by hand.
void write_job(uint64_t job) {
  char text[32] = "job ";
  size_t digits = 1;
  for (uint64_t rest = job; rest >= 10; rest /= 10) ++digits;
  for (size_t i = digits; i > 0; --i, job /= 10) text[3 + i] = static_cast<char>('0' + job % 10);
  text[4 + digits] = '\n';
  [[maybe_unused]] ssize_t ignored = write(crash_file, text, 5 + digits);
}

// Returning from the handler repeats a fault, which then finds the earlier disposition; abort()
// raises its signal again by itself.
void on_crash(int signal) {
  if (const uint64_t job = WorksOn::current(); job != 0 && crash_file >= 0) write_job(job);
  for (size_t i = 0; i < kSignals.size(); ++i)
    if (kSignals[i] == signal) sigaction(signal, &dispositions[i], nullptr);
}

}  // namespace

void note_crashes(int fd) {
  const int old = crash_file.exchange(fd);
  if (old >= 0) close(old);
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_handler = on_crash;
    action.sa_flags = SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &dispositions[i]);
    return true;
  }();
  static_cast<void>(installed);
}

}  // namespace muster
