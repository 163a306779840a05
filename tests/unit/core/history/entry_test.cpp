// Entries of the history, as they are derived from jobs.
#include "core/history/entry.hpp"

#include "core/spec/fields/annotations.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/values/inputs.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

constexpr Millis kT = 1'000'000;

// A job under records, a second apart unless they say otherwise.
struct EntryTest : testing::Test {
  EntryTest() {
    object->meta.name = "sweep";
    object->meta.ns = "lab";
    object->meta.uid = "u-1";
    object->meta.annotations = {{std::string(kOwnerKey), "alice"},
                                {std::string(kOwnerUidKey), "1001"},
                                {std::string(kOwnerGidKey), "100"},
                                {std::string(kQueueKey), "short"}};
    object->spec.completion_mode = "Indexed";
    object->spec.completions = 4;
    object->spec.parallelism = 4;
    object->spec.backoff_limit_per_index = 0;
    Container& container = object->spec.pod.containers.emplace_back();
    container.command = {"sh", "-c"};
    container.args = {"echo $$HOME $$$$ 'hello'"};
    container.resources.requests = {{"cpu", "1500m"}, {"memory", "1Gi"}, {"nvidia.com/gpu", "2"}};
    apply(JobAdmitted{kT, object});
  }
  void apply(const Record& record) { job.apply(record); }
  HistoryEntry entry() const { return history_entry(job); }

  void run(uint32_t index, Millis from, Millis to, Counted how, Usage used = {}) {
    apply(PodsCreated{.at_ms = from, .runs = {{.first = index}}});
    apply(PodsBound{.at_ms = from, .bindings = {{{index, 0}, 1}}});
    apply(PodsStarted{.at_ms = from, .starts = {{{index, 0}, 100, 0, from}}});
    PodEnd end;
    end.exit_code = how == Counted::succeeded ? 0 : 1;
    end.ended_at = to;
    end.used = used;
    apply(PodsEnded{.at_ms = to,
                    .ends = {{.pod = {index, 0},
                              .end = end,
                              .counted = how,
                              .fails_index = how == Counted::failed}}});
  }
  void finish(Millis at_ms, bool success, ConditionReason reason) {
    apply(FinishDecided{at_ms, success, reason, "why"});
    apply(JobFinished{at_ms});
  }

  std::shared_ptr<JobObject> object = std::make_shared<JobObject>();
  Job job{7, object};
};

TEST_F(EntryTest, NamesWhoseJobItIs) {
  const HistoryEntry e = entry();
  EXPECT_EQ(e.id, 7u);
  EXPECT_EQ(e.ns + "/" + e.name + " " + e.uid, "lab/sweep u-1");
  EXPECT_EQ(e.owner, 1001u);
  EXPECT_EQ(e.group, 100u);
  EXPECT_EQ(e.user, "alice");
  EXPECT_EQ(e.queue, "short");
  EXPECT_EQ(e.command, R"(sh -c 'echo $HOME $$ '\''hello'\''')") << "as typed";
  EXPECT_EQ(e.created_ms, kT);
  EXPECT_EQ(e.indexes, 4u);
  EXPECT_EQ(e.requested.cpu_millis, 1500);
  EXPECT_EQ(e.requested.named.at("nvidia.com/gpu"), 2);
}

TEST_F(EntryTest, SumsUpWhatAttemptsUsed) {
  apply(JobStarted{kT + 1000});
  run(0, kT + 5000, kT + 15'000, Counted::succeeded, {7'000'000, 1'000'000, 500});
  run(1, kT + 6000, kT + 26'000, Counted::failed, {1'000'000, 0, 900});
  const HistoryEntry e = entry();
  EXPECT_EQ(e.started, kT + 5000);
  EXPECT_EQ(e.waited_ms, 4000) << "since it was free to run, not since it was created";
  EXPECT_EQ(e.attempts, 2u);
  EXPECT_EQ(e.failed_attempts, 1u);
  EXPECT_EQ(e.succeeded, 1u);
  EXPECT_EQ(e.failed_indexes, 1u);
  EXPECT_EQ(e.ran_ms, 30'000);
  EXPECT_EQ(e.cpu_held_ms(), 45'000);
  EXPECT_EQ(e.used, (Usage{8'000'000, 1'000'000, 900}));
}

TEST_F(EntryTest, AttemptsThatNoNodeKeptDoNotCount) {
  apply(JobStarted{kT});
  apply(PodsCreated{.at_ms = kT, .runs = {{.first = 0, .count = 2}}});
  apply(PodsBound{.at_ms = kT, .bindings = {{{0, 0}, 1}}});
  PodEnd returned, never;
  returned.cause = EndCause::returned;
  never.cause = EndCause::never_started;
  apply(PodsEnded{.at_ms = kT + 1,
                  .ends = {{.pod = {0, 0}, .end = returned, .counted = Counted::released},
                           {.pod = {1, 0}, .end = never, .counted = Counted::released}}});
  EXPECT_EQ(entry().attempts, 0u);
  EXPECT_FALSE(entry().started);
}

TEST_F(EntryTest, States) {
  EXPECT_EQ(entry().state, PastState::pending);
  apply(JobHeld{kT, "alice"});
  EXPECT_EQ(entry().state, PastState::held);
  apply(JobReleased{kT, "alice"});
  apply(JobSuspended{kT, true});
  EXPECT_EQ(entry().state, PastState::suspended);
  apply(JobSuspended{kT, false});
  run(0, kT + 10, kT + 20, Counted::succeeded);
  EXPECT_EQ(entry().state, PastState::running);
  EXPECT_FALSE(entry().over());
  finish(kT + 30, true, ConditionReason::completions_reached);
  EXPECT_EQ(entry().state, PastState::complete);
  EXPECT_EQ(entry().ended, kT + 30);
  EXPECT_EQ(entry().reason, "CompletionsReached");
}

TEST_F(EntryTest, CancelledIsNotFailed) {
  Job other = job;
  finish(kT, false, ConditionReason::cancelled);
  EXPECT_EQ(entry().state, PastState::cancelled);
  other.apply(FinishDecided{kT, false, ConditionReason::deadline_exceeded, ""});
  other.apply(JobFinished{kT});
  EXPECT_EQ(history_entry(other).state, PastState::failed);
}

TEST_F(EntryTest, DeletedBeforeItsEnd) {
  apply(JobDeleted{kT + 5, true});
  apply(JobForgotten{kT + 9});
  EXPECT_EQ(entry().state, PastState::deleted);
  EXPECT_EQ(entry().removal, Removal::deleted);
  EXPECT_EQ(entry().removed, kT + 5);
  EXPECT_EQ(entry().ended, kT + 9) << "when its last pod had ended";
}

TEST_F(EntryTest, EndedJobsKeepTheirStateWhenTheyAreRemoved) {
  object->spec.ttl_s = 60;
  finish(kT, true, ConditionReason::completions_reached);
  Job expired = job;
  apply(JobDeleted{kT + 59'999, true});
  EXPECT_EQ(entry().state, PastState::complete);
  EXPECT_EQ(entry().removal, Removal::deleted);
  EXPECT_EQ(entry().ended, kT);
  expired.apply(JobDeleted{kT + 60'000, false});
  EXPECT_EQ(history_entry(expired).removal, Removal::expired);
}

TEST_F(EntryTest, QueueIsTheOneItRanIn) {
  apply(OverridesSet{kT, {.queue = "gpu"}, "root"});
  EXPECT_EQ(entry().queue, "gpu");
  finish(kT, true, ConditionReason::completions_reached);
  EXPECT_EQ(entry().queue, "gpu") << "though the override ends with the job";
}

TEST_F(EntryTest, TasksOfAnArrayAreKept) {
  EXPECT_EQ(entry().tasks, "");
  auto& inputs = object->meta.annotations[std::string(kInputsKey)];
  inputs = "3\n5\n7\n20\n";
  EXPECT_EQ(entry().tasks, "") << "lines of a file";
  object->spec.pod.containers.front().env.push_back({.name = "SLURM_ARRAY_TASK_ID"});
  EXPECT_EQ(entry().tasks, "3-7:2,20") << "a short array";
  for (const char* other : {"a\nb\n", "3\n2\n", "3\n3\n"}) {
    inputs = other;
    EXPECT_EQ(entry().tasks, "") << other;
  }
  inputs = ranges_of({1, 2, 3, 20, 22, 24});
  EXPECT_EQ(entry().tasks, "1-3,20-24:2");
  std::vector<uint32_t> scattered;
  for (uint32_t i = 1; i < 200; ++i) scattered.push_back(i * i * 100);
  inputs = ranges_of(scattered);
  EXPECT_EQ(entry().tasks, "") << "too long";
}

TEST_F(EntryTest, LongTextsAreCut) {
  object->spec.pod.containers[0].args = {std::string(189, 'x') + "ä" + std::string(300, 'y')};
  const std::string command = entry().command;
  EXPECT_LE(command.size(), kHistoryTextMax);
  EXPECT_TRUE(command.ends_with("x…")) << command;
}

TEST_F(EntryTest, PodsThatRequestNoCpuHoldOne) {
  object->spec.pod.containers[0].resources.requests.clear();
  run(0, kT, kT + 2000, Counted::succeeded);
  EXPECT_EQ(entry().cpu_held_ms(), 2000);
}

TEST(PastState, NamesAreReadInEitherCase) {
  for (const PastState state :
       {PastState::pending, PastState::held, PastState::suspended, PastState::running,
        PastState::complete, PastState::failed, PastState::cancelled, PastState::deleted})
    EXPECT_EQ(past_state(name(state)), state);
  EXPECT_EQ(past_state("COMPLETE"), PastState::complete);
  EXPECT_FALSE(past_state("Completed"));
}

}  // namespace
}  // namespace muster::core
