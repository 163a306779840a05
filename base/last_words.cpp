#include "base/last_words.hpp"

#include "base/lines/stderr_lines.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <unistd.h>

namespace muster {
namespace {

constexpr std::array kSignals = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

constexpr size_t kVersionMax = 64;

std::atomic<int> crash_file{-1};
std::atomic<bool> noted{false};
std::array<char, kVersionMax + 2> tail;  // " VERSION\n"
size_t tail_size = 0;
std::array<struct sigaction, kSignals.size()> dispositions;

// Async-signal-safe: formats by hand.
void write_job(uint64_t job) {
  char text[sizeof "crash 18446744073709551615" + kVersionMax + 2] = "crash ";
  size_t end = 6;
  for (uint64_t rest = job; rest >= 10; rest /= 10) ++end;
  const size_t digits_end = end + 1;
  for (size_t at = end; at >= 6; --at, job /= 10) text[at] = static_cast<char>('0' + job % 10);
  std::memcpy(text + digits_end, tail.data(), tail_size);
  [[maybe_unused]] ssize_t ignored = write(crash_file, text, digits_end + tail_size);
}

// With kill(2), by another process: which thread gets it says nothing about any job.
bool sent_by_another(const siginfo_t& info) {
  return info.si_code <= 0 && info.si_pid != getpid();
}

// Returning from the handler repeats a fault, now under the earlier disposition. A signal that was
// sent does not repeat: it is raised again, and arrives once the handler returns.
void on_crash(int signal, siginfo_t* info, void*) {
  const uint64_t job = WorksOn::current();
  if (job != 0 && crash_file >= 0 && !sent_by_another(*info) && !noted.exchange(true))
    write_job(job);
  drain_stderr();
  for (size_t i = 0; i < kSignals.size(); ++i)
    if (kSignals[i] == signal) sigaction(signal, &dispositions[i], nullptr);
  if (info->si_code <= 0) raise(signal);
}

}  // namespace

void note_crashes(int fd, std::string_view version) {
  version = version.substr(0, kVersionMax);
  tail[0] = ' ';
  std::copy(version.begin(), version.end(), tail.begin() + 1);
  tail[version.size() + 1] = '\n';
  tail_size = version.size() + 2;
  const int old = crash_file.exchange(fd);
  if (old >= 0) close(old);
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_ONSTACK | SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &dispositions[i]);
    return true;
  }();
  static_cast<void>(installed);
}

}  // namespace muster
