// muster.dev/signal: what is accepted, and what it means.
#include "core/spec/fields/limit_signal.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace muster::core {
namespace {

TEST(LimitSignalTest, ReadsSignalsAsSbatchDoes) {
  const std::pair<const char*, LimitSignal> cases[] = {
      {"USR1@120", {SIGUSR1, 120'000, false}}, {"SIGUSR2@2m", {SIGUSR2, 120'000, false}},
      {"TERM", {SIGTERM, 60'000, false}},      {"B:10@30", {10, 30'000, true}},
      {"USR1@1.5", {SIGUSR1, 1'500, false}},   {"B:CONT", {SIGCONT, 60'000, true}}};
  for (const auto& [text, signal] : cases) {
    const auto read = parse_limit_signal(text);
    ASSERT_TRUE(read.ok()) << text << ": " << read.error().message;
    EXPECT_EQ(*read, signal) << text;
    EXPECT_EQ(limit_signal_of({{"muster.dev/signal", text}}), signal);
  }
}

TEST(LimitSignalTest, RejectsOtherSignalsAndTimes) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "must be SIGNAL@TIME, such as USR1@2m, with one of HUP, INT"},
      {"KILL@60", "must be SIGNAL@TIME"},
      {"9@60", "must be SIGNAL@TIME"},
      {"usr1@60", "must be SIGNAL@TIME"},
      {"R:USR1@60", "must be SIGNAL@TIME"},
      {"0", "must be SIGNAL@TIME"},
      {"USR1@", "must be a duration such as 2m or a number of seconds"},
      {"USR1@0", "must be a duration"},
      {"USR1@-5", "must be a duration"},
      {"USR1@2 minutes", "must be a duration"}};
  for (const auto& [text, why] : cases) {
    const auto read = parse_limit_signal(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(read.error().message.find(why), std::string::npos) << read.error().message;
    EXPECT_FALSE(limit_signal_of({{"muster.dev/signal", text}}));
  }
}

TEST(LimitSignalTest, ComesBetweenStartAndLimit) {
  const auto wrong = [](std::optional<int64_t> limit_s) {
    JobSpec spec;
    spec.pod.active_deadline_s = limit_s;
    Violations found;
    validate_limit_signal({{"muster.dev/signal", "USR1@60"}}, spec, found);
    return found.empty() ? std::string() : found.list().front().detail;
  };
  EXPECT_EQ(wrong(61), "");
  EXPECT_NE(wrong(60).find("must come later than the start"), std::string::npos);
  EXPECT_NE(wrong(std::nullopt).find("needs a time limit of the pod"), std::string::npos);
}

}  // namespace
}  // namespace muster::core
