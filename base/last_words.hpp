// Last words: on which job a thread worked when the process crashed.
//
// A bug that one job brings out ends the process, and does so again at every start, since the job
// is still there. So that the next start knows it (coordinator/poisoned.hpp), the job is noted in a
// file by the handler of the signals that a crash raises: SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL.
// SIGKILL notes nothing: that is how operators and the kernel's memory killer end a process.
#pragma once

#include <cstdint>
#include <exception>
#include <string_view>

namespace muster {

// While it lives, this thread works on the job. One that ends because of an exception leaves its
// mark, for the abort that may follow.
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

// From now on, a crash appends "crash N VERSION\n" to this file if the crashing thread works on job
// N, and then takes its course. A process notes one crash. Keeps the descriptor; -1: stops it.
void note_crashes(int fd, std::string_view version);

}  // namespace muster
