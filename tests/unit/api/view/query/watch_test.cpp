// What watches deliver, as transcripts: "ADDED a-0 Pending v3.1", the first change of commit 3.
#include "api/view/query/watch.hpp"

#include "api/view/render/render_cache.hpp"
#include "core/pod_name.hpp"
#include "tests/unit/api/view/view_fixture.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

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
    case Kind::cron_job:
    case Kind::queue:
    case Kind::priority_class:
      text += " " + shown.kept->kept->name;
      break;
    case Kind::event:
      text += " event " + std::to_string(shown.event->nr);
      break;
  }
  return text + " v" + std::to_string(commit_of(shown.version)) + "." +
         std::to_string(shown.version - first_version(commit_of(shown.version)));
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
  Watch watch(view, query(Kind::pod), view.changes(Kind::pod).end(), false);
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  EXPECT_EQ(pull(watch), Lines{"ADDED a/0#0 Pending v2.1"});
  feed.bind(1, {0, 0});
  feed.start(1, {0, 0});
  EXPECT_EQ(pull(watch), Lines{"MODIFIED a/0#0 Running v4.1"}) << "only the latest";
  feed.end(1, {0, 0}, 0);
  EXPECT_EQ(pull(watch), Lines{"MODIFIED a/0#0 Succeeded v5.1"});
  EXPECT_EQ(pull(watch), Lines{});
}

TEST_F(WatchTest, P22SendsAddedAndDeletedAsLabelComesAndGoes) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 2);
  Watch watch(view, query(Kind::pod, "queue=fast"), view.changes(Kind::pod).end(), false);
  feed.records(1, {core::PodMetaSet{kStart, {0, 0}, {{true, "queue", "fast"}}}});
  EXPECT_EQ(pull(watch), Lines{"ADDED a/0#0 Pending v3.1"});
  feed.bind(1, {0, 0});
  EXPECT_EQ(pull(watch), Lines{"MODIFIED a/0#0 Pending v4.1"});
  feed.records(1, {core::PodMetaSet{kStart, {0, 0}, {{true, "queue", std::nullopt}}}});
  EXPECT_EQ(pull(watch), Lines{"DELETED a/0#0 Pending v5.1"});
}

TEST_F(WatchTest, SendsAddedAndDeletedOfPodGoneBeforePull) {
  Watch watch(view, query(Kind::pod), view.changes(Kind::pod).end(), false);
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  feed.bind(1, {0, 0});
  feed.records(1, {core::PodsStopping{kStart, {{{0, 0}, core::Counted::released}}}});
  feed.end(1, {0, 0}, 143, core::Counted::not_yet);
  EXPECT_EQ(pull(watch), (Lines{"ADDED a/0#0 Failed v5.0", "DELETED a/0#0 Failed v5.1"}));
}

TEST_F(WatchTest, SendsEveryAddedAndDeletedInSmallPulls) {
  Watch watch(view, query(Kind::pod), view.changes(Kind::pod).end(), false);
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

TEST_F(WatchTest, P32RemovedObjectHasNoOlderVersionThanSent) {
  feed.admit(1, make_job("a", uid_of(1)));
  Watch watch(view, query(Kind::pod), view.changes(Kind::pod).end(), false);
  feed.create(1, 0, 2);
  feed.records(
      1, {core::PodsStopping{
             kStart, {{{0, 0}, core::Counted::released}, {{1, 0}, core::Counted::released}}}});
  EXPECT_EQ(pull(watch), (Lines{"ADDED a/0#0 Pending v3.0", "DELETED a/0#0 Pending v3.1",
                                "ADDED a/1#0 Pending v3.1", "DELETED a/1#0 Pending v3.2"}));
}

TEST_F(WatchTest, WaitsForAVersionThatDoesNotExistYet) {
  feed.admit(1, make_job("a", uid_of(1)));
  const uint64_t later = first_version(3) + 1;
  Watch watch(view, query(Kind::job), view.changes(Kind::job).end(), false, later);
  EXPECT_EQ(watch.version(), later) << "a bookmark is not older than what was asked for";
  feed.admit(2, make_job("b", uid_of(2)));
  feed.admit(3, make_job("c", uid_of(3)));
  EXPECT_EQ(pull(watch), Lines{}) << "up to that version, it was said to be known";
  EXPECT_EQ(watch.version(), later);
  feed.admit(4, make_job("d", uid_of(4)));
  EXPECT_EQ(pull(watch), Lines{"ADDED d v4.1"});
}

TEST_F(WatchTest, StartsWithAllExistingObjects) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 2);
  Watch watch(view, query(Kind::pod), view.changes(Kind::pod).end(), true);
  EXPECT_EQ(pull(watch), (Lines{"ADDED a/0#0 Pending v2.1", "ADDED a/1#0 Pending v2.2"}));
  feed.bind(1, {1, 0});
  EXPECT_EQ(pull(watch), Lines{"MODIFIED a/1#0 Pending v3.1"});
}

TEST_F(WatchTest, InitialObjectDeletedBeforeItsTurnIsStillSent) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 2);
  Watch watch(view, query(Kind::pod), view.changes(Kind::pod).end(), true);
  EXPECT_EQ(pull(watch, 1), Lines{"ADDED a/0#0 Pending v2.1"});
  feed.records(1, {core::PodsStopping{kStart, {{{1, 0}, core::Counted::released}}}});
  EXPECT_EQ(pull(watch), (Lines{"ADDED a/1#0 Pending v3.0", "DELETED a/1#0 Pending v3.1"}));
}

TEST_F(WatchTest, EventsOfOneCommitHaveVersionsToContinueFrom) {
  feed.admit(1, make_job("a", uid_of(1)));
  const uint64_t before = view.version();
  feed.create(1, 0, 3);
  Watch watch(view, query(Kind::pod), *view.after(Kind::pod, before), false);
  std::vector<uint64_t> versions;
  watch.pull([&](std::string_view, const Shown& s) { versions.push_back(s.version); }, 2);
  ASSERT_EQ(versions.size(), 2u);
  Watch later(view, query(Kind::pod), *view.after(Kind::pod, versions.back()), false);
  EXPECT_EQ(pull(later), Lines{"ADDED a/2#0 Pending v2.3"});
  EXPECT_EQ(later.version(), view.version());
}

// The newest change of each object is ahead of others' older ones.
TEST_F(WatchTest, ObjectIsSentInThePlaceOfItsNewestChange) {
  feed.admit(1, make_job("a", uid_of(1)));
  Watch watch(view, query(Kind::pod), view.changes(Kind::pod).end(), false);
  feed.create(1, 0, 2);
  feed.bind(1, {0, 0});
  feed.bind(1, {1, 0});
  feed.start(1, {0, 0});
  EXPECT_EQ(pull(watch), (Lines{"ADDED a/1#0 Pending v4.1", "ADDED a/0#0 Running v5.1"}));
}

TEST_F(WatchTest, SendsDeletedBeforeNameIsReused) {
  Watch watch(view, query(Kind::job), view.changes(Kind::job).end(), false);
  feed.admit(1, make_job("a", uid_of(1)));
  feed.records(1, {core::JobDeleted{kStart, true}});
  feed.admit(2, make_job("a", uid_of(2)));
  EXPECT_EQ(pull(watch), (Lines{"ADDED a v1.1", "DELETED a v2.1", "ADDED a v3.1"}));
}

TEST_F(WatchTest, SelectsByLabelsAndJobName) {
  Watch mine(view, query(Kind::pod, "batch.kubernetes.io/job-name=b,team=blue"),
             view.changes(Kind::pod).end(), false);
  Watch third(view, query(Kind::pod, "batch.kubernetes.io/job-completion-index in (2)"),
              view.changes(Kind::pod).end(), false);
  feed.admit(1, make_job("a", uid_of(1)));
  feed.admit(2, make_job("b", uid_of(2)));
  feed.create(1, 0, 3);
  feed.create(2, 0, 1);
  EXPECT_EQ(pull(mine), Lines{"ADDED b/0#0 Pending v4.1"});
  EXPECT_EQ(pull(third), Lines{"ADDED a/2#0 Pending v3.3"});
}

TEST_F(WatchTest, FieldSelectorFollowsChangesOfPhaseAndNode) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  Watch running(view, query(Kind::pod, "", "status.phase=Running"), view.changes(Kind::pod).end(),
                false);
  Watch there(view, query(Kind::pod, "", "spec.nodeName=n1"), view.changes(Kind::pod).end(), false);
  EXPECT_EQ(pull(running), Lines{});
  feed.bind(1, {0, 0});
  EXPECT_EQ(pull(there), Lines{"ADDED a/0#0 Pending v4.1"});
  feed.start(1, {0, 0});
  EXPECT_EQ(pull(running), Lines{"ADDED a/0#0 Running v5.1"});
  const uint64_t version = view.version();
  feed.end(1, {0, 0}, 0);
  EXPECT_EQ(pull(running), Lines{"DELETED a/0#0 Succeeded v6.1"});
  Watch later(view, query(Kind::pod, "", "status.phase=Running"), *view.after(Kind::pod, version),
              false);
  EXPECT_EQ(pull(later), Lines{"DELETED a/0#0 Succeeded v6.1"}) << "it matched at that version";
}

TEST_F(WatchTest, SendsNodesAndEvents) {
  Watch nodes(view, query(Kind::node), view.changes(Kind::node).end(), false);
  Watch events(view, query(Kind::event, "", "involvedObject.name=a"),
               view.changes(Kind::event).end(), false);
  feed.node(make_node(1, "n", core::NodeInfo::Health::ready));
  EXPECT_EQ(pull(nodes), Lines{"ADDED n v1.1"});
  view.health(core::health_of(make_node(1, "n", core::NodeInfo::Health::lost)));
  EXPECT_EQ(pull(nodes), Lines{"MODIFIED n v1.2"});
  Watch resumed(view, query(Kind::node), *view.after(Kind::node, first_version(1) + 1), false);
  EXPECT_EQ(pull(resumed), Lines{"MODIFIED n v1.2"}) << "what passes has a version, too";
  feed.admit(1, make_job("a", uid_of(1)));
  feed.admit(2, make_job("b", uid_of(2)));
  feed.create(1, 0, 1);
  feed.create(2, 0, 1);
  EXPECT_EQ(pull(events), Lines{"ADDED event 0 v4.2"});
}

TEST_F(WatchTest, PullFailsWhenWatchIsTooSlow) {
  View small(8);
  Feeder feeder(small);
  Watch watch(small, query(Kind::pod), small.changes(Kind::pod).end(), false);
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
  EXPECT_EQ(pull(node_watch), Lines{"ADDED n1 v1.1"});
  feed.create(1, 0, 9);  // more than the ring holds
  EXPECT_EQ(pull(node_watch), Lines{}) << "no node has changed since";
  EXPECT_FALSE(node_watch.behind());
  EXPECT_EQ(node_watch.version(), view.version());
  EXPECT_FALSE(pod_watch.pull([](std::string_view, const Shown&) {}, 100));
  feed.node(make_node(2, "n2", core::NodeInfo::Health::ready));
  EXPECT_TRUE(node_watch.behind());
  EXPECT_EQ(pull(node_watch), Lines{"ADDED n2 v4.1"});
}

TEST_F(WatchTest, RenderedTextsAreSharedBetweenWatches) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 2);
  Renderer renderer(view, [] { return kStart; });
  RenderCache cache(renderer);
  Watch one(view, query(Kind::pod), 0, false), two(view, query(Kind::pod), 0, false);
  auto sent = [&](Watch& watch, Form form) {
    std::string text;
    watch.pull(
        [&](std::string_view type, const Shown& s) {
          cache.append_event(text, type, s, form, Encoding::json, false);
        },
        100);
    return text;
  };
  const std::string first = sent(one, Form::plain);
  EXPECT_EQ(sent(two, Form::plain), first);
  const auto has = [](const std::string& text, uint64_t version) {
    return text.find("\"resourceVersion\":\"" + std::to_string(version) + "\"") !=
           std::string::npos;
  };
  EXPECT_TRUE(has(first, first_version(2) + 1));
  EXPECT_TRUE(has(first, first_version(2) + 2));
  feed.bind(1, {0, 0});
  EXPECT_TRUE(has(sent(one, Form::plain), first_version(3) + 1)) << "a newer one";
  EXPECT_NE(sent(two, Form::table).find("\"object\":{\"kind\":\"Table\""), std::string::npos);
}

// What a client knows that lists once and then watches, as an informer does.
struct Cache {
  std::map<Key, uint64_t> known;
  uint64_t version = 0;  // to continue from
};

class HistoryTest : public WatchTest {
 protected:
  static constexpr Kind kWatched[] = {Kind::job, Kind::pod, Kind::event, Kind::node, Kind::lease};

  size_t below(size_t n) { return random() % n; }

  // Some change, of which several may be in one commit.
  void change() {
    switch (below(8)) {
      case 0:
        ++jobs;
        feed.admit(jobs, make_job("j" + std::to_string(jobs), uid_of(static_cast<int>(jobs))));
        feed.create(jobs, 0, 3);
        return;
      case 1:
        return with_job([&](JobId id) { feed.records(id, {core::JobDeleted{kStart, true}}); });
      case 2:
        feed.node(node(core::NodeInfo::Health::ready));
        return;
      case 3:
        view.health(core::health_of(
            node(below(2) ? core::NodeInfo::Health::lost : core::NodeInfo::Health::ready)));
        return;
      case 4:
        return change_lease("l" + std::to_string(below(4)));
      default:
        return with_job([&](JobId id) { change_pods(id); });
    }
  }

  // Two machines, of which one may have a newer incarnation.
  core::NodeInfo node(core::NodeInfo::Health health) {
    const auto id = static_cast<NodeId>(1 + below(3));
    return make_node(id, "n" + std::to_string(id % 2), health);
  }

  // As clients tell objects apart: nodes by their names.
  static Key client_key(const Shown& shown) {
    Key key = key_of(shown);
    if (key.kind == Kind::node) key.nr %= 2;
    return key;
  }

  template <class F>
  void with_job(F f) {
    if (jobs == 0) return;
    const JobId id = 1 + below(jobs);
    if (view.find({Kind::job, id, 0, {}})) f(id);
  }

  void change_pods(JobId id) {
    std::vector<core::Record> records;
    for (uint32_t index = 0; index < 3; ++index) {
      const auto shown = view.find({Kind::pod, id, 0, {index, 0}});
      if (!shown || shown->pod->ended || below(2)) continue;
      const PodKey pod{index, 0};
      if (!shown->pod->bound())
        records.push_back(core::PodsBound{kStart, {{pod, 1}}});
      else if (!shown->pod->started_at)
        records.push_back(core::PodsStarted{kStart, {{pod, 7, 0, kStart}}});
      else
        records.push_back(core::PodsEnded{kStart, {Feeder::end_of(pod, 0)}, 0, 0});
    }
    if (!records.empty()) feed.records(id, std::move(records));
  }

  void change_lease(const std::string& name) {
    const auto shown = view.kept(core::KeptKind::lease, "default", name);
    const core::KeptPtr seen = shown ? shown->kept->kept : nullptr;
    if (seen && below(3) == 0) return void(feed.kept(seen, nullptr));
    core::Kept lease{
        .kind = core::KeptKind::lease, .ns = "default", .name = name, .json = R"({"metadata":{}})"};
    if (seen) lease = *seen;
    feed.kept(seen, std::make_shared<const core::Kept>(lease));
  }

  std::map<Key, uint64_t> listed(Kind kind) {
    std::map<Key, uint64_t> found;
    view.each(kind, "", nullptr, [&](const Shown& s) { found[client_key(s)] = s.version; });
    return found;
  }

  void take(Cache& cache, std::string_view type, const Shown& shown) {
    const Key key = client_key(shown);
    EXPECT_GE(shown.version, cache.version);
    EXPECT_EQ(type == "ADDED", !cache.known.contains(key)) << line(type, shown);
    if (type == "DELETED")
      cache.known.erase(key);
    else
      cache.known[key] = shown.version;
    cache.version = shown.version;
    ++events;
  }

  std::mt19937_64 random{1};
  JobId jobs = 0;
  size_t events = 0;
};

TEST_F(HistoryTest, CacheByListAndWatchEqualsFreshList) {
  std::map<Kind, Cache> caches;
  std::map<Kind, std::unique_ptr<Watch>> watches;
  const auto begin = [&](Kind kind) {
    watches[kind] =
        std::make_unique<Watch>(view, query(kind), *view.after(kind, caches[kind].version), false);
  };
  for (const Kind kind : kWatched) {
    caches[kind] = {listed(kind), view.version()};
    begin(kind);
  }
  for (int round = 0; round < 3000; ++round) {
    change();
    for (const Kind kind : kWatched) {
      if (below(3) != 0) continue;
      Cache& cache = caches[kind];
      const auto sink = [&](std::string_view type, const Shown& s) { take(cache, type, s); };
      ASSERT_TRUE(watches[kind]->pull(sink, 1 + below(5)));
      if (below(10) == 0) begin(kind);  // the connection broke
      if (below(10) == 0) cache.version = std::max(cache.version, watches[kind]->version());
      if (below(20) != 0) continue;
      while (watches[kind]->behind()) ASSERT_TRUE(watches[kind]->pull(sink, 1000));
      ASSERT_EQ(cache.known, listed(kind))
          << "kind " << static_cast<int>(kind) << " in round " << round;
    }
  }
  EXPECT_GT(events, 2000u);
}

}  // namespace
}  // namespace muster::api
