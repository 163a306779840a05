// Inbox: where CAF and KJ meet.
//
// post() from any thread; the tasks run on the KJ thread that owns the inbox, in order, in batches
// of what arrived meanwhile. The other direction is caf::anon_send.
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
  // Runs what is posted, until the promise is dropped.
  kj::Promise<void> run();

 private:
  kj::AutoCloseFd fd_;
  kj::UnixEventPort::FdObserver seen_;
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
};

// Door: what other threads hold of an inbox. Shut, what they post is dropped.
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
