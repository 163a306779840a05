// Workshop: a thread that works off what it is given, one after the other.
//
// For what takes long and concerns nobody else, such as the judging of a manifest of a megabyte.
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

  // From any thread. Nothing becomes of what is given after stop().
  void give(std::function<void()> work);
  // What is begun is finished, the rest is dropped.
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
