// What watches deliver, as transcripts: "ADDED a-0 Pending v3".
#include "api/view/query/watch.hpp"

#include "api/view/render/render_cache.hpp"
#include "core/pod_name.hpp"
#include "tests/unit/api/view/view_fixture.hpp"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

using namespace testing;

std::string line(std::string_view type, const Shown& shown) {
  std::string text(type);
  switch (shown.kind) {
    case Kind::job:
      text += " " + shown.job->object().meta.name;
      break;
    case Kind::pod:
      text += " " + shown.job->object().meta.name + "/" + to_string(shown.pod->key) + " " +
              std::string(phase(*shown.pod));
      break;
    case Kind::node:
      text += " " + shown.node->name;
      break;
    case Kind::lease:
    case Kind::config_map:
    case Kind::name_space:
      text += " " + shown.kept->kept->name;
      break;
    case Kind::event:
      text += " event " + std::to_string(shown.event->nr);
      break;
  }
  return text + " v" + std::to_string(shown.version);
}

using Lines = std::vector<std::string>;

Lines pull(Watch& watch, size_t max = 1000) {
  Lines lines;
  EXPECT_TRUE(
      watch.pull([&](std::string_view t, const Shown& s) { lines.push_back(line(t, s)); }, max));
  return lines;
}

class WatchTest : public ::testing::Test {
 protected:
  Query query(Kind kind, const std::string& labels = "", const std::string& fields = "") {
    Query q{.kind = kind};
    q.labels = Selector::labels(labels).value();
    q.fields = Selector::fields(fields, kind).value();
    return q;
  }
  View view;
  Feeder feed{view};
};

TEST_F(WatchTest, SendsLifecycleOfPod) {
  Watch watch(view, query(Kind::pod), view.changes().end(), false);
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  EXPECT_EQ(pull(watch), Lines{"ADDED a/0#0 Pending v2"});
  feed.bind(1, {0, 0});
  feed.start(1, {0, 0});
  EXPECT_EQ(pull(watch), Lines{"MODIFIED a/0#0 Running v4"}) << "only the latest";
  feed.end(1, {0, 0}, 0);
  EXPECT_EQ(pull(watch), Lines{"MODIFIED a/0#0 Succeeded v5"});
  EXPECT_EQ(pull(watch), Lines{});
}

TEST_F(WatchTest, P22SendsAddedAndDeletedAsLabelComesAndGoes) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 2);
  Watch watch(view, query(Kind::pod, "queue=fast"), view.changes().end(), false);
  feed.records(1, {core::PodMetaSet{kStart, {0, 0}, {{true, "queue", "fast"}}}});
  EXPECT_EQ(pull(watch), Lines{"ADDED a/0#0 Pending v3"});
  feed.bind(1, {0, 0});
  EXPECT_EQ(pull(watch), Lines{"MODIFIED a/0#0 Pending v4"});
  feed.records(1, {core::PodMetaSet{kStart, {0, 0}, {{true, "queue", std::nullopt}}}});
  EXPECT_EQ(pull(watch), Lines{"DELETED a/0#0 Pending v5"});
}

TEST_F(WatchTest, SendsAddedAndDeletedOfPodGoneBeforePull) {
  Watch watch(view, query(Kind::pod), view.changes().end(), false);
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  feed.bind(1, {0, 0});
  feed.records(1, {core::PodsStopping{kStart, {{{0, 0}, core::Counted::released}}}});
  feed.end(1, {0, 0}, 143, core::Counted::not_yet);
  EXPECT_EQ(pull(watch), (Lines{"ADDED a/0#0 Failed v4", "DELETED a/0#0 Failed v5"}));
}

TEST_F(WatchTest, SendsEveryAddedAndDeletedInSmallPulls) {
  Watch watch(view, query(Kind::pod), view.changes().end(), false);
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 3);
  feed.records(1, {core::JobDeleted{kStart, true}});
  feed.records(1, {core::JobForgotten{kStart}});
  Lines all;
  for (int i = 0; i < 50 && watch.behind(); ++i)
    for (auto& l : pull(watch, 1)) all.push_back(l);
  EXPECT_EQ(all.size(), 6u);
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](auto& l) { return l.starts_with("ADDED"); }),
            3);
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](auto& l) { return l.starts_with("DELETED"); }),
            3);
}

// Two pods go in one commit: the first removal carries the number before it, and no ADDED less.
TEST_F(WatchTest, P32RemovedObjectHasNoOlderVersionThanSent) {
  feed.admit(1, make_job("a", uid_of(1)));
  Watch watch(view, query(Kind::pod), view.changes().end(), false);
  feed.create(1, 0, 2);
  feed.records(
      1, {core::PodsStopping{
             kStart, {{{0, 0}, core::Counted::released}, {{1, 0}, core::Counted::released}}}});
  EXPECT_EQ(pull(watch), (Lines{"ADDED a/0#0 Pending v2", "DELETED a/0#0 Pending v2",
                                "ADDED a/1#0 Pending v2", "DELETED a/1#0 Pending v3"}));
}

TEST_F(WatchTest, StartsWithAllExistingObjects) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 2);
  Watch watch(view, query(Kind::pod), view.changes().end(), true);
  EXPECT_EQ(pull(watch), (Lines{"ADDED a/0#0 Pending v2", "ADDED a/1#0 Pending v2"}));
  feed.bind(1, {1, 0});
  EXPECT_EQ(pull(watch), Lines{"MODIFIED a/1#0 Pending v3"});
}

TEST_F(WatchTest, InitialObjectDeletedBeforeItsTurnIsStillSent) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 2);
  Watch watch(view, query(Kind::pod), view.changes().end(), true);
  EXPECT_EQ(pull(watch, 1), Lines{"ADDED a/0#0 Pending v2"});
  feed.records(1, {core::PodsStopping{kStart, {{{1, 0}, core::Counted::released}}}});
  EXPECT_EQ(pull(watch), (Lines{"ADDED a/1#0 Pending v2", "DELETED a/1#0 Pending v3"}));
}

TEST_F(WatchTest, OnlyLastEventOfCommitCarriesItsVersion) {
  feed.admit(1, make_job("a", uid_of(1)));
  const uint64_t before = view.version();
  feed.create(1, 0, 3);
  Watch watch(view, query(Kind::pod), *view.after(before), false);
  // All events of a commit but the last carry the preceding version.
  EXPECT_EQ(pull(watch),
            (Lines{"ADDED a/0#0 Pending v1", "ADDED a/1#0 Pending v1", "ADDED a/2#0 Pending v2"}));
  EXPECT_EQ(watch.version(), 2u);
}

TEST_F(WatchTest, SendsDeletedBeforeNameIsReused) {
  Watch watch(view, query(Kind::job), view.changes().end(), false);
  feed.admit(1, make_job("a", uid_of(1)));
  feed.records(1, {core::JobDeleted{kStart, true}});
  feed.admit(2, make_job("a", uid_of(2)));
  EXPECT_EQ(pull(watch), (Lines{"ADDED a v1", "DELETED a v2", "ADDED a v3"}));
}

TEST_F(WatchTest, SelectsByLabelsAndJobName) {
  Watch mine(view, query(Kind::pod, "batch.kubernetes.io/job-name=b,team=blue"),
             view.changes().end(), false);
  Watch third(view, query(Kind::pod, "batch.kubernetes.io/job-completion-index in (2)"),
              view.changes().end(), false);
  feed.admit(1, make_job("a", uid_of(1)));
  feed.admit(2, make_job("b", uid_of(2)));
  feed.create(1, 0, 3);
  feed.create(2, 0, 1);
  EXPECT_EQ(pull(mine), Lines{"ADDED b/0#0 Pending v4"});
  EXPECT_EQ(pull(third), Lines{"ADDED a/2#0 Pending v3"});
}

TEST_F(WatchTest, FieldSelectorFollowsChangesOfPhaseAndNode) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  Watch running(view, query(Kind::pod, "", "status.phase=Running"), view.changes().end(), false);
  Watch there(view, query(Kind::pod, "", "spec.nodeName=n1"), view.changes().end(), false);
  EXPECT_EQ(pull(running), Lines{});
  feed.bind(1, {0, 0});
  EXPECT_EQ(pull(there), Lines{"ADDED a/0#0 Pending v4"});
  feed.start(1, {0, 0});
  EXPECT_EQ(pull(running), Lines{"ADDED a/0#0 Running v5"});
  const uint64_t version = view.version();
  feed.end(1, {0, 0}, 0);
  EXPECT_EQ(pull(running), Lines{"DELETED a/0#0 Succeeded v6"});
  Watch later(view, query(Kind::pod, "", "status.phase=Running"), *view.after(version), false);
  EXPECT_EQ(pull(later), Lines{"DELETED a/0#0 Succeeded v6"}) << "it matched at that version";
}

TEST_F(WatchTest, SendsNodesAndEvents) {
  Watch nodes(view, query(Kind::node), view.changes().end(), false);
  Watch events(view, query(Kind::event, "", "involvedObject.name=a"), view.changes().end(), false);
  feed.node(make_node(1, "n", core::NodeInfo::Health::ready));
  EXPECT_EQ(pull(nodes), Lines{"ADDED n v1"});
  view.health(core::health_of(make_node(1, "n", core::NodeInfo::Health::lost)));
  EXPECT_EQ(pull(nodes), Lines{"MODIFIED n v1"});
  Watch resumed(view, query(Kind::node), *view.after(1), false);
  EXPECT_EQ(pull(resumed), Lines{"MODIFIED n v1"}) << "what passes may be seen twice, never missed";
  feed.admit(1, make_job("a", uid_of(1)));
  feed.admit(2, make_job("b", uid_of(2)));
  feed.create(1, 0, 1);
  feed.create(2, 0, 1);
  EXPECT_EQ(pull(events), Lines{"ADDED event 0 v4"});
}

TEST_F(WatchTest, PullFailsWhenWatchIsTooSlow) {
  View small(8);
  Feeder feeder(small);
  Watch watch(small, query(Kind::pod), small.changes().end(), false);
  feeder.admit(1, make_job("a", uid_of(1), 20));
  feeder.create(1, 0, 20);
  EXPECT_FALSE(watch.pull([](std::string_view, const Shown&) {}, 100));
}

TEST(WatchOfASmallRing, IsOverrunOnlyByChangesOfItsKind) {
  View view{4};
  Feeder feed{view};
  Query jobs{.kind = Kind::job}, nodes{.kind = Kind::node}, pods{.kind = Kind::pod};
  Watch node_watch(view, nodes, 0, false), pod_watch(view, pods, 0, false);
  feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  feed.admit(1, make_job("a", uid_of(1), 9));
  EXPECT_EQ(pull(node_watch), Lines{"ADDED n1 v1"});
  feed.create(1, 0, 9);  // more than the ring holds
  EXPECT_EQ(pull(node_watch), Lines{}) << "no node has changed since";
  EXPECT_FALSE(node_watch.behind());
  EXPECT_EQ(node_watch.version(), view.version());
  EXPECT_FALSE(pod_watch.pull([](std::string_view, const Shown&) {}, 100));
  feed.node(make_node(2, "n2", core::NodeInfo::Health::ready));
  EXPECT_TRUE(node_watch.behind());
  EXPECT_EQ(pull(node_watch), Lines{"ADDED n2 v" + std::to_string(view.version())});
}

TEST_F(WatchTest, RenderedTextsAreSharedBetweenWatches) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 2);
  Renderer renderer(view, [] { return kStart; });
  RenderCache cache(renderer);
  Watch one(view, query(Kind::pod), 0, false), two(view, query(Kind::pod), 0, false);
  auto sent = [&](Watch& watch, Form form) {
    std::string text;
    watch.pull([&](std::string_view, const Shown& s) { cache.append(text, s, form, false); }, 100);
    return text;
  };
  const std::string first = sent(one, Form::plain);
  EXPECT_EQ(sent(two, Form::plain), first);
  // The last event of a commit carries its version, the others the preceding one, so they cannot
  // share text.
  EXPECT_NE(first.find("\"resourceVersion\":\"1\""), std::string::npos);
  EXPECT_NE(first.find("\"resourceVersion\":\"2\""), std::string::npos);
  feed.bind(1, {0, 0});
  EXPECT_NE(sent(one, Form::plain).find("\"resourceVersion\":\"3\""), std::string::npos)
      << "a newer one";
  EXPECT_EQ(sent(two, Form::table).find("{\"kind\":\"Table\""), 0u);
}

}  // namespace
}  // namespace muster::api
