#include "coordinator/threads/inbox.hpp"

#include "base/check.hpp"

#include <sys/eventfd.h>
#include <utility>

namespace muster::coordinator {

namespace {

thread_local const Door* holds_back = nullptr;  // the door in whose together() this thread is

}  // namespace

Inbox::Inbox(kj::UnixEventPort& port, kj::Timer& timer)
    : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      seen_(port, fd_.get(), kj::UnixEventPort::FdObserver::OBSERVE_READ),
      timer_(timer) {}

void Inbox::post(std::function<void()> task, Wake when) {
  std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  const bool may_wait = when == Wake::may_wait;
  some_may_wait_ = some_may_wait_ || may_wait;
  if (when != Wake::not_yet && !(may_wait && gathers_)) wake_locked();
}

void Inbox::wake() {
  std::lock_guard lock(mutex_);
  if (!tasks_.empty()) wake_locked();
}

void Inbox::wake_locked() {
  if (!std::exchange(woken_, true)) eventfd_write(fd_.get(), 1);
}

kj::Promise<void> Inbox::run() {
  return run_when_woken().attach(kj::defer([this] { gathering_ = nullptr; }));
}

// Edge-triggered: empty the counter first, then take the tasks.
kj::Promise<void> Inbox::run_when_woken() {
  eventfd_t count;
  eventfd_read(fd_.get(), &count);
  bool begin_gathering;
  {
    std::lock_guard lock(mutex_);
    woken_ = false;
    begin_gathering = some_may_wait_ && !gathers_;
    if (begin_gathering) gathers_ = true;
  }
  if (begin_gathering)
    gathering_ = run_after(kGatherMin).eagerlyEvaluate([](kj::Exception&& e) {
      MUSTER_CHECK(false, e.getDescription().cStr());
    });
  run_posted();
  return seen_.whenBecomesReadable().then([this] { return run_when_woken(); });
}

kj::Promise<void> Inbox::run_after(kj::Duration pause) {
  return timer_.afterDelay(pause).then([this, pause]() -> kj::Promise<void> {
    {
      std::lock_guard lock(mutex_);
      gathers_ = some_may_wait_;
      if (!gathers_) return kj::READY_NOW;
    }
    run_posted();
    return run_after(kj::min(2 * pause, kGatherMax));
  });
}

void Inbox::run_posted() {
  std::vector<std::function<void()>> batch;
  {
    std::lock_guard lock(mutex_);
    batch.swap(tasks_);
    some_may_wait_ = false;
  }
  for (auto& task : batch) task();
}

void Door::post(std::function<void()> task, Inbox::Wake when) {
  if (holds_back == this) when = Inbox::Wake::not_yet;
  std::lock_guard lock(mutex_);
  if (inbox_ != nullptr) inbox_->post(std::move(task), when);
}

void Door::together(const std::function<void()>& posts) {
  const Door* const outer = std::exchange(holds_back, this);
  posts();
  holds_back = outer;
  if (outer == this) return;
  std::lock_guard lock(mutex_);
  if (inbox_ != nullptr) inbox_->wake();
}

}  // namespace muster::coordinator
