// A job's actor: one decision for everything that arrives during a sync, supervision of its index
// actors, snapshots.
#include "tests/unit/actors/actors_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class JobActorTest : public ActorsTest {
 protected:
  explicit JobActorTest(RegistryOptions options = {}) : ActorsTest(std::move(options)) {
    start_node(8);
  }
  core::Job stored(JobId id) {
    auto found = storage::recover_job(disk_.disk, id, load_object);
    EXPECT_TRUE(found.ok()) << found.error().message;
    return std::move(found->job);
  }
};

TEST_F(JobActorTest, EventsThatArriveDuringSyncBecomeOneDecision) {
  create("a");
  run();
  replies_.clear();
  disk_.silent = true;
  report_end(1, {0, 0}, 1);
  run();
  ASSERT_EQ(disk_.held.size(), 1u);
  for (int i = 0; i < 5; ++i) report_end(1, {1, 0}, 1);  // the same end, reported again and again
  run();
  EXPECT_EQ(disk_.held.size(), 1u) << "one batch of a job at a time";
  EXPECT_THAT(replies_, IsEmpty());
  const size_t before = disk_.synced;
  disk_.silent = false;
  disk_.sync();
  run();
  EXPECT_EQ(replies_.size(), 6u) << "each report is acknowledged";
  EXPECT_EQ(stored(1).state().failed, 2u) << "and each end counts once";
  EXPECT_EQ(disk_.synced - before, 2u);
}

TEST_F(JobActorTest, AnIndexActorThatDiesIsRespawnedAndItsOrdersAreRepeated) {
  create("a");
  run();
  EXPECT_THAT(orders_.seen, ElementsAre("launch j1/0#0", "launch j1/1#0"));
  orders_.seen.clear();
  orders_.throw_once = true;
  remove("a", "");
  run();
  EXPECT_THAT(orders_.seen, UnorderedElementsAre("kill j1/0#0", "kill j1/1#0"));
}

// Pods of a lost node are replaced once its keeper must have ended them (muster.dev/fence-after).
TEST_F(JobActorTest, PodsOfALostNodeAreReplacedOnceTheyHaveBeenFenced) {
  for (const bool fences : {true, false}) {
    const std::string name = fences ? "fenced" : "plain";
    auto object = std::make_shared<core::JobObject>(*job(name));
    if (fences) object->meta.annotations["muster.dev/fence-after"] = "20s";
    object->spec.pod.termination_grace_s = 10;
    caf::anon_send(registry_, CreateJob{object, noted<Status>("create")});
    run();
    const JobId id = fences ? 1 : 2;
    orders_.seen.clear();
    caf::anon_send(registry_, NodeIsLost{1, core::EndCause::node_lost, 12'000});
    run();
    if (fences) {
      // 20 s, of which 12 s have passed, plus the grace, plus 2 s and a thousandth of slack.
      scheduler_.advance_time(std::chrono::milliseconds(20'000 + 10'000 + 2'020 - 12'000 - 1));
      run();
      EXPECT_EQ(stored(id).state().failed, 0u);
      EXPECT_EQ(stored(id).state().open.size(), 2u);
      scheduler_.advance_time(std::chrono::milliseconds(1));
      run();
    }
    EXPECT_EQ(stored(id).state().failed, 2u) << name;
  }
}

// A second deletion has shortened the grace, and its record is still being written.
TEST_F(JobActorTest, ANewIndexActorGetsNoOrderThatIsNotOnDisk) {
  create("a");
  run();
  const auto evict = [this](Millis grace_ms) {
    core::PodsDeletion deletion;
    deletion.pods = {{0, 0}};
    deletion.grace_ms = grace_ms;
    caf::anon_send(registry_, AskJob{"default", "a", "", 0, deletion, noted<Status>("evict")});
    run();
  };
  evict(60'000);
  ASSERT_THAT(orders_.seen, ::testing::Contains("kill j1/0#0"));
  orders_.seen.clear();

  disk_.silent = true;
  evict(0);
  EXPECT_THAT(orders_.seen, IsEmpty());
  orders_.throw_once = true;  // when it repeats its kill
  while (orders_.throw_once) {
    scheduler_.advance_time(std::chrono::milliseconds(500));
    run();
  }
  EXPECT_THAT(orders_.seen, IsEmpty());
  disk_.silent = false;
  disk_.sync();
  run();
  EXPECT_THAT(orders_.seen, ::testing::Contains("kill j1/0#0"));
}

TEST_F(JobActorTest, EndOfUnknownPodIsAcknowledgedAndNotCounted) {
  create("a");
  run();
  replies_.clear();
  report_end(1, {0, 7}, 0);
  run();
  EXPECT_THAT(replies_, ElementsAre("acknowledged, to keep: 0"));
  EXPECT_EQ(stored(1).succeeded(), 0u);
}

// A node with 8 GiB, and jobs whose pods have 3 GiB, then 6 GiB.
class MoreMemory : public ActorsTest {
 protected:
  MoreMemory() { start_node(8, uint64_t{8} << 30); }
  void create_raising(const std::string& name) {
    auto object = std::make_shared<core::JobObject>(*job(name));
    object->spec.backoff_limit_per_index = 0;
    object->spec.pod.containers[0].resources.limits["memory"] = "3Gi";
    object->meta.annotations["muster.dev/retry-memory"] = "6Gi";
    caf::anon_send(registry_, CreateJob{object, noted<Status>("create " + name)});
    run();
  }
  void run_out(PodKey pod) {
    report_end(1, pod, 137, core::EndCause::out_of_memory);
    run();
  }
};

TEST_F(MoreMemory, NextPodWaitsForARoomThatFitsItAndIsLaunchedWithIt) {
  create_raising("a");
  EXPECT_THAT(orders_.seen, ElementsAre("launch j1/0#0", "launch j1/1#0"));
  EXPECT_EQ(orders_.launched->meta.generation, 1);
  orders_.seen.clear();
  run_out({0, 0});
  EXPECT_THAT(orders_.seen, IsEmpty()) << "the node has 5 GiB left";
  report_end(1, {1, 0}, 0);
  run();
  EXPECT_THAT(orders_.seen, ElementsAre("launch j1/0#1"));
  EXPECT_EQ(orders_.launched->spec.pod.containers[0].resources.limits.at("memory"), "6Gi");
  EXPECT_LT(orders_.launched->meta.generation, 0) << "a template of its own";
  orders_.seen.clear();
  // What it holds is counted: a pod of another job with 3 GiB does not fit beside it.
  auto other = std::make_shared<core::JobObject>(*job("b"));
  other->spec.completions = other->spec.parallelism = 1;
  other->spec.pod.containers[0].resources.limits["memory"] = "3Gi";
  caf::anon_send(registry_, CreateJob{other, noted<Status>("create b")});
  run();
  EXPECT_THAT(orders_.seen, IsEmpty());
  report_end(1, {0, 1}, 0);
  run();
  EXPECT_THAT(orders_.seen, ElementsAre("launch j2/0#0")) << "and it is freed";
}

TEST_F(MoreMemory, NothingOfADeletedJobWithStepsIsHeld) {
  create_raising("a");
  run_out({0, 0});
  report_end(1, {1, 0}, 0);
  run();
  orders_.seen.clear();
  remove("a", "");
  run();
  report_end(1, {0, 1}, 143, core::EndCause::killed);
  run();
  orders_.seen.clear();
  create_raising("b");
  EXPECT_THAT(orders_.seen, ElementsAre("launch j2/0#0", "launch j2/1#0"));
}

// Jobs that may reuse their slots without asking the cluster.
class UseAgain : public JobActorTest {
 protected:
  JobId create_many(const std::string& name, int32_t parallelism, int32_t completions = 100) {
    auto object = std::make_shared<core::JobObject>(*job(name));
    object->spec.completions = completions;
    object->spec.parallelism = parallelism;
    caf::anon_send(registry_, CreateJob{object, noted<Status>("create " + name)});
    run();
    orders_.seen.clear();
    return ++jobs_;
  }
  // The number of appends caused by an end of this pod.
  size_t appends_of_end(JobId id, PodKey pod) {
    const size_t before = disk_.synced;
    report_end(id, pod, 0);
    run();
    return disk_.synced - before;
  }

 private:
  JobId jobs_ = 0;
};

TEST_F(UseAgain, EndAndNextPodOnSameSlotAreOneAppend) {
  JobId a = create_many("a", 8);
  EXPECT_EQ(appends_of_end(a, {3, 0}), 1u);
  EXPECT_THAT(orders_.seen, ElementsAre("launch j1/8#0"));
  EXPECT_EQ(appends_of_end(a, {8, 0}), 1u);
  EXPECT_THAT(orders_.seen, ElementsAre("launch j1/8#0", "launch j1/9#0"));
  EXPECT_EQ(stored(a).slots_wanted().wanted, 0u);
}

TEST_F(UseAgain, FreedSlotGoesBackToClusterWhileAnotherJobWaits) {
  JobId a = create_many("a", 6);
  create_many("b", 6);  // gets two
  EXPECT_EQ(appends_of_end(a, {0, 0}), 3u) << "the end; each job's share of what is free";
  EXPECT_THAT(orders_.seen, testing::Contains("launch j2/2#0")) << "b has waited";
}

TEST_F(UseAgain, FreedSlotOfCordonedNodeIsNotReused) {
  JobId a = create_many("a", 8);
  cordon("a", "cordon");
  run();
  EXPECT_EQ(appends_of_end(a, {0, 0}), 1u);
  EXPECT_THAT(orders_.seen, IsEmpty());
  EXPECT_EQ(stored(a).slots_wanted().wanted, 1u);
}

TEST_F(UseAgain, FreedSlotOfNodeInTroubleIsNotReused) {
  JobId a = create_many("a", 8);
  Heartbeat beat{1, 7};
  beat.trouble = {"SpoolNotWritable", "no room"};
  caf::anon_send(cluster_, beat);
  run();
  EXPECT_EQ(appends_of_end(a, {0, 0}), 1u);
  EXPECT_THAT(orders_.seen, IsEmpty());
}

TEST_F(UseAgain, FreedSlotOfDrainingNodeIsNotReused) {
  JobId a = create_many("a", 8);
  caf::anon_send(cluster_, AgentLeaves{1, 7});
  run();
  EXPECT_EQ(appends_of_end(a, {0, 0}), 1u);
  EXPECT_THAT(orders_.seen, IsEmpty());
}

TEST_F(UseAgain, FreedSlotIsNotReusedUnderEndedRegistration) {
  JobId a = create_many("a", 8);
  register_node("a", "dir-a", 8, 8);  // reports no pods
  report_end(a, {0, 0}, 0);
  run();
  EXPECT_THAT(orders_.seen, IsEmpty());
  caf::anon_send(cluster_, LinkUp{1, 8});
  run();
  EXPECT_THAT(orders_.seen, testing::Contains("launch j1/8#0"));
}

TEST_F(UseAgain, FreedSlotThatJobDoesNotNeedGoesToAnotherJob) {
  JobId a = create_many("a", 8, 8);
  create_many("b", 1);  // waits
  EXPECT_THAT(orders_.seen, IsEmpty());
  report_end(a, {7, 0}, 0);
  run();
  EXPECT_THAT(orders_.seen, ElementsAre("launch j2/0#0"));
}

class ShortTails : public JobActorTest {
 protected:
  ShortTails() : JobActorTest(options()) {}
  static RegistryOptions options() {
    RegistryOptions options;
    options.tail_bytes_min = 1;
    return options;
  }
};

TEST_F(ShortTails, ASnapshotReplacesTheRecordsBeforeIt) {
  create("a");
  run();
  for (uint32_t attempt = 0; attempt < 6; ++attempt) {
    report_end(1, {0, attempt}, 1);
    run();
    now_ms_ += 3'600'000;  // beyond any backoff
    scheduler_.advance_time(std::chrono::hours(1));
    run();
  }
  auto found = storage::recover_job(disk_.disk, 1, load_object);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_LT(found->tail_rows, 8u) << "of more than 15 appends";
  EXPECT_GT(found->next_seq, 15u);
  EXPECT_EQ(found->job.state().failed, 6u);
}

}  // namespace
}  // namespace muster::actors
