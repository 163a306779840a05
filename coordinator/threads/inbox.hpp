// Inbox: brings tasks from other threads, such as CAF's, to a KJ thread.
//
// Any thread may post(); the tasks run on the KJ thread that owns the inbox, in order, in batches
// of whatever has arrived. The other direction is caf::anon_send.
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
  explicit Inbox(kj::UnixEventPort& port);
  void post(std::function<void()> task);
  // Runs posted tasks until the promise is dropped.
  kj::Promise<void> run();

 private:
  kj::AutoCloseFd fd_;
  kj::UnixEventPort::FdObserver seen_;
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
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
  void post(std::function<void()> task) {
    std::lock_guard lock(mutex_);
    if (inbox_ != nullptr) inbox_->post(std::move(task));
  }

 private:
  std::mutex mutex_;
  Inbox* inbox_ = nullptr;
};

}  // namespace muster::coordinator
