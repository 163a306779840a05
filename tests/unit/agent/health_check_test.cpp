// The command of --health-check: what fails it, and what it says.
#include "agent/health_check.hpp"

#include "tests/unit/agent/temp_dir.hpp"

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <vector>

namespace muster::agent {
namespace {

class HealthCheckTest : public testing::Test {
 protected:
  ~HealthCheckTest() noexcept override = default;

  void start(const std::string& command, Millis timeout_ms = 10'000) {
    task_ = nullptr;
    check_.emplace(
        io_.provider->getTimer(), command, Millis{50},
        [this] { said_.push_back(check_->failure()); }, timeout_ms);
    task_ = check_->run().eagerlyEvaluate(nullptr);
  }
  // What the command comes to the first time.
  std::string result(const std::string& command, Millis timeout_ms = 10'000) {
    said_.clear();
    start(command, timeout_ms);
    EXPECT_FALSE(check_->failure().empty()) << "until the first one has ended";
    wait_for(1);
    return check_->failure();
  }
  void wait_for(size_t changes) {
    auto& timer = io_.provider->getTimer();
    const auto until = timer.now() + 20 * kj::SECONDS;
    while (said_.size() < changes && timer.now() < until)
      timer.afterDelay(5 * kj::MILLISECONDS).wait(io_.waitScope);
    ASSERT_GE(said_.size(), changes);
  }

  // Whether it becomes true in time.
  template <class Condition>
  bool later(Condition condition) {
    auto& timer = io_.provider->getTimer();
    const auto until = timer.now() + 20 * kj::SECONDS;
    while (!condition() && timer.now() < until)
      timer.afterDelay(5 * kj::MILLISECONDS).wait(io_.waitScope);
    return condition();
  }
  // Whether the process has ended; it may not be reaped yet.
  static bool gone(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    if (!std::getline(file, text)) return true;
    return text.find(") Z ") != std::string::npos;
  }
  static size_t lines_of(const std::string& path) {
    std::ifstream file(path);
    return static_cast<size_t>(
        std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n'));
  }

  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  std::vector<std::string> said_;
  std::optional<HealthCheck> check_;
  kj::Promise<void> task_ = nullptr;
};

TEST_F(HealthCheckTest, LastLineOfAFailedCheckSaysWhy) {
  EXPECT_EQ(result("echo fine"), "");
  EXPECT_EQ(result("echo ERROR: no /scratch; exit 1"), "ERROR: no /scratch");
  EXPECT_EQ(result("echo one; echo two >&2; echo; exit 3"), "two");
  EXPECT_EQ(result("printf 'no newline'; exit 1"), "no newline");
  EXPECT_EQ(result("printf 'a\\033[2Jb\\n'; exit 1"), "a\\x1b[2Jb");
  EXPECT_EQ(result("exit 7"), "the health check exited with 7");
  EXPECT_EQ(result("kill -9 $$"), "the health check was ended by signal 9");
  EXPECT_EQ(result("/no/such/check 2>/dev/null"), "the health check exited with 127");
}

TEST_F(HealthCheckTest, TakesNoLongerThanItsTimeout) {
  EXPECT_EQ(result("echo at /dev/sdb; sleep 100 & wait", 1'000),
            "the health check took longer than 1 s: at /dev/sdb");
  EXPECT_EQ(result("yes", 1'000), "the health check took longer than 1 s: y");
  EXPECT_EQ(result("sleep 100 & echo started"), "") << "what it leaves behind is not waited for";
}

TEST_F(HealthCheckTest, TheNextCheckFollowsOneThatWasKilled) {
  TempDir dir;
  start("if [ -e " + dir.path() + "/x ]; then exit 0; fi; touch " + dir.path() + "/x; sleep 1000",
        500);
  wait_for(2);
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_EQ(said_[0], "the health check took longer than 0 s");
  EXPECT_EQ(said_[1], "");
}

// Only SIGKILL ends it and its child.
TEST_F(HealthCheckTest, ACheckThatIgnoresSignalsIsReportedAndALaterOneRuns) {
  TempDir dir;
  const std::string once = dir.path() + "/once", pids = dir.path() + "/pids";
  start("if [ -e " + once + " ]; then exit 0; fi; touch " + once +
            "; trap '' TERM INT HUP PIPE; sleep 1000 & echo $$ $! > " + pids +
            "; echo stuck; while :; do sleep 1; done",
        1'000);
  wait_for(2);
  EXPECT_EQ(said_, (std::vector<std::string>{"the health check took longer than 1 s: stuck", ""}));
  pid_t shell = 0, child = 0;
  std::ifstream(pids) >> shell >> child;
  ASSERT_GT(child, 0);
  EXPECT_LT(::kill(shell, 0), 0) << "it is reaped before the next one starts";
  EXPECT_TRUE(later([&] { return gone(child); })) << "the whole process group is killed";
}

TEST_F(HealthCheckTest, KilledChecksAreRepeatedAndReportedOnce) {
  TempDir dir;
  const std::string runs = dir.path() + "/runs";
  start("echo >> " + runs + "; sleep 1000", 300);
  wait_for(1);
  EXPECT_EQ(said_[0], "the health check took longer than 0 s");
  EXPECT_EQ(lines_of(runs), 1u);
  EXPECT_TRUE(later([&] { return lines_of(runs) >= 3; })) << "they go on";
  EXPECT_EQ(said_.size(), 1u) << "which says nothing new";
}

TEST_F(HealthCheckTest, DestructionKillsTheCheckAndDoesNotWait) {
  TempDir dir;
  const std::string file = dir.path() + "/pid";
  start("trap '' TERM; echo $$ > " + file + ".new; mv " + file + ".new " + file +
        "; while :; do sleep 1; done");
  pid_t pid = 0;
  ASSERT_TRUE(later([&] { return static_cast<bool>(std::ifstream(file) >> pid); }));
  const Millis before = boot_now();
  task_ = nullptr;
  check_.reset();
  EXPECT_LT(boot_now() - before, 1'000);
  EXPECT_TRUE(later([&] { return gone(pid); }));
  waitpid(pid, nullptr, WNOHANG);
}

TEST_F(HealthCheckTest, IsRepeatedAndReportsOnlyChanges) {
  TempDir dir;
  const std::string bad = dir.path() + "/bad";
  start("if [ -e " + bad + " ]; then cat " + bad + "; exit 1; fi");
  wait_for(1);
  EXPECT_EQ(said_.back(), "");
  std::ofstream(bad) << "disk full\n";
  wait_for(2);
  EXPECT_EQ(said_.back(), "disk full");
  std::ofstream(bad) << "disk gone\n";
  wait_for(3);
  std::remove(bad.c_str());
  wait_for(4);
  EXPECT_EQ(said_, (std::vector<std::string>{"", "disk full", "disk gone", ""}));
}

}  // namespace
}  // namespace muster::agent
