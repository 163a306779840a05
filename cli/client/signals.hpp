// Signals: takes SIGINT, SIGTERM and SIGHUP one by one, in a process with threads.
//
// Blocks them in this thread and in all threads it starts, so construct it before the first thread.
#pragma once

#include "base/clock.hpp"

#include <csignal>

namespace muster::cli {

class Signals {
 public:
  static constexpr Millis kForever = -1;

  Signals();
  // The next signal, or 0 if none arrives within this time.
  int next(Millis wait_ms);

 private:
  sigset_t set_;
};

}  // namespace muster::cli
