// Inbox: where CAF and KJ meet.
//
// post() from any thread; the tasks run on the KJ thread that owns the inbox, in order, in batches
// of what arrived meanwhile. The other direction is caf::anon_send.
#pragma once

#include <kj/async-io.h>
#include <kj/async-unix.h>

#include <functional>
#include <mutex>
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

}  // namespace muster::coordinator
