// Last words: notes which job a thread was working on when the process crashed.
//
// A bug that one job triggers crashes the process again at every start, since the job is still
// there. For the next start (coordinator/poisoned.hpp), the handler of the signals that a crash
// raises (SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL) notes the job in a file. The same signals from
// another process, such as the SIGABRT of systemd's watchdog, note nothing and end the process all
// the same. SIGKILL notes nothing either: that is how operators and the kernel's OOM killer end a
// process.
#pragma once

#include <cstdint>
#include <exception>
#include <string_view>

namespace muster {

// Marks this thread as working on the job while it lives. If an exception destroys it, the mark
// stays, for the abort that may follow.
class WorksOn {
 public:
  explicit WorksOn(uint64_t job) : before_(current_), exceptions_(std::uncaught_exceptions()) {
    current_ = job;
  }
  ~WorksOn() {
    if (std::uncaught_exceptions() == exceptions_) current_ = before_;
  }
  WorksOn(const WorksOn&) = delete;
  WorksOn& operator=(const WorksOn&) = delete;

  static uint64_t current() { return current_; }  // 0: none

 private:
  inline static thread_local uint64_t current_ = 0;
  const uint64_t before_;
  const int exceptions_;
};

// From now on, a crash appends "crash N VERSION" and a newline to this file if the crashing thread
// is working on job N, and then proceeds as usual. A process notes only one crash. Takes ownership
// of the descriptor; -1 turns notes off.
void note_crashes(int fd, std::string_view version);

}  // namespace muster
