// Inbox: brings tasks from other threads, such as CAF's, to a KJ thread.
//
// Any thread may post(); the tasks run on the KJ thread that owns the inbox, in order, in batches
// of whatever has arrived. The other direction is caf::anon_send.
//
// A task that may wait does not wake the thread while others like it arrive faster than one per
// millisecond: it runs with the next task that may not, or within kGatherMax. One that comes alone
// runs at once.
#pragma once

#include <kj/async-io.h>
#include <kj/async-unix.h>

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace muster::coordinator {

class Inbox {
 public:
  static constexpr auto kGatherMin = 1 * kj::MILLISECONDS, kGatherMax = 8 * kj::MILLISECONDS;

  Inbox(kj::UnixEventPort& port, kj::Timer& timer);
  enum class Wake { at_once, may_wait, not_yet };  // not_yet: wake() follows
  void post(std::function<void()> task, Wake when = Wake::at_once);
  void wake();
  // Runs posted tasks until the promise is dropped.
  kj::Promise<void> run();

 private:
  void wake_locked();
  kj::Promise<void> run_when_woken();
  kj::Promise<void> run_after(kj::Duration pause);
  void run_posted();

  kj::AutoCloseFd fd_;
  kj::UnixEventPort::FdObserver seen_;
  kj::Timer& timer_;
  kj::Promise<void> gathering_ = nullptr;
  std::mutex mutex_;  // guards what follows
  std::vector<std::function<void()>> tasks_;
  bool woken_ = false;          // fd_ is readable
  bool some_may_wait_ = false;  // of tasks_
  bool gathers_ = false;        // run_after() is pending
};

// Door: the handle to an inbox that other threads hold. Posts are dropped while it is shut.
class Door {
 public:
  void open(Inbox& inbox) {
    std::lock_guard lock(mutex_);
    inbox_ = &inbox;
  }
  void shut() {
    std::lock_guard lock(mutex_);
    inbox_ = nullptr;
  }
  void post(std::function<void()> task, Inbox::Wake when = Inbox::Wake::at_once);
  // Calls `posts`. What it posts, on this thread, wakes the inbox's thread once, at the end.
  void together(const std::function<void()>& posts);

 private:
  std::mutex mutex_;
  Inbox* inbox_ = nullptr;
};

}  // namespace muster::coordinator
