// EventPace: when the events of something are looked for, and how many are written.
//
// Belongs to the API thread.
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"

#include <kj/async.h>
#include <kj/timer.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <string>
#include <utility>

namespace muster::api {

class EventPace {
 public:
  // `what`: the events, for the log.
  EventPace(kj::Timer& timer, const char* what) : timer_(timer), what_(what) {}

  // Calls `look` once a second from now on. Nothing happens if it does already.
  void start(std::function<void()> look) {
    if (std::exchange(running_, true)) return;
    look_ = std::move(look);
    work_ = rounds().eagerlyEvaluate([this](kj::Exception&& failed) {
      running_ = false;
      log::error("{} are no longer written: {}", what_, failed.getDescription().cStr());
    });
  }
  // How many were written in the hour before `now`.
  size_t in_an_hour(Millis now) {
    while (!made_.empty() && made_.front() + kHourMs <= now) made_.pop_front();
    return made_.size();
  }
  void count(Millis now) { made_.push_back(now); }
  // As Kubernetes' clients name events, from the time; two of one millisecond differ in the rest.
  std::string unique(Millis now) {
    char text[24];
    std::snprintf(text, sizeof text, "%016" PRIx64,
                  static_cast<uint64_t>(now) * 1'000'000 + ++last_ % 1'000'000);
    return text;
  }

 private:
  static constexpr Millis kHourMs = 3'600'000;

  kj::Promise<void> rounds() {
    return timer_.afterDelay(1 * kj::SECONDS).then([this] {
      look_();
      return rounds();
    });
  }

  kj::Timer& timer_;
  const char* const what_;
  std::function<void()> look_;
  std::deque<Millis> made_;  // in the last hour
  uint64_t last_ = 0;
  bool running_ = false;
  kj::Promise<void> work_ = kj::READY_NOW;
};

}  // namespace muster::api
