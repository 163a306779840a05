// IndexMap: every index is in at most one set, whatever its pods do.
#include "core/job/shown/index_map.hpp"

#include "core/job/rules/backoff.hpp"
#include "tests/unit/core/job/play.hpp"

namespace muster::core {
namespace {

// "succeeded 0 failed 1 running 2 pending 3 backoff 4"; empty sets are left out.
std::string text_of(const IndexMap& map) {
  std::string text;
  auto add = [&](const char* name, const IndexSet& set) {
    if (!set.empty()) text += (text.empty() ? "" : " ") + std::string(name) + " " + set.text();
  };
  add("succeeded", map.succeeded);
  add("failed", map.failed);
  add("cancelled", map.cancelled);
  add("running", map.running);
  add("pending", map.pending);
  add("backoff", map.backoff);
  return text;
}

std::string shown(Play& play) {
  return text_of(index_map(play.job(), play.now(), play.knobs()));
}

TEST(IndexMap, ShowsStatesOfIndexLifecycle) {
  Play play(Play::indexed(4, 2));
  EXPECT_EQ(shown(play), "") << "nothing is created yet";
  play.sync();
  EXPECT_EQ(shown(play), "pending 0,1") << "2 and 3 wait for parallelism";
  play.start({0, 0});
  EXPECT_EQ(shown(play), "running 0 pending 1");
  play.end({0, 0}, 0);
  EXPECT_EQ(shown(play), "succeeded 0 pending 1,2");
}

TEST(IndexMap, InitializingPodIsPending) {
  Play play(Play::indexed(1, 1));
  play.sync();
  PodsReported report{1, Play::kNode, {{{0, 0}, 100, 0, 0}}, {}};
  report.starts[0].readiness = Readiness::initializing;
  play.sync({report});
  EXPECT_EQ(shown(play), "pending 0");
}

TEST(IndexMap, BackoffPerIndexLastsAsLongAsItsDelay) {
  JobSpec spec = Play::indexed(3, 3);
  spec.backoff_limit_per_index = 1;
  Play play(spec);
  play.sync();
  play.end({1, 0}, 1);
  EXPECT_EQ(shown(play), "pending 0,2 backoff 1");
  EXPECT_EQ(text_of(index_map(play.job(), play.now() + 99, play.knobs())), "pending 0,2 backoff 1");
  EXPECT_EQ(text_of(index_map(play.job(), play.now() + 100, play.knobs())), "pending 0,2")
      << "due, and not created yet";
  play.tick(100);
  EXPECT_EQ(shown(play), "pending 0-2");
  play.end({1, 1}, 1);
  EXPECT_EQ(shown(play), "failed 1 pending 0,2");
  play.restart();
  EXPECT_EQ(shown(play), "failed 1 pending 0,2");
}

TEST(IndexMap, BackoffUsesDelayOfJobAnnotation) {
  JobSpec spec = Play::indexed(1, 1);
  spec.backoff_limit_per_index = 1;
  Play play(spec, [](JobMeta& meta) { meta.annotations["muster.dev/backoff-base"] = "50ms"; });
  play.sync();
  play.end({0, 0}, 1);
  const Knobs own = knobs_of(play.knobs(), play.job().object());
  EXPECT_EQ(own.backoff_base_ms, 50);
  EXPECT_EQ(own.backoff_max_ms, play.knobs().backoff_max_ms);
  EXPECT_EQ(text_of(index_map(play.job(), play.now() + 49, own)), "backoff 0");
  EXPECT_EQ(text_of(index_map(play.job(), play.now() + 50, own)), "");
}

TEST(IndexMap, BackoffOfWholeJobShowsOnlyTriedIndexes) {
  Play play(Play::indexed(4, 2));
  play.sync();
  play.start({0, 0});
  play.end({1, 0}, 1);
  EXPECT_EQ(shown(play), "running 0 backoff 1") << "2 and 3 were never tried";
  play.tick(100);
  EXPECT_EQ(shown(play), "running 0 pending 1");
}

TEST(IndexMap, FailedJobShowsTriedIndexesAsFailed) {
  JobSpec spec = Play::indexed(4, 2);
  spec.backoff_limit = 0;
  Play play(spec);
  play.sync();
  play.start({0, 0});
  play.end({1, 0}, 1);
  EXPECT_EQ(shown(play), "failed 1 running 0") << "0 is being ended";
  play.end({0, 0}, 143, EndCause::killed);
  ASSERT_TRUE(play.job().finished());
  EXPECT_EQ(shown(play), "failed 0,1");
}

TEST(IndexMap, FailedIndexesMatchStatusWithLimitPerIndex) {
  JobSpec spec = Play::indexed(3, 3);
  spec.backoff_limit_per_index = 0;
  spec.max_failed_indexes = 0;
  Play play(spec);
  play.sync();
  play.end({1, 0}, 1);
  play.end({0, 0}, 143, EndCause::killed);
  play.end({2, 0}, 143, EndCause::killed);
  ASSERT_TRUE(play.job().finished());
  EXPECT_EQ(shown(play), "failed 1");
}

TEST(IndexMap, CancelledIndexesAreNotFailed) {
  for (const bool per_index : {true, false}) {
    JobSpec spec = Play::indexed(4, 2);
    if (per_index) spec.backoff_limit_per_index = 0;
    Play play(spec);
    play.sync();
    play.start({0, 0});
    play.start({1, 0});
    play.ask_nodes();
    play.sync({Cancellation{1, "alice", IndexSet::parse_lenient("0,3", kAnyIndex)}});
    EXPECT_EQ(shown(play), "cancelled 3 running 0,1") << "0 may have succeeded meanwhile";
    play.answer({});
    EXPECT_EQ(shown(play), "cancelled 0,3 running 1 pending 2");
    play.end({0, 0}, 143, EndCause::killed);
    play.end({1, 0}, 0);
    play.end({2, 0}, 0);
    ASSERT_TRUE(play.job().finished());
    EXPECT_EQ(shown(play), "succeeded 1,2 cancelled 0,3");
  }
}

TEST(IndexMap, SuspendedIndexesAreInNoState) {
  JobSpec spec = Play::indexed(2, 2);
  spec.backoff_limit_per_index = 3;
  Play play(spec);
  play.sync();
  play.end({0, 0}, 1);
  play.update([](JobSpec& s) { s.suspend = true; });
  play.end({1, 0}, 143, EndCause::killed);
  EXPECT_EQ(shown(play), "");
}

TEST(IndexMap, ScaledAwayIndexesAreInNoState) {
  Play play(Play::indexed(4, 4));
  play.sync();
  play.start({0, 0});
  play.start({3, 0});
  play.end({2, 0}, 0);
  play.update([](JobSpec& s) { s.completions = s.parallelism = 2; });
  EXPECT_EQ(shown(play), "running 0 pending 1") << "3 is still ending";
}

TEST(IndexMap, AnIndexWithTwoPodsRuns) {
  Play play(Play::indexed(1, 1));
  play.sync();
  play.start({0, 0});
  play.remove({0, 0});
  play.tick(100);
  ASSERT_EQ(play.state().open.size(), 2u) << "one ends, its replacement is there";
  EXPECT_EQ(shown(play), "running 0");
}

TEST(IndexMap, IsEmptyForNonIndexedJobs) {
  JobSpec spec = Play::indexed(2, 2);
  spec.completion_mode = "NonIndexed";
  Play play(spec);
  play.sync();
  EXPECT_EQ(shown(play), "");
}

}  // namespace
}  // namespace muster::core
