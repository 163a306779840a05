#include "coordinator/threads/inbox.hpp"

#include <sys/eventfd.h>
#include <utility>

namespace muster::coordinator {

Inbox::Inbox(kj::UnixEventPort& port)
    : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      seen_(port, fd_.get(), kj::UnixEventPort::FdObserver::OBSERVE_READ) {}

void Inbox::post(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  tasks_.push_back(std::move(task));
  if (tasks_.size() == 1) eventfd_write(fd_.get(), 1);
}

kj::Promise<void> Inbox::run() {
  eventfd_t count;  // edge-triggered: empty the counter first, then take the tasks
  eventfd_read(fd_.get(), &count);
  std::vector<std::function<void()>> batch;
  {
    std::lock_guard lock(mutex_);
    batch.swap(tasks_);
  }
  for (auto& task : batch) task();
  return seen_.whenBecomesReadable().then([this] { return run(); });
}

}  // namespace muster::coordinator
