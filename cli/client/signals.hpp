// Signals: SIGINT, SIGTERM and SIGHUP of a process with threads, taken one by one where they are
// waited for.
//
// Blocks them in this thread and so in all that it starts; so it has to be there before the first
// of them.
#pragma once

#include "base/clock.hpp"

#include <csignal>

namespace muster::cli {

class Signals {
 public:
  static constexpr Millis kForever = -1;

  Signals();
  // A signal that came, or 0 when none did within this time.
  int next(Millis wait_ms);

 private:
  sigset_t set_;
};

}  // namespace muster::cli
