// What operators set for a job reaches the pods that run.
#include "tests/unit/core/job/play.hpp"

namespace muster::core {
namespace {

class TimeLimits : public testing::Test {
 protected:
  TimeLimits()
      : play_([] {
          JobSpec spec = Play::indexed(2, 2);
          spec.pod.active_deadline_s = 3600;
          return spec;
        }()) {
    play_.sync();
    play_.start({0, 0});
  }
  void set(std::optional<int64_t> limit_s, std::optional<int32_t> priority = {}) {
    Overrides next;
    next.time_limit_s = limit_s;
    next.priority = priority;
    play_.sync({OverridesChange{1, std::exchange(set_, next), next, "olga"}});
  }
  // Of the last sync.
  std::string limits() const {
    for (const Effect& effect : play_.effects())
      if (std::holds_alternative<LimitPods>(effect)) return to_text(1, effect);
    return "";
  }
  // The node registers again and has these pods.
  std::string limits_at(const std::set<PodKey>& known) {
    play_.sync({NodeReady{Play::kNode, known, 8}});
    return limits();
  }

  Play play_;
  Overrides set_;
};

TEST_F(TimeLimits, ChangesForPodsThatRunOrAreBeingStarted) {
  set(7'200);
  EXPECT_EQ(limits(), "LimitPods j1/0#0@n1 2h, j1/1#0@n1 2h");
  set(0);
  EXPECT_EQ(limits(), "LimitPods j1/0#0@n1 unlimited, j1/1#0@n1 unlimited");
  set(0, 5);
  EXPECT_EQ(limits(), "") << "only the priority has changed";
  set({}, 5);
  EXPECT_EQ(limits(), "LimitPods j1/0#0@n1 1h, j1/1#0@n1 1h") << "the template's again";
}

TEST_F(TimeLimits, ANodeThatComesBackLearnsThemAgain) {
  EXPECT_EQ(limits_at({{0, 0}}), "");
  set(7'200);
  EXPECT_EQ(limits_at({{0, 0}}), "LimitPods j1/0#0@n1 2h") << "the other one is launched with it";
  play_.restart();
  EXPECT_EQ(limits_at({{0, 0}, {1, 0}}), "LimitPods j1/0#0@n1 2h, j1/1#0@n1 2h");
  play_.tick(1'000);
  play_.end({0, 0}, 1);
  for (int i = 0; i < 100 && !play_.pod({0, 1}); ++i) play_.tick(1'000);
  ASSERT_TRUE(play_.pod({0, 1}));
  EXPECT_EQ(limits_at({{0, 1}, {1, 0}}), "LimitPods j1/1#0@n1 2h") << "a later pod has it";
  play_.remove({1, 0});
  EXPECT_EQ(limits_at({{0, 1}, {1, 0}}), "") << "one that is being ended keeps its grace";
}

}  // namespace
}  // namespace muster::core
