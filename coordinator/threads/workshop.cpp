#include "coordinator/threads/workshop.hpp"

#include <utility>

namespace muster::coordinator {

void Workshop::give(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  waiting_.push_back(std::move(work));
  wake_.notify_one();
}

void Workshop::stop() {
  std::deque<std::function<void()>> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped.swap(waiting_);
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Workshop::run() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
      if (stopped_) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
  }
}

}  // namespace muster::coordinator
