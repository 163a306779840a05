// HollowExecutor: starts no processes. Each container "starts" at once and ends after a fixed time
// with a fixed exit code, so a scale test exercises the whole protocol without loading the machine.
//
// All run equally long, so they end in start order: a queue and one timer are enough.
#pragma once

#include "agent/run/executor.hpp"

#include <kj/async-io.h>

#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace muster::agent {

class HollowExecutor final : public Executor, private kj::TaskSet::ErrorHandler {
 public:
  HollowExecutor(kj::Timer& timer, Millis duration_ms, int exit_code)
      : timer_(timer), duration_ms_(duration_ms), exit_code_(exit_code), later_(*this) {}

  ~HollowExecutor() noexcept override = default;
  Result<Inventory> connect(Listener& listener) override;
  Limits limits() const override { return {false, false, "a hollow node starts no processes"}; }
  void start(const std::vector<Start>& starts) override;
  void kill(const std::vector<core::node::KillOrder>& kills) override;
  void forget(const std::vector<uint64_t>&) override {}  // stores nothing
  void end_all() override;

 private:
  void wake(Millis delay_ms);
  void tell();
  void taskFailed(kj::Exception&& exception) override;

  kj::Timer& timer_;
  const Millis duration_ms_;
  const int exit_code_;
  Listener* listener_ = nullptr;
  int last_pid_ = 0;
  using Key = std::pair<PodId, core::node::Step>;
  std::map<Key, core::node::ProcessStart> living_;
  std::deque<Key> order_;                          // by start; may include killed ones
  std::vector<core::node::ProcessStart> started_;  // for the listener, as are:
  std::vector<core::node::ProcessEnd> ended_;
  bool waking_soon_ = false;
  bool waking_later_ = false;
  kj::TaskSet later_;
};

}  // namespace muster::agent
