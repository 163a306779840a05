// Workshop: a thread that runs the work it is given, one piece at a time.
//
// For long computations that touch no shared state, such as validating a megabyte-sized manifest.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace muster::coordinator {

class Workshop {
 public:
  Workshop() : thread_([this] { run(); }) {}
  ~Workshop() { stop(); }
  Workshop(const Workshop&) = delete;

  // From any thread. Work given after stop() is dropped.
  void give(std::function<void()> work);
  // Finishes the work that has begun and drops the rest.
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace muster::coordinator
