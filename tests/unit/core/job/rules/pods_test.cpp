// Which pods exist (job-semantics 4 and 8): how many one sync creates, and which go when there are
// too many.
#include "tests/unit/core/job/play.hpp"

#include <algorithm>
#include <utility>

namespace muster::core {

namespace {

// ---- 4: creation

TEST(Creation, OneSyncCreatesABoundedNumberOfPodsAndTheNextFollowsAtOnce) {
  auto created_by_one_sync = [](Play& play) {
    const uint32_t before = play.job().active();
    const Decision decision = decide(play.job(), {TimePassed{}}, play.now(), play.knobs());
    const bool at_once = std::any_of(decision.effects.begin(), decision.effects.end(),
                                     [&play](const Effect& effect) {
                                       const auto* wake = std::get_if<WakeAt>(&effect);
                                       return wake && wake->at_ms <= play.now();
                                     });
    return std::pair(play.job().active() - before, at_once);
  };
  Play large(Play::indexed(2'500, 2'500));
  EXPECT_EQ(created_by_one_sync(large), std::pair(1'024u, true));
  EXPECT_EQ(created_by_one_sync(large), std::pair(1'024u, true));
  EXPECT_EQ(created_by_one_sync(large), std::pair(452u, false));
  EXPECT_EQ(created_by_one_sync(large), std::pair(0u, false));
  Play whole(Play::indexed(1'024, 1'024));
  EXPECT_EQ(created_by_one_sync(whole), std::pair(1'024u, false));
}

// ---- 4.3 and 8: surplus, elastic jobs

TEST(Elastic, ScaleDownForgetsIndexesAndScaleUpRunsThemAgain) {
  Play play(Play::indexed(4, 4));
  play.sync();
  play.end({3, 0}, 0);
  play.end({1, 0}, 0);
  auto scale = [&play](int32_t n) {
    play.update([n](JobSpec& s) { s.completions = s.parallelism = n; });
  };
  scale(2);
  EXPECT_EQ(play.state().completed.text(), "1") << "3 vanished";
  EXPECT_FALSE(play.pod({2, 0})->active());
  EXPECT_TRUE(play.pod({0, 0})->active());
  play.end({2, 0}, 1, EndCause::killed);
  EXPECT_EQ(play.state().failed, 0u);
  scale(4);
  const Pod* again = nullptr;
  play.job().each_pod([&again](const Pod& pod) {
    if (pod.key.index == 3 && pod.open()) again = &pod;
  });
  ASSERT_TRUE(again);
  EXPECT_GT(again->key.attempt, 0u) << "never an attempt twice";
  scale(0);
  EXPECT_TRUE(play.job().condition(ConditionType::success_criteria_met));
  EXPECT_FALSE(play.job().finished()) << "not before its pods have ended";
}

TEST(Elastic, ADeferredPodOutOfRangeIsReleasedUncounted) {
  JobSpec spec = Play::indexed(2, 2);
  spec.backoff_limit_per_index = 2;
  Play play(spec);
  play.sync();
  play.end({1, 0}, 1);
  play.update([](JobSpec& s) { s.completions = s.parallelism = 1; });
  EXPECT_EQ(play.state().failed, 0u);
  EXPECT_TRUE(play.state().deferred.empty());
  play.update([](JobSpec& s) { s.completions = s.parallelism = 2; });
  const Pod* fresh = play.pod({1, 1});
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->failures, 0) << "with a fresh failure count";
}

}  // namespace

}  // namespace muster::core
