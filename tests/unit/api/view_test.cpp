// The copy that is shown: names, versions, what is hidden and when.
#include "api/view.hpp"

#include "core/pod_name.hpp"
#include "view_fixture.hpp"

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

TEST_F(ViewTest, VersionsOfPodsAreTheirOwn) {
  feed.admit(1, make_job("a", uid_of(1)));
  const uint64_t created = feed.create(1, 0, 3);
  const uint64_t bound = feed.bind(1, {1, 0});
  EXPECT_EQ(view.pod("default", pod_name("a", 1, {0, 0}))->version, created);
  EXPECT_EQ(view.pod("default", pod_name("a", 1, {1, 0}))->version, bound);
}

TEST_F(ViewTest, AFinishedPodStays) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  feed.bind(1, {0, 0});
  feed.end(1, {0, 0}, 0);
  ASSERT_EQ(count(Kind::pod), 1u);
  EXPECT_TRUE(view.pod("default", pod_name("a", 1, {0, 0}))->pod->ended);
}

TEST_F(ViewTest, ADeletedPodGoesWhenItHasEnded) {
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
  ASSERT_EQ(count(Kind::pod), 1u);  // the running one
  EXPECT_NE(view.pod("default", pod_name("a", 1, {1, 0}))->pod->stopping_ms, 0);
  // The name is free, and the new job's pods are not the old one's.
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

TEST_F(ViewTest, NodesGoByNameAndNewestIncarnation) {
  feed.node(make_node(1, "n", core::NodeInfo::Health::ready));
  feed.node(make_node(2, "n", core::NodeInfo::Health::ready));
  EXPECT_EQ(count(Kind::node), 1u);
  EXPECT_EQ(view.node("n")->node->id, 2u);
  EXPECT_EQ(view.node_name(1), "n");
  const uint64_t end = view.ring_end();
  auto beat = make_node(2, "n", core::NodeInfo::Health::ready);
  beat.heartbeat_ms = kStart + 5;
  view.nodes({beat});
  EXPECT_EQ(view.ring_end(), end) << "a heartbeat is no change";
  EXPECT_EQ(view.node("n")->node->heartbeat_ms, kStart + 5);
  beat.health = core::NodeInfo::Health::suspect;
  view.nodes({beat});
  EXPECT_EQ(view.ring_end(), end + 1);
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

TEST_F(ViewTest, TheRingIsBoundedAndSaysWhatItLost) {
  View small(4);
  Feeder feeder(small);
  feeder.admit(1, make_job("a", uid_of(1)));
  EXPECT_TRUE(small.after(0));
  feeder.create(1, 0, 3);
  feeder.bind(1, {0, 0});
  EXPECT_FALSE(small.after(0));
  EXPECT_FALSE(small.after(99)) << "not given yet";
  ASSERT_TRUE(small.after(small.version()));
  EXPECT_EQ(*small.after(small.version()), small.ring_end());
}

TEST_F(ViewTest, LoadedJobsHaveTheVersionOfTheStart) {
  core::Job job(5, make_job("old", uid_of(5)));
  job.apply(core::JobAdmitted{kStart, job.object_ptr()});
  job.apply(core::PodsCreated{kStart, {{.first = 0, .count = 2}}});
  View loaded;
  loaded.load(job);
  loaded.loaded(40, {make_node(3, "n", core::NodeInfo::Health::unknown)});
  EXPECT_EQ(loaded.job("default", "old")->version, 40u);
  EXPECT_EQ(loaded.pod("default", core::pod_name("old", uid_of(5), true, {1, 0}))->version, 40u);
  EXPECT_FALSE(loaded.after(39));
  EXPECT_TRUE(loaded.after(40));
  EXPECT_TRUE(loaded.node("n"));
}

}  // namespace
}  // namespace muster::api
