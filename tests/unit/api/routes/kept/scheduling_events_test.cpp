// Events of pods that get no node: one per pod, counted, bounded.
#include "api/routes/kept/scheduling_events.hpp"

#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api {
namespace {

using namespace testing;

class SchedulingEventsTest : public ServerTest {
 protected:
  SchedulingEventsTest() { feed.admit(1, make_job("a", uid_of(1), 1'000)); }

  // What events there are, by pod, after a look at this time.
  std::map<std::string, Json> look(Millis now, bool restarted = false) {
    now_ = now;
    if (restarted || !events_) {
      renderer_.emplace(view, [this] { return now_; });
      events_.emplace(io.provider->getTimer(), view, *renderer_, backend, [this] { return now_; });
    }
    events_->look();
    std::map<std::string, Json> found;
    view.each_kept(core::KeptKind::event, "default", [&](const Shown& one) {
      const Json event = Json::parse(one.kept->kept->json);
      EXPECT_EQ(event["reason"], "FailedScheduling");
      found[event["involvedObject"]["name"].get<std::string>()] = event;
    });
    return found;
  }
  static std::string text(const Json& event) {
    return std::to_string(event["count"].get<int>()) + " " + event["message"].get<std::string>();
  }

  Millis now_ = kStart;
  std::optional<Renderer> renderer_;
  std::optional<SchedulingEvents> events_;
};

const std::string kNoNodes = "no nodes available to schedule pods";

TEST_F(SchedulingEventsTest, AreWrittenOnceAPodHasWaited) {
  feed.create(1, 0, 1);
  EXPECT_TRUE(look(kStart).empty());
  const auto events = look(kStart + 1'000);
  ASSERT_EQ(events.size(), 1u);
  const Json& event = events.at(pod_name_of(0));
  EXPECT_EQ(text(event), "1 " + kNoNodes);
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["involvedObject"]["kind"], "Pod");
  EXPECT_EQ(event["involvedObject"]["uid"], core::pod_uid(uid_of(1), {0, 0}));
  EXPECT_EQ(event["reportingComponent"], "default-scheduler");
  EXPECT_EQ(event["source"]["component"], "default-scheduler");
  EXPECT_EQ(event["firstTimestamp"], "2023-11-14T22:13:21Z");
  EXPECT_EQ(get("/apis/events.k8s.io/v1/namespaces/default/events/" +
                event["metadata"]["name"].get<std::string>())
                .json()["note"],
            kNoNodes);
}

TEST_F(SchedulingEventsTest, AreCountedWhileThePodWaits) {
  feed.create(1, 0, 1);
  const std::string pod = pod_name_of(0);
  look(kStart + 1'000);
  EXPECT_EQ(text(look(kStart + 2'000).at(pod)), "1 " + kNoNodes);
  EXPECT_EQ(text(look(kStart + 3'000, true).at(pod)), "1 " + kNoNodes)
      << "the coordinator has restarted";
  const Json again = look(kStart + 1'000 + SchedulingEvents::kAgainMs).at(pod);
  EXPECT_EQ(text(again), "2 " + kNoNodes);
  EXPECT_EQ(again["firstTimestamp"], "2023-11-14T22:13:21Z");
  EXPECT_EQ(again["lastTimestamp"], "2023-11-14T22:18:21Z");
  auto node = make_node(1, "n", core::NodeInfo::Health::ready);
  node.spec.unschedulable = true;
  feed.node(node);
  const Millis then = kStart + 1'000 + SchedulingEvents::kAgainMs;
  EXPECT_EQ(text(look(then + 2'000).at(pod)), "2 " + kNoNodes) << "it has just been written";
  const std::string cordoned = "3 0/1 nodes are available: 1 node(s) were unschedulable.";
  EXPECT_EQ(text(look(then + SchedulingEvents::kChangedMs).at(pod)), cordoned);
  feed.bind(1, {0, 0});
  EXPECT_EQ(text(look(then + 10 * SchedulingEvents::kAgainMs).at(pod)), cordoned)
      << "it has a node";
}

TEST_F(SchedulingEventsTest, AreFewForAJobOfManyPods) {
  feed.create(1, 0, 100);
  EXPECT_EQ(look(kStart + 1'000).size(), SchedulingEvents::kPodsOfJob);
  for (uint32_t i = 0; i < 50; ++i) feed.bind(1, {i, 0});
  EXPECT_EQ(look(kStart + 5'000).size(), SchedulingEvents::kPodsOfJob);
}

TEST_F(SchedulingEventsTest, AreTriedAgainIfTheyCannotBeWritten) {
  feed.create(1, 0, 1);
  backend.refuse = Error{Errc::unavailable, "the disk is full", {}};
  EXPECT_TRUE(look(kStart + 1'000).empty());
  backend.refuse.reset();
  EXPECT_EQ(look(kStart + 2'000).size(), 1u);
}

TEST_F(SchedulingEventsTest, NeedAPodThatFitsNowhere) {
  feed.node(make_node(1, "n", core::NodeInfo::Health::ready));
  feed.create(1, 0, 1);
  EXPECT_TRUE(look(kStart + 5'000).empty()) << "it is about to get a slot";
}

}  // namespace
}  // namespace muster::api
