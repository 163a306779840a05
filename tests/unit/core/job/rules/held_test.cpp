// A job that follows another one index by index (each:JOB, ADR 42).
#include "core/job/rules/held.hpp"

#include "core/spec/fields/annotations.hpp"
#include "tests/unit/core/job/play.hpp"

namespace muster::core {
namespace {

constexpr JobId kPrep = 7, kMore = 8;

IndexSet set(const char* text) {
  return IndexSet::parse_lenient(text, kAnyIndex);
}
ProgressPtr progress(const char* passed, const char* failed = "") {
  return std::make_shared<const Progress>(Progress{set(passed), set(failed)});
}
JobSpec per_index(int32_t completions) {
  JobSpec spec = Play::indexed(completions, completions);
  spec.backoff_limit_per_index = 0;
  return spec;
}
Play follower(JobSpec spec, std::vector<Dependency> more = {}) {
  std::vector<Dependency> all{{kPrep, {Needed::each, "prep"}}};
  all.insert(all.end(), more.begin(), more.end());
  return Play(
      std::move(spec), [](JobMeta& meta) { meta.annotations.emplace(kAfterKey, "each:prep"); },
      std::move(all));
}
void advance(Play& play, const char* passed, const char* failed = "", JobId job = kPrep) {
  play.sync({DependencyHasAdvanced{1, job, progress(passed, failed)}});
}
void end(Play& play, DependencyEnd how, ProgressPtr progress, JobId job = kPrep) {
  play.sync({DependencyHasEnded{1, job, how, std::move(progress)}});
}
// The indexes that have a pod or had one.
std::string ran(Play& play) {
  IndexSet indexes;
  play.job().each_pod([&indexes](const Pod& pod) { indexes.insert(pod.key.index); });
  return indexes.text();
}
std::string message(Play& play) {
  return play.state().conditions.empty() ? "" : play.state().conditions.back().message;
}

TEST(Held, IndexRunsOnceItsCounterpartHasPassed) {
  Play play = follower(per_index(4));
  play.sync();
  EXPECT_TRUE(play.job().held());
  EXPECT_EQ(awaited_text(play.job()), "job prep to succeed index by index");
  EXPECT_EQ(play.state().started_at, std::nullopt);
  play.tick(1000);
  advance(play, "2");
  EXPECT_FALSE(play.job().held());
  EXPECT_EQ(play.state().started_at, play.now());
  EXPECT_EQ(ran(play), "2");
  EXPECT_EQ(awaiting_indexes(play.job()).text(), "0,1,3");
  EXPECT_EQ(awaited_by(play.job(), 3), "prep");
  EXPECT_EQ(awaited_by(play.job(), 2), "");
  play.end({2, 0}, 0);
  EXPECT_EQ(ran(play), "2");
  play.restart();
  EXPECT_EQ(ran(play), "2") << "what it has learnt is in its records, and nothing else runs";
  advance(play, "1,2");
  advance(play, "1,2");
  EXPECT_EQ(ran(play), "1,2");
  end(play, DependencyEnd::succeeded, progress("0-3"));
  EXPECT_EQ(ran(play), "0-3");
  for (uint32_t index : {0, 1, 3}) play.end({index, 0}, 0);
  EXPECT_EQ(play.conditions(),
            "SuccessCriteriaMet=True/CompletionsReached Complete=True/CompletionsReached");
  EXPECT_EQ(play.state().pods_created, 4u);
  play.restart();
}

// 1 is left out by muster.dev/indexes.
TEST(Held, FailedCounterpartFailsIndexWithoutAnAttempt) {
  Play play(per_index(5), [](JobMeta& meta) { meta.annotations.emplace(kIndexesKey, "0,2-4"); },
            {{kPrep, {Needed::each, "prep"}}});
  advance(play, "0", "1,2,9");
  EXPECT_EQ(play.state().failed_indexes.text(), "2");
  EXPECT_EQ(never_runs_text(play.job(), 2), "index 2 of job prep failed or was cancelled");
  EXPECT_EQ(play.state().failed, 0u) << "no pod has failed";
  play.restart();
  play.end({0, 0}, 0);
  EXPECT_FALSE(play.job().decided()) << "3 and 4 may still pass";
  end(play, DependencyEnd::failed, progress("0,4", "1,2,9"));
  EXPECT_EQ(play.state().failed_indexes.text(), "2,3");
  EXPECT_EQ(never_runs_text(play.job(), 3), "index 3 of job prep never succeeded");
  EXPECT_EQ(ran(play), "0,4");
  play.end({4, 0}, 0);
  EXPECT_EQ(play.conditions(), "FailureTarget=True/FailedIndexes Failed=True/FailedIndexes");
  play.restart();
}

TEST(Held, JobOfFailedCounterpartsOnlyFailsWithStartTime) {
  Play play = follower(per_index(2));
  advance(play, "", "0,1");
  EXPECT_TRUE(play.job().finished());
  EXPECT_TRUE(play.state().started_at.has_value());
  EXPECT_EQ(play.state().pods_created, 0u);
}

TEST(Held, FailedCounterpartCountsTowardsMaxFailedIndexes) {
  JobSpec spec = per_index(4);
  spec.max_failed_indexes = 1;
  Play play = follower(spec);
  advance(play, "0", "1");
  EXPECT_FALSE(play.job().decided());
  advance(play, "0", "1,2");
  EXPECT_EQ(play.conditions(), "FailureTarget=True/MaxFailedIndexesExceeded");
}

TEST(Held, FailedCounterpartFailsJobWithoutLimitPerIndex) {
  struct {
    const char* what;
    std::vector<Event> events;
    const char* why;
  } cases[] = {
      {"it failed",
       {DependencyHasAdvanced{1, kPrep, progress("0", "1")}},
       "Index 1 of this job never runs, because index 1 of job prep failed or "
       "was cancelled"},
      {"its job failed",
       {DependencyHasEnded{1, kPrep, DependencyEnd::failed, progress("0")}},
       "Index 1 of this job never runs, because index 1 of job prep never succeeded"},
      {"its job is gone",
       {DependencyHasEnded{1, kPrep, DependencyEnd::deleted, nullptr}},
       "Index 0 of this job never runs, because index 0 of job prep never succeeded"},
  };
  for (auto& [what, events, why] : cases) {
    Play play = follower(Play::indexed(3, 3));
    play.sync(std::move(events));
    EXPECT_EQ(play.state().conditions.front().reason, ConditionReason::dependency_never_satisfied)
        << what;
    EXPECT_EQ(message(play), why);
    EXPECT_TRUE(play.state().started_at.has_value());
    play.restart();
  }
}

// What was recorded before stays, whether the other job is deleted or its owner scales it.
TEST(Held, WhatHasPassedStaysPassed) {
  Play play = follower(per_index(3));
  advance(play, "0,1");
  advance(play, "0", "1");
  EXPECT_TRUE(play.state().failed_indexes.empty());
  end(play, DependencyEnd::deleted, nullptr);
  EXPECT_EQ(ran(play), "0,1");
  EXPECT_EQ(play.state().failed_indexes.text(), "2");
  for (uint32_t index : {0, 1}) play.end({index, 0}, 0);
  EXPECT_TRUE(play.job().finished());
}

TEST(Held, EveryJobThatItFollowsMustPass) {
  Play play = follower(per_index(3), {{kMore, {Needed::each, "more"}}});
  advance(play, "0,1");
  EXPECT_TRUE(play.job().held());
  EXPECT_EQ(awaited_by(play.job(), 1), "more");
  EXPECT_EQ(awaited_by(play.job(), 2), "prep, more");
  advance(play, "1,2", "", kMore);
  EXPECT_EQ(ran(play), "1");
  end(play, DependencyEnd::succeeded, progress("0-2"));
  EXPECT_EQ(ran(play), "1,2");
  end(play, DependencyEnd::failed, progress("1,2", "0"), kMore);
  EXPECT_EQ(play.state().failed_indexes.text(), "0");
}

TEST(Held, OtherDependenciesHoldAllIndexes) {
  Play play = follower(per_index(2), {{kMore, {Needed::ok, "more"}}});
  advance(play, "0,1");
  EXPECT_TRUE(play.job().held());
  EXPECT_EQ(awaited_text(play.job()), "job prep to succeed index by index, more to succeed");
  end(play, DependencyEnd::succeeded, nullptr, kMore);
  EXPECT_EQ(ran(play), "0,1");
}

TEST(Held, RemovingAnnotationReleasesAllIndexes) {
  Play play = follower(per_index(3));
  advance(play, "0");
  auto object = std::make_shared<JobObject>(play.job().object());
  object->meta.annotations.clear();
  object->json = "without";
  play.sync({OwnerUpdate{1, play.job().object_ptr(), object}});
  EXPECT_EQ(ran(play), "0-2");
  end(play, DependencyEnd::failed, progress("0"));
  EXPECT_TRUE(play.state().failed_indexes.empty());
  play.restart();
}

TEST(Held, ScalingOpensOnlyIndexesThatHavePassed) {
  Play play = follower(per_index(2));
  advance(play, "0,2");
  play.update([](JobSpec& spec) { spec.completions = spec.parallelism = 4; });
  EXPECT_EQ(ran(play), "0,2");
  end(play, DependencyEnd::succeeded, progress("0-2"));
  EXPECT_EQ(ran(play), "0-2");
  EXPECT_EQ(play.state().failed_indexes.text(), "3") << "the other job has no such index";
  play.restart();
}

TEST(Held, SwitchedOffLimitPerIndexDoesNotFreeIndexes) {
  Play play = follower(per_index(3));
  advance(play, "0", "1");
  play.knobs().gates.backoff_limit_per_index = false;
  play.sync();
  EXPECT_EQ(play.state().conditions.front().reason, ConditionReason::dependency_never_satisfied);
  EXPECT_EQ(ran(play), "0");
}

TEST(Held, ResumedJobRunsOnlyWhatHasPassed) {
  JobSpec spec = per_index(3);
  spec.suspend = true;
  Play play = follower(spec);
  advance(play, "1");
  EXPECT_EQ(ran(play), "");
  play.update([](JobSpec& s) { s.suspend = false; });
  EXPECT_EQ(ran(play), "1");
  EXPECT_TRUE(play.state().started_at.has_value());
}

TEST(Held, IndexesThatJobDoesNotRunArePassedForItsFollowers) {
  Play play(per_index(5), [](JobMeta& meta) { meta.annotations.emplace(kIndexesKey, "1,3"); });
  play.sync();
  play.end({1, 0}, 0);
  play.end({3, 0}, 1);
  EXPECT_EQ(progress_of(play.job()), *progress("0-2,4", "3"));
}

}  // namespace
}  // namespace muster::core
