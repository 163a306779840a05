#include "agent/run/hollow_executor.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace muster::agent {

namespace {
constexpr int kExitSignalled = 128;  // plus the signal
constexpr int kPidMax = 4'194'304;   // as on 64-bit Linux
}  // namespace

Result<Executor::Inventory> HollowExecutor::connect(Listener& listener) {
  listener_ = &listener;
  return Inventory{};
}

void HollowExecutor::start(const std::vector<Start>& starts) {
  Millis now = boot_now();
  for (const Start& start : starts) {
    last_pid_ = last_pid_ % kPidMax + 1;
    core::node::ProcessStart process{start.order.pod, start.order.step, last_pid_, now};
    Key key{process.pod, process.step};
    if (!living_.emplace(key, process).second) continue;
    order_.push_back(key);
    started_.push_back(process);
  }
  wake(0);
}

void HollowExecutor::kill(const std::vector<core::node::KillOrder>& kills) {
  for (const auto& order : kills) {
    auto found = living_.find({order.pod, order.step});
    if (found == living_.end()) continue;
    int signal = order.grace_ms == 0 ? SIGKILL : SIGTERM;
    ended_.push_back({.pod = order.pod,
                      .step = order.step,
                      .start = {{found->second.pid, found->second.at}},
                      .exit_code = kExitSignalled + signal,
                      .signal = signal,
                      .ended_at = boot_now()});
    living_.erase(found);
  }
  wake(0);
}

void HollowExecutor::end_all() {
  living_.clear();
  order_.clear();
  later_.add(kj::evalLater([this] { listener_->on_executor_gone("all ended"); }));
}

void HollowExecutor::wake(Millis delay_ms) {
  if (delay_ms == 0) {
    if (std::exchange(waking_soon_, true)) return;
    later_.add(kj::evalLater([this] {
      waking_soon_ = false;
      tell();
    }));
  } else {
    if (std::exchange(waking_later_, true)) return;
    later_.add(timer_.afterDelay(delay_ms * kj::MILLISECONDS).then([this] {
      waking_later_ = false;
      tell();
    }));
  }
}

void HollowExecutor::tell() {
  Millis now = boot_now();
  while (!order_.empty()) {
    auto found = living_.find(order_.front());
    if (found == living_.end()) {
      order_.pop_front();
      continue;
    }
    const auto& process = found->second;
    Millis left = process.at + duration_ms_ - now;
    if (left > 0) {
      wake(left);
      break;
    }
    ended_.push_back({.pod = process.pod,
                      .step = process.step,
                      .start = {{process.pid, process.at}},
                      .exit_code = exit_code_,
                      .ended_at = now});
    living_.erase(found);
    order_.pop_front();
  }
  if (!started_.empty()) listener_->on_started(std::exchange(started_, {}));
  if (!ended_.empty()) listener_->on_ended(std::exchange(ended_, {}));
}

void HollowExecutor::taskFailed(kj::Exception&& exception) {
  MUSTER_CHECK(false, exception.getDescription().cStr());
}

}  // namespace muster::agent
