#include "agent/health_check.hpp"

#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/process/spawn_clean.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

extern char** environ;

namespace muster::agent {

namespace {

constexpr Millis kCheckPollMs = 100;
constexpr size_t kShownMax = 400;  // bytes of the line that is shown
constexpr size_t kReadsMax = 64;  // of 4 KiB at a time; a command that never stops must not hold us

}  // namespace

HealthCheck::HealthCheck(kj::Timer& timer, std::string command, Millis every_ms,
                         std::function<void()> changed, Millis timeout_ms)
    : timer_(timer),
      command_(std::move(command)),
      every_ms_(every_ms),
      timeout_ms_(timeout_ms),
      changed_(std::move(changed)),
      failure_("the first health check has not ended yet") {}

HealthCheck::~HealthCheck() {
  if (child_ <= 0) return;
  kill();
  waitpid(child_, nullptr, WNOHANG);
}

kj::Promise<void> HealthCheck::run() {
  kj::Promise<std::string> ended = nullptr;
  if (std::string why = start(); !why.empty())
    ended = std::move(why);
  else
    ended = watch(timer_.now() + timeout_ms_ * kj::MILLISECONDS);
  return ended.then([this](std::string failure) {
    become(std::move(failure));
    return timer_.afterDelay(every_ms_ * kj::MILLISECONDS).then([this] { return run(); });
  });
}

std::string HealthCheck::start() {
  line_.clear();
  last_.clear();
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) < 0)
    return std::string("cannot run the health check: ") + std::strerror(errno);
  output_ = kj::AutoCloseFd(ends[0]);
  kj::AutoCloseFd theirs(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  int error = 0;
  std::string shell = "sh", flag = "-c", text = command_;
  const std::array<char*, 4> argv{shell.data(), flag.data(), text.data(), nullptr};
  child_ =
      spawn_clean("/bin/sh", argv.data(), environ, -1, theirs.get(), POSIX_SPAWN_SETPGROUP, error);
  return child_ > 0 ? "" : std::string("cannot run the health check: ") + std::strerror(error);
}

kj::Promise<std::string> HealthCheck::watch(kj::TimePoint deadline) {
  read();
  int status = 0;
  if (waitpid(child_, &status, WNOHANG) == child_) {
    child_ = 0;
    read();
    return verdict(status);
  }
  if (timer_.now() >= deadline) {
    kill();
    std::string failure = "the health check took longer than " +
                          std::to_string(timeout_ms_ / 1000) + " s" +
                          (last_.empty() ? "" : ": " + last_);
    become(failure);
    return gone().then([failure = std::move(failure)] { return failure; });
  }
  return timer_.afterDelay(kCheckPollMs * kj::MILLISECONDS).then([this, deadline] {
    return watch(deadline);
  });
}

void HealthCheck::read() {
  std::array<char, 4096> bytes;
  const auto end_line = [this] {
    const size_t from = line_.find_first_not_of(" \t\r"), to = line_.find_last_not_of(" \t\r");
    if (from != std::string::npos) last_ = on_one_line(line_.substr(from, to - from + 1));
    line_.clear();
  };
  for (size_t reads = 0; reads < kReadsMax; ++reads) {
    const ssize_t got = ::read(output_.get(), bytes.data(), bytes.size());
    if (got <= 0) break;
    for (ssize_t i = 0; i < got; ++i) {
      const char c = bytes[static_cast<size_t>(i)];
      if (c == '\n')
        end_line();
      else if (line_.size() < kShownMax)
        line_ += c;
    }
  }
  if (child_ == 0) end_line();
}

std::string HealthCheck::verdict(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (!last_.empty()) return last_;
  return WIFSIGNALED(status)
             ? "the health check was ended by signal " + std::to_string(WTERMSIG(status))
             : "the health check exited with " + std::to_string(WEXITSTATUS(status));
}

void HealthCheck::kill() {
  ::kill(-child_, SIGKILL);
  ::kill(child_, SIGKILL);
}

// A process stuck in uninterruptible I/O does not die of SIGKILL. Blocking in waitpid() would stop
// the agent's loop, too.
kj::Promise<void> HealthCheck::gone() {
  if (waitpid(child_, nullptr, WNOHANG) != 0) {
    child_ = 0;
    return kj::READY_NOW;
  }
  return timer_.afterDelay(kCheckPollMs * kj::MILLISECONDS).then([this] { return gone(); });
}

void HealthCheck::become(std::string failure) {
  output_ = nullptr;
  if (failure == failure_) return;
  if (failure.empty())
    log::info("the health check passes");
  else
    log::warn("the health check fails: {}", failure);
  failure_ = std::move(failure);
  changed_();
}

}  // namespace muster::agent
