// A job restored from a backup: no attempt is issued twice, and a pod whose outcome is unknown
// counts nowhere.
#include "core/job/fold/restored.hpp"

#include "tests/unit/core/job/play.hpp"

namespace muster::core {
namespace {

TEST(P11Restored, PodsUnknownToNodeRunAgainUncounted) {
  JobSpec spec = Play::indexed(3, 3);
  spec.backoff_limit = 0;
  Play play(spec);
  play.sync();
  play.start({0, 0});
  play.start({2, 0});
  // 0 ran when the backup was made and 1 was being launched: either may have ended since.
  play.sync({NodeRegistered{Play::kNode, {{2, 0}}, true}});
  for (int i = 0; i < 100 && !(play.pod({0, 1}) && play.pod({1, 1})); ++i) play.tick(100);
  EXPECT_EQ(play.state().failed, 0u);
  EXPECT_FALSE(play.job().decided()) << play.conditions();
  EXPECT_FALSE(play.state().open.contains({0, 0}));
  EXPECT_FALSE(play.state().open.contains({1, 0})) << "it would be launched a second time";
  EXPECT_TRUE(play.state().open.contains({2, 0}));
  EXPECT_TRUE(play.pod({0, 1}));
  EXPECT_TRUE(play.pod({1, 1}));
  for (PodKey pod : {PodKey{0, 1}, PodKey{1, 1}, PodKey{2, 0}}) play.end(pod, 0);
  EXPECT_TRUE(play.job().condition(ConditionType::complete)) << play.conditions();
}

TEST(P11Restored, AttemptNumbersContinueAboveAnyUsedBefore) {
  Play play(Play::indexed(3, 2));
  play.sync();
  play.end({0, 0}, 1);
  const uint32_t base = restored_base(play.now());
  EXPECT_GT(base, 1'000'000u);
  EXPECT_GT(restored_base(play.now() + 60'000), base);
  const JobState before = play.state();
  const JobState after = restored(before, true, base);
  EXPECT_EQ(after.failed, before.failed);
  EXPECT_EQ(after.open.size(), before.open.size());
  EXPECT_TRUE(after.open.contains({1, 0})) << "it is on a node, whose agent may have it";
  const Job job(1, play.job().object_ptr(), after);
  for (uint32_t index = 0; index < 3; ++index) EXPECT_GE(job.next_attempt(index), base);
  const JobState again = restored(after, true, base);
  for (uint32_t index = 0; index < 3; ++index)
    EXPECT_GE(Job(1, play.job().object_ptr(), again).next_attempt(index), job.next_attempt(index));
}

}  // namespace
}  // namespace muster::core
