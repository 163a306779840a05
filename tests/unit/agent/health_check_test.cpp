// The command of --health-check: what fails it, and what it says.
#include "agent/health_check.hpp"

#include "tests/unit/agent/temp_dir.hpp"

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <fstream>
#include <optional>
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
