// Signals: takes SIGINT, SIGTERM, SIGHUP and others, one by one, in a process with threads.
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

  // `more`: also these.
  explicit Signals(std::initializer_list<int> more = {});
  // The next signal, or 0 if none arrives within this time or someone calls wake().
  int next(Millis wait_ms);
  // Any thread: ends the wait of the thread that constructed this, or its next one.
  void wake();

 private:
  sigset_t set_;
  pthread_t thread_;
};

}  // namespace muster::cli
