// HealthCheck: runs the command of --health-check again and again, and says whether the node passes
// it. Slurm's HealthCheckProgram does the same, so a script of Node Health Check fits as it is.
//
// The command fails if it exits with anything but 0 or takes longer than kTimeoutMs; then it and
// its process group are killed. That is reported at once, but the next check waits until this one
// is gone. The last line that it wrote says why it failed. Until the first check has ended, the
// node does not pass.
//
// One check at a time; the next one begins `every_ms` after the end of the last. Its output is read
// as it comes and not kept, so the command never waits for us.
#pragma once

#include "base/clock.hpp"

#include <kj/async.h>
#include <kj/io.h>
#include <kj/timer.h>

#include <functional>
#include <string>
#include <sys/types.h>

namespace muster::agent {

class HealthCheck {
 public:
  static constexpr Millis kTimeoutMs = 60'000;

  // `command` is for sh -c. `changed` is called after each change of failure().
  HealthCheck(kj::Timer& timer, std::string command, Millis every_ms, std::function<void()> changed,
              Millis timeout_ms = kTimeoutMs);
  ~HealthCheck();  // kills a check that runs, and does not wait for it
  HealthCheck(const HealthCheck&) = delete;
  HealthCheck& operator=(const HealthCheck&) = delete;

  kj::Promise<void> run();  // never returns
  // Why the node does not pass; empty: it does.
  const std::string& failure() const { return failure_; }

 private:
  std::string start();  // why it could not; empty: it runs
  kj::Promise<std::string> watch(kj::TimePoint deadline);
  void read();
  std::string verdict(int status);
  void kill();
  kj::Promise<void> gone();
  void become(std::string failure);

  kj::Timer& timer_;
  const std::string command_;
  const Millis every_ms_, timeout_ms_;
  const std::function<void()> changed_;
  std::string failure_;
  pid_t child_ = 0;  // 0: none
  kj::AutoCloseFd output_{};
  std::string line_;  // being read
  std::string last_;  // the last one that was not blank
};

}  // namespace muster::agent
