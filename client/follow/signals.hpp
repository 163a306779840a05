// Signals: takes SIGINT, SIGTERM, SIGHUP and others, one at a time, in a process with threads. A
// SIGHUP that was ignored at the start (nohup) stays ignored.
//
// Blocks them in this thread and in all threads it starts, so construct it before the first thread.
#pragma once

#include "base/clock.hpp"

#include <csignal>
#include <initializer_list>
#include <pthread.h>

namespace muster::cli {

class Signals {
 public:
  static constexpr Millis kForever = -1;

  // `more`: further signals to take.
  explicit Signals(std::initializer_list<int> more = {});
  // The next signal, or 0 if none arrives within this time or wake() is called.
  int next(Millis wait_ms);
  // From any thread: ends the current or next wait of the thread that constructed this.
  void wake();

 private:
  sigset_t set_;
  pthread_t thread_;
};

}  // namespace muster::cli
