// The read model: names, versions, and when objects are hidden.
#include "api/view/model/view.hpp"

#include "api/view/query/selector.hpp"
#include "api/view/query/watch.hpp"
#include "core/pod_name.hpp"
#include "tests/unit/api/view/view_fixture.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

using namespace testing;

class ViewTest : public ::testing::Test {
 protected:
  size_t count(Kind kind, std::string_view ns = "") const {
    size_t n = 0;
    view.each(kind, ns, nullptr, [&](const Shown&) { ++n; });
    return n;
  }
  std::string pod_name(const char* job, int uid, PodKey key) const {
    return core::pod_name(job, uid_of(uid), true, key);
  }
  View view;
  Feeder feed{view};
};

TEST_F(ViewTest, ShowsAJobByItsNameAndVersion) {
  const uint64_t v = feed.admit(1, make_job("a", uid_of(1)));
  ASSERT_TRUE(view.job("default", "a"));
  EXPECT_EQ(view.job("default", "a")->version, v);
  EXPECT_FALSE(view.job("other", "a"));
  EXPECT_FALSE(view.job("default", "b"));
  const uint64_t w = feed.records(1, {core::JobStarted{kStart}});
  EXPECT_EQ(view.job("default", "a")->version, w);
  EXPECT_EQ(view.version(), w);
}

TEST_F(ViewTest, FindsPodsByName) {
  feed.admit(1, make_job("a", uid_of(1), 20));
  feed.create(1, 0, 20);
  for (uint32_t i = 0; i < 20; ++i) {
    auto shown = view.pod("default", pod_name("a", 1, {i, 0}));
    ASSERT_TRUE(shown) << i;
    EXPECT_EQ(shown->pod->key.index, i);
  }
  EXPECT_FALSE(view.pod("default", pod_name("a", 1, {1, 7})));
  EXPECT_FALSE(view.pod("other", pod_name("a", 1, {1, 0})));
  EXPECT_FALSE(view.pod("default", "a-1-"));
  EXPECT_FALSE(view.pod("default", "x"));
}

TEST_F(ViewTest, FindsPodsOfJobsWithLongNames) {
  const std::string name(60, 'x');
  const auto job = make_job(name, uid_of(2));
  feed.admit(2, job);
  feed.create(2, 0, 3);
  const std::string pod = core::pod_name(name, uid_of(2), true, {2, 0});
  ASSERT_LE(pod.size(), 63u);
  ASSERT_TRUE(view.pod("default", pod));
  EXPECT_EQ(view.pod("default", pod)->pod->key.index, 2u);
}

TEST_F(ViewTest, EachPodHasItsOwnVersion) {
  feed.admit(1, make_job("a", uid_of(1)));
  const uint64_t created = commit_of(feed.create(1, 0, 3)), bound = commit_of(feed.bind(1, {1, 0}));
  const auto version = [&](uint32_t index) {
    return view.pod("default", pod_name("a", 1, {index, 0}))->version;
  };
  EXPECT_EQ(commit_of(version(0)), created);
  EXPECT_EQ(commit_of(version(2)), created);
  EXPECT_LT(version(0), version(2)) << "also in one commit";
  EXPECT_EQ(commit_of(version(1)), bound);
}

TEST_F(ViewTest, AFinishedPodStays) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  feed.bind(1, {0, 0});
  feed.end(1, {0, 0}, 0);
  ASSERT_EQ(count(Kind::pod), 1u);
  EXPECT_TRUE(view.pod("default", pod_name("a", 1, {0, 0}))->pod->ended);
}

TEST_F(ViewTest, DeletedPodDisappearsOnceItHasEnded) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  feed.bind(1, {0, 0});
  feed.records(1, {core::PodsStopping{kStart, {{{0, 0}, core::Counted::released}}}});
  EXPECT_EQ(count(Kind::pod), 1u);
  feed.end(1, {0, 0}, 143, core::Counted::not_yet);
  EXPECT_EQ(count(Kind::pod), 0u);
}

TEST_F(ViewTest, BackgroundDeletionHidesTheJobAndItsFinishedPods) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 2);
  feed.bind(1, {0, 0});
  feed.bind(1, {1, 0});
  feed.end(1, {0, 0}, 0);
  feed.records(1, {core::JobDeleted{kStart, true}});
  EXPECT_FALSE(view.job("default", "a"));
  ASSERT_EQ(count(Kind::pod), 1u);  // the one that runs
  EXPECT_NE(view.pod("default", pod_name("a", 1, {1, 0}))->pod->stopping_at, std::nullopt);
  // The name is free, and the pods of the new job are not those of the old one.
  feed.admit(2, make_job("a", uid_of(2)));
  EXPECT_EQ(view.job("default", "a")->job->id(), 2u);
  feed.end(1, {1, 0}, 143, core::Counted::not_yet);
  feed.records(1, {core::JobForgotten{kStart}});
  EXPECT_EQ(count(Kind::pod), 0u);
  EXPECT_EQ(count(Kind::job), 1u);
}

TEST_F(ViewTest, ForegroundDeletionShowsTheJobUntilTheEnd) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  feed.bind(1, {0, 0});
  feed.records(1, {core::JobDeleted{kStart, false}});
  EXPECT_TRUE(view.job("default", "a"));
  feed.end(1, {0, 0}, 143, core::Counted::not_yet);
  feed.records(1, {core::JobForgotten{kStart}});
  EXPECT_FALSE(view.job("default", "a"));
}

TEST_F(ViewTest, NodeNameFindsNewestIncarnation) {
  feed.node(make_node(1, "n", core::NodeInfo::Health::ready));
  feed.node(make_node(2, "n", core::NodeInfo::Health::ready));
  EXPECT_EQ(count(Kind::node), 1u);
  EXPECT_EQ(view.node("n")->node->id, 2u);
  EXPECT_EQ(view.node_name(1), "n");
  const uint64_t end = view.changes(Kind::node).end();
  auto beat = make_node(2, "n", core::NodeInfo::Health::ready);
  beat.heartbeat_ms = kStart + 5;
  view.health(core::health_of(beat));
  EXPECT_EQ(view.changes(Kind::node).end(), end) << "a heartbeat is no change";
  EXPECT_EQ(view.node("n")->node->heartbeat_ms, kStart + 5);
  beat.health = core::NodeInfo::Health::suspect;
  view.health(core::health_of(beat));
  EXPECT_EQ(view.changes(Kind::node).end(), end + 1);
  view.health(core::health_of(make_node(3, "m", core::NodeInfo::Health::ready)));
  EXPECT_FALSE(view.node("m")) << "its row is not on disk yet";
  auto row = make_node(2, "n", core::NodeInfo::Health::unknown);
  row.spec.unschedulable = true;
  feed.node(row);
  EXPECT_EQ(view.node("n")->node->health, core::NodeInfo::Health::suspect)
      << "a row knows no health";
  EXPECT_TRUE(view.node("n")->node->spec.unschedulable);
}

TEST_F(ViewTest, EventsAreFoundByName) {
  feed.admit(1, make_job("a-b", uid_of(1)));
  feed.create(1, 0, 3);
  EXPECT_EQ(count(Kind::event, "default"), 3u);
  EXPECT_EQ(count(Kind::event, "other"), 0u);
  EXPECT_TRUE(view.event("default", "a-b.1-2"));
  EXPECT_FALSE(view.event("default", "a-b.1-3"));
  EXPECT_FALSE(view.event("default", "a.1-2"));
  EXPECT_FALSE(view.event("default", "a-b.1-"));
}

TEST_F(ViewTest, ChangeRingIsBoundedAndRefusesLostVersions) {
  View small(4);
  Feeder feeder(small);
  feeder.admit(1, make_job("a", uid_of(1)));
  EXPECT_TRUE(small.after(Kind::pod, 0));
  feeder.create(1, 0, 3);
  feeder.bind(1, {0, 0});
  feeder.bind(1, {1, 0});
  EXPECT_FALSE(small.after(Kind::pod, 0));
  EXPECT_TRUE(small.after(Kind::job, 0)) << "each kind has its own ring";
  EXPECT_FALSE(small.after(Kind::pod, small.version() + 1)) << "not given yet";
  ASSERT_TRUE(small.after(Kind::pod, small.version()));
  EXPECT_EQ(*small.after(Kind::pod, small.version()), small.changes(Kind::pod).end());
}

TEST_F(ViewTest, LoadedJobsHaveTheVersionOfTheStart) {
  core::Job job(5, make_job("old", uid_of(5)));
  job.apply(core::JobAdmitted{kStart, job.object_ptr()});
  job.apply(core::PodsCreated{kStart, {{.first = 0, .count = 2}}});
  View loaded;
  loaded.add(job);
  loaded.start_at(40, {make_node(3, "n", core::NodeInfo::Health::unknown)});
  const uint64_t start = first_version(41);  // above whatever was shown before the restart
  EXPECT_EQ(loaded.job("default", "old")->version, start);
  EXPECT_EQ(loaded.pod("default", core::pod_name("old", uid_of(5), true, {1, 0}))->version, start);
  EXPECT_FALSE(loaded.after(Kind::node, start - 1));
  EXPECT_TRUE(loaded.after(Kind::node, start));
  EXPECT_TRUE(loaded.node("n"));
  // What passes before the first commit has versions of its own, too.
  loaded.health(core::health_of(make_node(3, "n", core::NodeInfo::Health::ready)));
  EXPECT_EQ(loaded.node("n")->version, start + 1);
  Watch watch(loaded, {.kind = Kind::node}, *loaded.after(Kind::node, start), false);
  size_t events = 0;
  watch.pull([&](std::string_view, const Shown&) { ++events; }, 10);
  EXPECT_EQ(events, 1u);
  loaded.commit({.commit = 41});
  EXPECT_EQ(loaded.version(), start + 1) << "no version goes back";
}

class UnloadTest : public ViewTest {
 protected:
  UnloadTest() {
    view.load_with(
        [this](JobId id) -> Result<core::Job> {
          ++loads;
          if (id == damaged) return Error{Errc::invalid, "job j3: damaged", {}};
          auto it = disk.find(id);
          if (it == disk.end()) return Error{Errc::not_found, "", {}};
          return it->second;
        },
        1);
  }
  // Admits, runs and finishes a job of one pod, and stores it on `disk`.
  uint64_t finish(JobId id, const std::string& name) {
    auto object = make_job(name, uid_of(static_cast<int>(id)), 1);
    core::Job job(id, object);
    auto take = [&](core::Record record) {
      job.apply(record);
      feed.records(id, {std::move(record)});
    };
    take(core::JobAdmitted{kStart, object});
    take(core::JobStarted{kStart});
    take(core::PodsCreated{kStart, {{.first = 0}}});
    take(core::PodsBound{kStart, {{{0, 0}, 1}}});
    take(core::PodsEnded{kStart + 1, {Feeder::end_of({0, 0}, 0)}, 0, 0});
    take(core::FinishDecided{kStart + 2, true, core::ConditionReason::completions_reached, ""});
    disk.emplace(id, job);
    disk.at(id).apply(core::JobFinished{kStart + 3});
    return last = feed.records(id, {core::JobFinished{kStart + 3}});
  }
  std::map<JobId, core::Job> disk;
  int loads = 0;
  JobId damaged = 0;
  uint64_t last = 0;
};

TEST_F(UnloadTest, AFinishedJobIsReadFromDisk) {
  for (JobId id = 1; id <= 20; ++id) finish(id, "j" + std::to_string(id));
  EXPECT_EQ(loads, 0) << "nobody asked";
  EXPECT_EQ(view.jobs().unloaded_counts(), std::pair(size_t{20}, size_t{0}));
  auto shown = view.job("default", "j20");
  ASSERT_TRUE(shown);
  EXPECT_EQ(loads, 0) << "it has only just finished";
  EXPECT_EQ(shown->version, last);
  shown = view.job("default", "j1");
  ASSERT_TRUE(shown);
  EXPECT_EQ(loads, 1);
  EXPECT_TRUE(shown->job->condition(core::ConditionType::complete));
  EXPECT_TRUE(view.pod("default", pod_name("j1", 1, {0, 0})));
  EXPECT_EQ(loads, 1) << "it stays for a while";
  EXPECT_EQ(count(Kind::job), 20u);
  EXPECT_EQ(count(Kind::pod), 20u);
}

TEST_F(UnloadTest, WatchReportsWhatHasLeftMemory) {
  Watch watch(view, {.kind = Kind::pod}, view.changes(Kind::pod).end(), false);
  const uint64_t job = finish(1, "j1");
  for (JobId id = 2; id <= 20; ++id) finish(id, "j" + std::to_string(id));
  std::map<std::string, std::string> phases;
  uint64_t version = 0;
  const Watch::Sink sink = [&](std::string_view, const Shown& shown) {
    EXPECT_GT(shown.version, version) << "versions only grow";
    version = shown.version;
    phases[shown.job->object().meta.name] = shown.pod->ended ? "ended" : "runs";
    EXPECT_LE(shown.version, std::max(job, last));
  };
  while (watch.behind()) ASSERT_TRUE(watch.pull(sink, 100));
  EXPECT_EQ(phases.size(), 20u);
  for (const auto& [name, phase] : phases) EXPECT_EQ(phase, "ended") << name;
}

TEST_F(UnloadTest, SelectorReadsOnlyJobsItNames) {
  for (JobId id = 1; id <= 20; ++id) finish(id, "j" + std::to_string(id));
  loads = 0;
  Query query{.kind = Kind::pod};
  query.labels = *Selector::labels("job-name=j3");
  size_t n = 0;
  view.each(query.kind, "", query.wanted(), [&](const Shown&) { ++n; });
  EXPECT_EQ(n, 1u);
  EXPECT_EQ(loads, 1);
  query.labels = *Selector::labels("batch.kubernetes.io/controller-uid=" + uid_of(4));
  view.each(query.kind, "", query.wanted(), [&](const Shown&) { ++n; });
  EXPECT_EQ(n, 2u);
  EXPECT_EQ(loads, 2);
}

TEST_F(UnloadTest, P14UnreadableJobFailsAlone) {
  for (JobId id = 1; id <= 20; ++id) finish(id, "j" + std::to_string(id));
  damaged = 3;
  EXPECT_FALSE(view.job("default", "j3"));
  EXPECT_EQ(view.jobs().damage(Kind::job, "default", "j3"), "job j3: damaged");
  EXPECT_EQ(view.jobs().damage(Kind::pod, "default", pod_name("j3", 3, {0, 0})), "job j3: damaged");
  EXPECT_FALSE(view.jobs().damage(Kind::job, "default", "j4"));
  EXPECT_FALSE(view.jobs().damage(Kind::job, "other", "j3"));
  EXPECT_EQ(view.jobs().damaged(), 1u);
  EXPECT_TRUE(view.job("default", "j4"));
  EXPECT_EQ(count(Kind::job), 19u) << "a list goes on without it";
  EXPECT_EQ(count(Kind::pod), 19u);
  damaged = 0;
  EXPECT_TRUE(view.job("default", "j3")) << "the disk was repaired";
  EXPECT_EQ(view.jobs().damaged(), 0u);
}

TEST_F(UnloadTest, P14QuarantinedJobHasDamagedCondition) {
  view.add_damaged(7, make_job("broken", uid_of(7)), "its records are gone", kStart);
  view.add_damaged(8, nullptr, "all of it is gone", kStart);
  auto shown = view.job("default", "broken");
  ASSERT_TRUE(shown);
  const core::Condition* said = shown->job->condition(core::ConditionType::damaged);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->message, "its records are gone");
  EXPECT_EQ(view.jobs().damaged(), 2u);
}

TEST_F(UnloadTest, P17ListReadsOnlyBriefJobs) {
  int briefs = 0;
  view.brief_with([&](JobId id) -> Result<core::Job> {
    ++briefs;
    const core::Job& job = disk.at(id);
    auto object = core::brief(job.object());
    object.json = job.object().json;
    return core::Job(id, std::make_shared<core::JobObject>(object), core::brief(job.state()));
  });
  for (JobId id = 1; id <= 20; ++id) finish(id, "j" + std::to_string(id));
  loads = 0;
  view.each(Kind::job, "", nullptr, [&](const Shown& shown) {
    auto listed = view.listed(key_of(shown));
    ASSERT_TRUE(listed);
    EXPECT_EQ(listed->job->condition(core::ConditionType::complete) != nullptr, true);
    EXPECT_EQ(listed->version, shown.version);
  });
  EXPECT_EQ(loads, 0);
  EXPECT_LE(briefs, 20) << "once each; the last ones are in memory";
  EXPECT_GE(briefs, 16);
  EXPECT_TRUE(view.job("default", "j1")->job->pod({0, 0})) << "a single get returns the whole job";
}

TEST_F(UnloadTest, ChangeIsAppliedToUnloadedJobOnce) {
  finish(1, "a");
  const core::Job before = disk.at(1);
  const uint64_t version = last;
  auto changed = std::make_shared<core::JobObject>(before.object());
  changed->meta.labels["x"] = "y";
  core::JobSpecChanged record{kStart + 9, 1, 1, 1, changed};
  disk.at(1).apply(record);  // the disk is ahead of the read model
  finish(2, "b");
  ASSERT_TRUE(view.job("default", "a"));
  core::Committed committed;
  committed.commit = commit_of(last) + 1;
  auto batch = std::make_shared<core::JobRecords>();
  batch->job = 1;
  batch->records = {record};
  batch->before = std::make_shared<core::Job>(before);
  committed.jobs.push_back(batch);
  view.commit(committed);
  auto shown = view.job("default", "a");
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->version, first_version(committed.commit) + 1);
  EXPECT_EQ(view.owner_version(1), shown->version);
  EXPECT_EQ(shown->job->object().meta.labels.at("x"), "y");
  EXPECT_EQ(commit_of(view.find({Kind::pod, 1, 0, {0, 0}})->version), commit_of(version));
  EXPECT_EQ(view.jobs().unloaded_counts().first, 2u) << "it is unloaded again";
}

TEST_F(UnloadTest, JobMissingFromDiskIsNotShown) {
  finish(1, "a");
  for (JobId id = 2; id < 20; ++id) finish(id, "j" + std::to_string(id));
  disk.erase(1);
  EXPECT_FALSE(view.job("default", "a"));
  EXPECT_EQ(count(Kind::job), 18u);
}

}  // namespace
}  // namespace muster::api
